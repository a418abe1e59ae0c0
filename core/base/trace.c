/* trace.c - the `traceparent` header, read and written. */
#include "base/trace.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"

#define HEX "0123456789abcdef"

/* n hex digits, not all of them zero. */
static bool is_id(const char *s, size_t n) { return strspn(s, HEX) >= n && strspn(s, "0") < n; }

/* The header is version "-" trace "-" span "-" flags. Versions above 00 may have more after another dash; ff
 * is invalid. */
bool kl_trace_parse(const char *header, kl_trace *out)
{
    size_t len = header ? strlen(header) : 0;
    if (len < 55 || strspn(header, HEX) < 2 || !strncmp(header, "ff", 2) || header[2] != '-'
        || header[35] != '-' || header[52] != '-' || !is_id(header + 3, 32) || !is_id(header + 36, 16)
        || strspn(header + 53, HEX) < 2)
        return false;
    if (len > 55 && (!strncmp(header, "00", 2) || header[55] != '-'))
        return false;
    memcpy(out->trace, header + 3, 32);
    memcpy(out->span, header + 36, 16);
    out->trace[32] = out->span[16] = '\0';
    return true;
}

void kl_trace_span(const char *seed, kl_trace *out)
{
    uint64_t h = kl_hash(seed, strlen(seed));
    snprintf(out->span, sizeof out->span, "%016llx", (unsigned long long)(h ? h : 1));
}

const char *kl_trace_header(const kl_trace *t, char out[KL_TRACEPARENT_MAX])
{
    snprintf(out, KL_TRACEPARENT_MAX, "00-%.32s-%.16s-01", t->trace, t->span);
    return out;
}
