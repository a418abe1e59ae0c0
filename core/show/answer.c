/* answer.c - answers are written as JSON text or as protobuf at once; YAML is made of the JSON, for people
 * who read one object. */
#include "show/answer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/object.h"
#include "show/render.h"
#include "show/table.h"
#include "yaml/yaml.h"
#include "wire/proto.h"

#define META_V1 "meta.k8s.io/v1"
#define METADATA_KIND "PartialObjectMetadata"
#define INITIAL_END "k8s.io/initial-events-end"

/* The JSON in `text` as YAML at the end of `out`. */
static kl_status add_yaml(const kl_buf *text, kl_buf *out, kl_err *err)
{
    const kl_value *v = NULL;
    kl_status st = kl_value_decode(kl_buf_str(text), text->len, &v, err);
    if (!st)
        st = kl_yaml_encode_sorted(v, out);
    kl_value_unref(v);
    return st;
}

/* --- one object --------------------------------------------------------------------------- */

static void metadata_json(const kl_value *o, kl_buf *out)
{
    kl_buf_puts(out, "{\"kind\":\"" METADATA_KIND "\",\"apiVersion\":\"" META_V1 "\",\"metadata\":");
    kl_value_encode(kl_value_get(o, "metadata"), out);
    kl_buf_putc(out, '}');
}

static void table_head(const kl_value *version, kl_buf *out)
{
    kl_buf_puts(out, "{\"kind\":\"Table\",\"apiVersion\":\"" META_V1 "\",\"metadata\":{\"resourceVersion\":");
    kl_value_encode(version, out);
    kl_buf_puts(out, "},");
}

/* Writes an object as JSON. `o` is in the version of the answer. */
static void object_json(
    const kl__kind *k, const kl_show_form *form, const kl_value *o, bool columns, kl_time now, kl_buf *out)
{
    if (form->kind == KL_FORM_WHOLE) {
        kl_value_encode(o, out);
        return;
    }
    if (form->kind == KL_FORM_METADATA) {
        metadata_json(o, out);
        return;
    }
    table_head(kl_value_at(o, "metadata", "resourceVersion", NULL), out);
    if (columns)
        kl_show_columns(k, out);
    else
        kl_buf_puts(out, "\"columnDefinitions\":null");
    kl_buf_puts(out, ",\"rows\":[");
    kl_show_row(k, form, o, now, out);
    kl_buf_puts(out, "]}");
}

/* What protobuf calls the objects of an answer; the caller frees *version. */
static const char *proto_kind(const kl__kind *k, const kl_show_form *form, char **version)
{
    bool metadata = form->kind == KL_FORM_METADATA;
    *version = metadata ? kl_strdup(META_V1) : kl__kind_api_version(k);
    return metadata ? METADATA_KIND : k->kind;
}

static kl_status object_proto(
    const kl__kind *k, const kl_show_form *form, const kl_value *o, kl_buf *out, kl_err *err)
{
    char *version;
    const char *kind = proto_kind(k, form, &version);
    kl_status st = kl_proto_write(version, kind, o, out, err);
    kl_free(version);
    return st;
}

kl_status kl_show_object(const kl__kind *k, const kl_show_form *form, const kl_value *stored, kl_time now,
    kl_buf *out, kl_err *err)
{
    kl_status st = kl_show_fits(k, form, false, err);
    if (st)
        return st;
    const kl_value *o = kl_render_version(k, stored);
    kl_buf text = KL_BUF_INIT;
    if (form->media == KL_MEDIA_PROTOBUF)
        st = object_proto(k, form, o, out, err);
    else
        object_json(k, form, o, true, now, form->media == KL_MEDIA_YAML ? &text : out);
    if (form->media == KL_MEDIA_YAML)
        st = add_yaml(&text, out, err);
    kl_buf_fini(&text);
    kl_value_unref(o);
    return st;
}

kl_show_media kl_show_value(const kl_value *v, kl_show_media media, kl_buf *out)
{
    const char *version = kl_value_str_at(v, "apiVersion", NULL), *kind = kl_object_kind(v);
    if (media == KL_MEDIA_PROTOBUF && kl_proto_has(version, kind)
        && !kl_proto_write(version, kind, v, out, NULL))
        return media;
    if (media == KL_MEDIA_YAML && !kl_yaml_encode_sorted(v, out))
        return media;
    kl_buf_clear(out);
    kl_value_encode(v, out);
    return KL_MEDIA_JSON;
}

