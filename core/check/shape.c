/* shape.c - objects as Go prints its structs: in the order of declaration, all members, under their names. */
#include "check/check.h"

#include <ctype.h>
#include <string.h>

#include "base/mem.h"

/* The member of an object under a Go name: "APIGroups" is "apiGroups", "UID" is "uid". */
static void json_name(const char *go, size_t n, char out[64])
{
    size_t capitals = 0;
    n = n < 63 ? n : 63;
    memcpy(out, go, n);
    out[n] = '\0';
    while (capitals < n && isupper((unsigned char)out[capitals]))
        capitals++;
    size_t lower = capitals > 1 && capitals < n ? capitals - 1 : capitals;
    for (size_t i = 0; i < lower; i++)
        out[i] = (char)tolower((unsigned char)out[i]);
}

static const char *put_struct(kl_builder *b, const kl_value *o, const char *p);

/* What stands in brackets is put once for each item; *p becomes its end. */
static void put_list(kl_builder *b, const kl_value *list, const char **p)
{
    const char *end = put_struct(NULL, NULL, *p + 1);
    if (b && !list)
        kl_build_null(b);
    else if (b) {
        kl_build_array(b);
        for (size_t i = 0; i < kl_value_len(list); i++)
            put_struct(b, kl_value_item(list, i), *p + 1);
        kl_build_end(b);
    }
    *p = end + 1;
}

static void put_map(kl_builder *b, const kl_value *map, const char **p)
{
    const char *end = put_struct(NULL, NULL, *p + 1);
    if (b && !map)
        kl_build_null(b);
    else if (b) {
        kl__sorted members = kl__members(map);
        kl_build_object(b);
        for (size_t i = 0; i < members.len; i++) {
            kl_build_key(b, members.v[i].key);
            put_struct(b, members.v[i].v, *p + 1);
        }
        kl_build_end(b);
        kl_free(members.v);
    }
    *p = end + 1;
}

static void put_plain(kl_builder *b, const kl_value *v, char kind)
{
    if (!b)
        return;
    if (v)
        kl_build_value(b, v);
    else if (kind == '?')
        kl_build_null(b);
    else if (kind == '#')
        kl_build_int(b, 0);
    else if (kind == '!')
        kl_build_bool(b, false);
    else
        kl_build_str(b, "");
}

/* One member behind its name; returns where the next one begins. */
static const char *put_member(kl_builder *b, const kl_value *v, const char *p)
{
    char kind = *p;
    bool pointer = kind == '?' && p[1] == '{';
    p += kind == '?' || kind == '#' || kind == '!';
    if (*p == '[')
        put_list(b, v, &p);
    else if (*p == '<')
        put_map(b, v, &p);
    else if (*p == '{') {
        bool absent = pointer && !v;
        if (absent && b)
            kl_build_null(b);
        p = put_struct(absent ? NULL : b, v, p + 1) + 1;
    } else
        put_plain(b, v, kind);
    return p + (*p == ' ');
}

/* Puts a struct whose members begin at p; returns where they end. `b` NULL: puts nothing. */
static const char *put_struct(kl_builder *b, const kl_value *o, const char *p)
{
    if (b)
        kl_build_object(b);
    while (*p && !strchr("]}>", *p)) {
        char own[64];
        size_t n = strcspn(p, " =?#!{}[]<>"), alias = p[n] == '=' ? strcspn(p + n + 1, " ?#!{}[]<>") : 0;
        if (alias)
            json_name(p + n + 1, alias, own);
        else
            json_name(p, n, own);
        if (b)
            kl_build_keyn(b, p, n);
        p = put_member(b, kl_value_get(o, own), p + n + (alias ? alias + 1 : 0));
    }
    if (b)
        kl_build_end(b);
    return p;
}

const kl_value *kl__as_go(const kl_value *o, const char *members)
{
    kl_builder *b = kl_builder_new();
    put_struct(b, o, members);
    return kl_builder_done(b);
}
