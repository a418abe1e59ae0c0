/* proto.h - protobuf for tests: Go's objects out of spec/fixtures/proto/objects.txt, and messages around
 * them. */
#ifndef KL_SPEC_PROTO_H
#define KL_SPEC_PROTO_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/buf.h"
#include "base/mem.h"

typedef struct go_object {
    char *proto; /* with its envelope */
    size_t n;
    char *json;
} go_object;

typedef struct go_objects {
    go_object *v;
    size_t n;
} go_objects;

static inline int base64_digit(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = strchr(digits, c);
    return c && at ? (int)(at - digits) : -1;
}

static inline char *base64_bytes(const char *s, size_t len, size_t *n)
{
    char *out = kl_alloc(len + 1);
    unsigned bits = 0;
    int have = 0;
    *n = 0;
    for (size_t i = 0; i < len && base64_digit(s[i]) >= 0; i++) {
        bits = bits << 6 | (unsigned)base64_digit(s[i]);
        have += 6;
        if (have >= 8) {
            have -= 8;
            out[(*n)++] = (char)(bits >> have);
        }
    }
    return out;
}

static inline go_objects go_objects_read(const char *path)
{
    go_objects all = {0};
    FILE *f = fopen(path, "r");
    char *line = NULL;
    size_t cap = 0;
    while (f && getline(&line, &cap, f) > 0) {
        char *space = strchr(line, ' ');
        if (*line == '#' || !space)
            continue;
        all.v = kl_realloc(all.v, (all.n + 1) * sizeof *all.v);
        go_object *o = &all.v[all.n++];
        o->proto = base64_bytes(line, (size_t)(space - line), &o->n);
        space[strcspn(space, "\n")] = '\0';
        o->json = kl_strdup(space + 1);
    }
    free(line);
    if (f)
        fclose(f);
    return all;
}

static inline void go_objects_free(go_objects *all)
{
    for (size_t i = 0; i < all->n; i++) {
        kl_free(all->v[i].proto);
        kl_free(all->v[i].json);
    }
    kl_free(all->v);
}

static inline void put_varint(kl_buf *b, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        kl_buf_putc(b, (char)(v | 0x80));
    kl_buf_putc(b, (char)v);
}

static inline void put_bytes(kl_buf *b, unsigned number, const void *s, size_t n)
{
    put_varint(b, number << 3 | 2);
    put_varint(b, n);
    kl_buf_add(b, s, n);
}

static inline void put_text(kl_buf *b, unsigned number, const char *s) { put_bytes(b, number, s, strlen(s)); }

static inline void put_number(kl_buf *b, unsigned number, uint64_t v)
{
    put_varint(b, number << 3);
    put_varint(b, v);
}

/* The envelope around a message. */
static inline void put_unknown(
    kl_buf *b, const char *api_version, const char *kind, const void *raw, size_t n)
{
    kl_buf type = KL_BUF_INIT;
    put_text(&type, 1, api_version);
    put_text(&type, 2, kind);
    kl_buf_add(b, "k8s", 4);
    put_bytes(b, 1, type.data, type.len);
    put_bytes(b, 2, raw, n);
    put_bytes(b, 3, "", 0);
    put_bytes(b, 4, "", 0);
    kl_buf_fini(&type);
}

/* A watch's frame around an object with its envelope. */
static inline void put_frame(kl_buf *b, const char *type, const void *object, size_t n)
{
    kl_buf raw = KL_BUF_INIT, event = KL_BUF_INIT;
    put_bytes(&raw, 1, object, n);
    put_text(&event, 1, type);
    put_bytes(&event, 2, raw.data, raw.len);
    for (int shift = 24; shift >= 0; shift -= 8)
        kl_buf_putc(b, (char)(event.len >> shift));
    kl_buf_add(b, event.data, event.len);
    kl_buf_fini(&raw);
    kl_buf_fini(&event);
}

#endif