/* --- lists -------------------------------------------------------------------------------- */

/* Items of built-in lists carry no kind. */
static void item_without_kind(const kl_value *o, kl_buf *out)
{
    bool first = true;
    kl_buf_putc(out, '{');
    for (size_t i = 0; i < kl_value_len(o); i++) {
        const char *key;
        size_t n;
        const kl_value *v = kl_value_member(o, i, &key, &n);
        if (!strcmp(key, "apiVersion") || !strcmp(key, "kind"))
            continue;
        kl_buf_printf(out, "%s\"%s\":", first ? "" : ",", key);
        kl_value_encode(v, out);
        first = false;
    }
    kl_buf_putc(out, '}');
}

static int by_precedence(const void *a, const void *b)
{
    const kl_value *x = *(const kl_value *const *)a, *y = *(const kl_value *const *)b;
    int64_t m = kl_value_int_at(x, 0, "spec", "matchingPrecedence", NULL),
            n = kl_value_int_at(y, 0, "spec", "matchingPrecedence", NULL);
    return m != n ? (m > n) - (m < n) : strcmp(kl_object_name(x), kl_object_name(y));
}

void kl_show_sort(const kl__kind *k, const kl_show_form *form, const kl_value **objects, size_t n)
{
    if (form->kind == KL_FORM_TABLE && kl__kind_among(k, "flowcontrol.apiserver.k8s.io/flowschemas"))
        qsort(objects, n, sizeof *objects, by_precedence);
}

kl_status kl_show_list_add(kl_show_list *l, const kl_value *stored, kl_err *err)
{
    const kl_value *o = kl_render_version(l->k, stored);
    kl_status st = KL_OK;
    if (l->form->media == KL_MEDIA_PROTOBUF) {
        char *version;
        const char *kind = proto_kind(l->k, l->form, &version);
        st = kl_proto_write_item(version, kind, o, &l->items, err);
        kl_free(version);
    } else {
        kl_buf_puts(&l->items, l->n ? "," : "");
        if (l->form->kind == KL_FORM_TABLE)
            kl_show_row(l->k, l->form, o, l->now, &l->items);
        else if (l->form->kind == KL_FORM_WHOLE && !l->k->custom)
            item_without_kind(o, &l->items);
        else
            object_json(l->k, l->form, o, false, l->now, &l->items);
    }
    l->n++;
    kl_value_unref(o);
    return st;
}

static const kl_value *list_metadata(uint64_t rv, const char *token, int64_t left)
{
    char *version = kl_sprintf("%" PRIu64, rv);
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "resourceVersion", version);
    if (token)
        kl_build_kstr(b, "continue", token);
    if (left >= 0)
        kl_build_kint(b, "remainingItemCount", left);
    kl_build_end(b);
    kl_free(version);
    return kl_builder_done(b);
}

static void list_json(kl_show_list *l, const char *version, const kl_value *metadata, kl_buf *out)
{
    const char *kind = l->form->kind == KL_FORM_TABLE ? "Table"
        : l->form->kind == KL_FORM_METADATA           ? METADATA_KIND "List"
                                                      : l->k->list_kind;
    kl_buf_printf(out, "{\"kind\":\"%s\",\"apiVersion\":\"%s\",\"metadata\":", kind,
        l->form->kind == KL_FORM_WHOLE ? version : META_V1);
    kl_value_encode(metadata, out);
    kl_buf_putc(out, ',');
    if (l->form->kind == KL_FORM_TABLE)
        kl_show_columns(l->k, out);
    kl_buf_puts(out, l->form->kind == KL_FORM_TABLE ? ",\"rows\":[" : "\"items\":[");
    kl_buf_add(out, kl_buf_str(&l->items), l->items.len);
    kl_buf_puts(out, "]}");
}

