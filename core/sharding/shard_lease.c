/* shard_lease.c - the annotation is a JSON text:
 * {"ring":1,"incarnation":"...","seq":3,"members":[...],"controllers":{...}}. Members are called by the
 * names of their Leases. Another ring's version, or no such text: we cannot know what its author takes. */
#include "sharding/shard_lease.h"

#include <ctype.h>
#include <string.h>

#include "base/mem.h"
#include "model/time.h"
#include "sharding/shard.h"

/* Of labels and of names (DNS-1123 subdomains). */
#define LABEL_MAX 63
#define NAME_MAX_BYTES 253

static const char *text_or(const char *s, const char *otherwise) { return s ? s : otherwise; }

static void decode(kl_shard_lease *l)
{
    size_t n;
    const char *text = kl_value_strn(l->text, &n);
    kl_err err = KL_ERR_INIT;
    if (!text || kl_value_decode(text, n, &l->said, &err)) {
        kl_err_fini(&err);
        return;
    }
    const kl_value *members = kl_value_get(l->said, "members");
    l->readable = kl_value_int_at(l->said, 0, "ring", NULL) == KL_RING_VERSION
        && kl_value_type(members) == KL_ARRAY;
    l->members = kl_new_array(const char *, kl_value_len(members) + 1);
    for (size_t i = 0; l->readable && i < kl_value_len(members); i++)
        l->readable = (l->members[l->n_members++] = kl_value_str(kl_value_item(members, i)));
}

void kl_shard_lease_read(const kl_value *lease, const kl_shard_lease *before, kl_shard_lease *out)
{
    const kl_value *metadata = kl_value_get(lease, "metadata");
    *out = (kl_shard_lease){.name = kl_strdup(text_or(kl_value_str_at(metadata, "name", NULL), "")),
        .uid = kl_strdup(text_or(kl_value_str_at(metadata, "uid", NULL), "")),
        .rv = kl_strdup(text_or(kl_value_str_at(metadata, "resourceVersion", NULL), "")),
        .created = kl_strdup(text_or(kl_value_str_at(metadata, "creationTimestamp", NULL), "~")),
        .duration = kl_seconds_within(
            kl_value_int_at(lease, 0, "spec", "leaseDurationSeconds", NULL), KL_SECONDS(INT32_MAX)),
        .text = kl_value_ref(kl_value_at(metadata, "annotations", KL_SHARD_ANNOTATION, NULL))};
    if (before && kl_value_equal(before->text, out->text) && before->readable) {
        out->said = kl_value_ref(before->said);
        out->readable = true;
        out->n_members = before->n_members;
        out->members = kl_new_array(const char *, before->n_members + 1);
        memcpy(out->members, before->members, before->n_members * sizeof *before->members);
        out->p.ring = kl_ring_ref(before->p.ring);
        out->p.me = before->p.me;
    } else {
        decode(out);
        out->p.me = KL_RING_NOBODY;
    }
    out->p.controllers = kl_value_ref(kl_value_get(out->said, "controllers"));
    out->incarnation = kl_strdup(kl_value_str_at(out->said, "incarnation", NULL));
    out->seq = (uint64_t)kl_value_int_at(out->said, 0, "seq", NULL);
}

void kl_shard_lease_fini(kl_shard_lease *l)
{
    kl_free(l->name);
    kl_free(l->uid);
    kl_free(l->rv);
    kl_free(l->incarnation);
    kl_free(l->created);
    kl_free(l->members);
    kl_ring_unref(l->p.ring);
    kl_value_unref(l->p.controllers);
    kl_value_unref(l->said);
    kl_value_unref(l->text);
    *l = (kl_shard_lease){0};
}

/* --- writing ------------------------------------------------------------------------------ */

static char *annotation(const kl_shard_words *w)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kint(b, "ring", KL_RING_VERSION);
    kl_build_kstr(b, "incarnation", w->incarnation);
    kl_build_kint(b, "seq", (int64_t)w->seq);
    kl_build_key(b, "members");
    kl_build_array(b);
    for (size_t i = 0; i < kl_ring_members(w->p->ring); i++)
        kl_build_str(b, kl_ring_member(w->p->ring, i));
    kl_build_end(b);
    kl_build_key(b, "controllers");
    if (w->p->controllers) {
        kl_build_value(b, w->p->controllers);
    } else {
        kl_build_object(b);
        kl_build_end(b);
    }
    kl_build_end(b);
    const kl_value *v = kl_builder_done(b);
    char *text = kl_value_to_json(v);
    kl_value_unref(v);
    return text;
}

static const kl_value *micro_time(kl_time wall)
{
    char text[KL_TIME_MAX];
    return kl_value_of_str(kl_time_format_micro(wall / KL_SECONDS(1), (int32_t)(wall % KL_SECONDS(1)), text));
}

static const kl_value *fresh(const kl_shard_words *w)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "apiVersion", "coordination.k8s.io/v1");
    kl_build_kstr(b, "kind", "Lease");
    kl_build_key(b, "metadata");
    kl_build_object(b);
    kl_build_kstr(b, "name", w->name);
    kl_build_kstr(b, "namespace", w->ns);
    kl_build_key(b, "labels");
    kl_build_object(b);
    kl_build_kstr(b, KL_SHARD_LABEL, w->group);
    kl_build_end(b);
    kl_build_end(b);
    kl_build_key(b, "spec");
    kl_build_object(b);
    kl_build_kstr(b, "holderIdentity", w->identity);
    kl_build_kint(b, "leaseDurationSeconds", w->seconds);
    const kl_value *since = micro_time(w->wall);
    kl_build_kvalue(b, "acquireTime", since);
    kl_value_unref(since);
    kl_build_end(b);
    kl_build_end(b);
    return kl_builder_done(b);
}

const kl_value *kl_shard_lease_body(const kl_shard_words *w)
{
    const kl_value *base = w->base ? kl_value_ref(w->base) : fresh(w), *at = micro_time(w->wall),
                   *seconds = kl_value_of_int(w->seconds);
    char *text = annotation(w);
    const kl_value *said = kl_value_of_str(text);
    kl_free(text);
    const kl_value *a = kl_value_with_at(base, said, "metadata", "annotations", KL_SHARD_ANNOTATION, NULL);
    const kl_value *b = kl_value_with_at(a, at, "spec", "renewTime", NULL);
    const kl_value *c = kl_value_with_at(b, seconds, "spec", "leaseDurationSeconds", NULL);
    const kl_value *drop[] = {base, at, seconds, said, a, b};
    for (size_t i = 0; i < sizeof drop / sizeof *drop; i++)
        kl_value_unref(drop[i]);
    return c;
}

/* --- names -------------------------------------------------------------------------------- */

/* `text` as a lawful name: lower case letters, digits, '-' and '.', with a letter or digit at both ends. A
 * changed text gets a hash, so that names stay different. */
static char *lawful(const char *text, size_t max)
{
    size_t n = strlen(text);
    char *out = kl_strdup(text);
    bool changed = n > max;
    for (size_t i = 0; i < n; i++) {
        bool edge = !i || i + 1 == n || text[i - 1] == '.' || text[i + 1] == '.';
        char c = (char)tolower((unsigned char)text[i]);
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (!edge && (c == '-' || c == '.'))))
            c = edge ? 'x' : '-';
        changed |= c != text[i];
        out[i] = c;
    }
    if (!changed)
        return out;
    size_t room = max - 9;
    char *marked = kl_sprintf(
        "%.*s-%08x", (int)(n < room ? n : room), out, (unsigned)(kl_ring_point(text, n) >> 32));
    kl_free(out);
    if (n > room && (marked[room - 1] == '-' || marked[room - 1] == '.'))
        marked[room - 1] = 'x';
    return marked;
}

char *kl_shard_lease_name(const char *group, const char *identity)
{
    char *plain = kl_sprintf("%s-shard-%s", group, identity), *name = lawful(plain, NAME_MAX_BYTES);
    kl_free(plain);
    return name;
}

char *kl_shard_group_label(const char *group) { return lawful(group, LABEL_MAX); }