kl_status kl_show_list_end(
    kl_show_list *l, uint64_t rv, const char *token, int64_t left, kl_buf *out, kl_err *err)
{
    char *version = kl__kind_api_version(l->k);
    const kl_value *metadata = list_metadata(rv, token, left);
    kl_buf text = KL_BUF_INIT;
    kl_status st = kl_buf_status(&l->items);
    if (st)
        out->failed = true; /* the answer is too large, which also counts as failed */
    else if (l->form->media != KL_MEDIA_PROTOBUF)
        list_json(l, version, metadata, l->form->media == KL_MEDIA_YAML ? &text : out);
    else if (l->form->kind == KL_FORM_METADATA)
        st = kl_proto_write_list(META_V1, METADATA_KIND "List", metadata, &l->items, out, err);
    else
        st = kl_proto_write_list(version, l->k->list_kind, metadata, &l->items, out, err);
    if (!st && l->form->media == KL_MEDIA_YAML)
        st = add_yaml(&text, out, err);
    kl_buf_fini(&text);
    kl_value_unref(metadata);
    kl_free(version);
    return st == KL_ETOOBIG ? KL_OK : st;
}

void kl_show_list_fini(kl_show_list *l) { kl_buf_fini(&l->items); }

/* --- events ------------------------------------------------------------------------------- */

kl_status kl_show_event(
    const kl__kind *k, const kl_show_form *form, const kl_show_change *c, kl_buf *out, kl_err *err)
{
    const kl_value *o = kl_render_version(k, c->stored);
    kl_status st = KL_OK;
    if (form->media == KL_MEDIA_PROTOBUF) {
        kl_buf raw = KL_BUF_INIT;
        st = object_proto(k, form, o, &raw, err);
        if (!st)
            st = kl_proto_write_event(c->type, &raw, out);
        kl_buf_fini(&raw);
    } else {
        kl_buf_printf(out, "{\"type\":\"%s\",\"object\":", c->type);
        object_json(k, form, o, c->columns, c->now, out);
        kl_buf_puts(out, "}\n");
    }
    kl_value_unref(o);
    return st;
}

/* An object with a version and nothing else, as a bookmark carries it. */
static const kl_value *marked(const char *kind, const char *api_version, uint64_t rv, bool initial_end)
{
    char *version = kl_sprintf("%" PRIu64, rv);
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "kind", kind);
    kl_build_kstr(b, "apiVersion", api_version);
    kl_build_key(b, "metadata");
    kl_build_object(b);
    kl_build_kstr(b, "resourceVersion", version);
    if (initial_end) {
        kl_build_key(b, "annotations");
        kl_build_object(b);
        kl_build_kstr(b, INITIAL_END, "true");
        kl_build_end(b);
    }
    kl_build_end(b);
    kl_build_end(b);
    kl_free(version);
    return kl_builder_done(b);
}

kl_status kl_show_bookmark(
    const kl__kind *k, const kl_show_form *form, uint64_t rv, bool initial_end, kl_buf *out, kl_err *err)
{
    char *version = kl__kind_api_version(k);
    bool whole = form->kind == KL_FORM_WHOLE;
    const kl_value *o = marked(whole ? k->kind : METADATA_KIND, whole ? version : META_V1, rv, initial_end);
    kl_status st = KL_OK;
    kl_free(version);
    if (form->media == KL_MEDIA_PROTOBUF) {
        kl_buf raw = KL_BUF_INIT;
        st = object_proto(k, form, o, &raw, err);
        if (!st)
            st = kl_proto_write_event("BOOKMARK", &raw, out);
        kl_buf_fini(&raw);
    } else {
        kl_buf_puts(out, "{\"type\":\"BOOKMARK\",\"object\":");
        if (form->kind == KL_FORM_TABLE) {
            table_head(kl_value_at(o, "metadata", "resourceVersion", NULL), out);
            kl_buf_puts(out, "\"columnDefinitions\":null,\"rows\":[{\"cells\":[],\"object\":");
            kl_value_encode(o, out);
            kl_buf_puts(out, "}]}");
        } else
            kl_value_encode(o, out);
        kl_buf_puts(out, "}\n");
    }
    kl_value_unref(o);
    return st;
}

void kl_show_error_event(const kl_value *status, const kl_show_form *form, kl_buf *out)
{
    if (form->media == KL_MEDIA_PROTOBUF) {
        kl_buf raw = KL_BUF_INIT;
        kl_show_value(status, form->media, &raw);
        (void)!kl_proto_write_event("ERROR", &raw, out);
        kl_buf_fini(&raw);
        return;
    }
    kl_buf_puts(out, "{\"type\":\"ERROR\",\"object\":");
    kl_value_encode(status, out);
    kl_buf_puts(out, "}\n");
}
