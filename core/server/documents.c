/* documents.c - the objects of a file, which is read once.
 *
 *   between --{--> json --}--> between          what is no JSON: yaml, to the end of the file
 *
 * The items of a list in JSON are decoded one by one. `seen` has the text since the last document; it is
 * dropped with the first item of a list. Until then a document that turns out not to be JSON is read again,
 * as YAML: flow mappings begin alike. */
#include "server/documents.h"

#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "model/object.h"
#include "value/scan.h"
#include "yaml/yaml.h"
#include "wire/stream.h"

#define PIECE ((size_t)1 << 16)

typedef struct reader {
    const char *path;
    void (*take)(void *arg, const kl_value *object);
    bool (*wanted)(void *arg, const kl_value *item); /* NULL: all are */
    void *arg;
    kl_file *file;
    kl_buf seen;
    size_t line;  /* before `seen` */
    size_t given; /* how much of `seen` the YAML reader has */
    /* the present document in JSON, or NULL between two */
    kl_stream *json;
    kl__brackets in;
    size_t lines; /* of it, so far */
    bool listed;  /* it had an item */
    const kl_value **items;
    size_t len, cap;
} reader;

static bool is_list(const char *kind)
{
    return kind && strlen(kind) >= 4 && !strcmp(kind + strlen(kind) - 4, "List");
}

static size_t count_lines(const char *p, const char *end)
{
    size_t n = 0;
    while (p < end && (p = memchr(p, '\n', (size_t)(end - p))) != NULL) {
        n++;
        p++;
    }
    return n;
}

/* ------------------------------------------------------------------ documents */

/* Takes one item of a list, which may leave its type to the list. */
static void take_item(reader *r, const kl_value *item, const char *version, const char *list_kind)
{
    char *kind = kl_strndup(list_kind, strlen(list_kind) - 4);
    r->take(r->arg, *kind ? kl_object_with_type(item, version, kind) : kl_value_ref(item));
    kl_free(kind);
}

/* Takes one document, and owns `v`. */
static kl_status take_document(void *arg, const kl_value *v, kl_err *err)
{
    (void)err;
    reader *r = arg;
    const kl_value *items = kl_value_get(v, "items");
    const char *kind = kl_object_kind(v);
    if (kl_value_type(items) != KL_ARRAY || !is_list(kind)) {
        r->take(r->arg, v);
        return KL_OK;
    }
    for (size_t i = 0; i < kl_value_len(items); i++)
        take_item(r, kl_value_item(items, i), kl_object_api_version(v), kind);
    kl_value_unref(v);
    return KL_OK;
}

/* ------------------------------------------------------------------ JSON */

static kl_status keep_item(void *arg, const kl_value *object, kl_err *err)
{
    (void)err;
    reader *r = arg;
    kl_buf_fini(&r->seen); /* only a document without items is decoded from its text */
    r->listed = true;
    if (r->wanted && !r->wanted(r->arg, object)) {
        kl_value_unref(object);
        return KL_OK;
    }
    if (r->len == r->cap) {
        r->cap = r->cap ? r->cap * 2 : 64;
        r->items = kl_realloc(r->items, r->cap * sizeof *r->items);
    }
    r->items[r->len++] = object;
    return KL_OK;
}

static void json_begin(reader *r)
{
    r->line += count_lines(r->seen.data, r->seen.data + r->seen.len);
    kl_buf_clear(&r->seen);
    r->json = kl_stream_list_new(&(kl_stream_handler){.item = keep_item, .arg = r});
    r->in = (kl__brackets){0};
    r->lines = 0;
}

static void json_drop(reader *r)
{
    for (size_t i = 0; i < r->len; i++)
        kl_value_unref(r->items[i]);
    r->len = 0;
    r->listed = false;
    kl_stream_free(r->json);
    r->json = NULL;
}

/* The document of the envelope and its items, if it is no list. */
static const kl_value *with_items(const reader *r, const kl_value *envelope)
{
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (size_t i = 0; i < r->len; i++)
        kl_build_value(b, r->items[i]);
    kl_build_end(b);
    const kl_value *items = kl_builder_done(b), *v = kl_value_with(envelope, "items", items);
    kl_value_unref(items);
    return v;
}

/* Takes what the document has, which ended. */
static kl_status json_end(reader *r, kl_err *err)
{
    const kl_value *v = NULL;
    kl_status st = r->listed ? kl_stream_finish(r->json, &v, err)
                             : kl_value_decode(r->seen.data, r->seen.len, &v, err);
    if (st)
        return st;
    const char *kind = kl_object_kind(v);
    if (!r->listed)
        st = take_document(r, v, err);
    else if (!is_list(kind))
        r->take(r->arg, with_items(r, v));
    else
        for (size_t i = 0; i < r->len; i++)
            take_item(r, r->items[i], kl_object_api_version(v), kind);
    if (r->listed)
        kl_value_unref(v);
    json_drop(r);
    r->line += r->lines;
    kl_buf_clear(&r->seen);
    return st;
}

/* Reads on to the end of the document or of the piece; *at moves. A document without items may be something
 * else than a list, and is decoded when it is whole. */
static kl_status json_piece(reader *r, const char **at, const char *end, kl_err *err)
{
    const char *from = *at;
    bool whole;
    *at = kl__brackets_close(&r->in, from, end, &whole);
    if (!r->listed && kl_buf_add(&r->seen, from, (size_t)(*at - from)))
        return kl_fail(err, KL_ETOOBIG, "a document may have at most %zu bytes", KL_BUF_MAX);
    r->lines += count_lines(from, *at);
    kl_status st = kl_stream_feed(r->json, from, (size_t)(*at - from), err);
    if (r->listed && st)
        return st;
    return whole ? json_end(r, err) : KL_OK;
}

/* ------------------------------------------------------------------ between documents */

/* Skips white space and a line of dashes. *json: a document in JSON begins at *at. False: it is YAML, whose
 * beginning is in `seen`. A line of white space need not be kept for it. */
static bool between(reader *r, const char **at, const char *end, bool *json)
{
    static const char space[] = " \t\r\n-";
    for (; *at < end && **at && strchr(space, **at); ++*at) {
        kl_buf_putc(&r->seen, **at);
        if (**at == '\n' && !memchr(r->seen.data, '-', r->seen.len)) {
            kl_buf_clear(&r->seen);
            r->line++;
        }
    }
    size_t dashes = 0;
    for (size_t i = 0; i < r->seen.len; i++)
        dashes += r->seen.data[i] == '-';
    *json = *at < end && **at == '{' && (!dashes || dashes == 3);
    return *json || *at == end;
}

/* ------------------------------------------------------------------ YAML */

static kl_status next_yaml(void *from, char *piece, size_t room, size_t *got, kl_err *err)
{
    reader *r = from;
    size_t left = r->seen.len - r->given;
    if (!left)
        return kl_file_next(r->file, piece, room, got, err);
    *got = left < room ? left : room;
    memcpy(piece, r->seen.data + r->given, *got);
    r->given += *got;
    if (r->given == r->seen.len) {
        kl_buf_fini(&r->seen);
        r->given = 0;
    }
    return KL_OK;
}

static bool wanted_yaml(void *from, const kl_value *item)
{
    reader *r = from;
    return r->wanted(r->arg, item);
}

/* Reads to the end of the file what `seen` begins. */
static kl_status read_yaml(reader *r, kl_err *err)
{
    kl_yaml_source source = {.next = next_yaml, .from = r, .line = r->line};
    source.wanted = r->wanted ? wanted_yaml : NULL;
    return kl_yaml_each_from(r->path, &source, take_document, r, err);
}

/* ------------------------------------------------------------------ the file */

/* Reads one piece. *yaml: it is no JSON; `seen` has it from the last document on. */
static kl_status read_piece(reader *r, const char *piece, size_t n, bool *yaml, kl_err *err)
{
    const char *at = piece, *end = piece + n;
    kl_status st = KL_OK;
    while (!st && !*yaml && at < end) {
        bool json = r->json != NULL;
        if (!json && !between(r, &at, end, &json))
            *yaml = true;
        else if (json && !r->json)
            json_begin(r);
        if (!*yaml && json)
            st = json_piece(r, &at, end, err);
    }
    if (st == KL_ESYNTAX && !r->listed) {
        kl_err_fini(err);
        *yaml = true;
    }
    if (*yaml)
        kl_buf_add(&r->seen, at, (size_t)(end - at));
    return *yaml ? KL_OK : st;
}

static kl_status read_pieces(reader *r, bool *yaml, kl_err *err)
{
    char *piece = kl_new_array(char, PIECE);
    size_t n = 1;
    kl_status st = KL_OK;
    while (!st && !*yaml && n) {
        st = kl_file_next(r->file, piece, PIECE, &n, err);
        if (st)
            break;
        st = n                    ? read_piece(r, piece, n, yaml, err)
            : !*yaml && r->listed ? kl_stream_finish(r->json, NULL, err)
                                  : KL_OK;
        if (st)
            kl_err_prefix(err, "%s:%zu", r->path, r->line + 1);
    }
    kl_free(piece);
    return st;
}

kl_status kl_documents_each(const char *path, bool (*wanted)(void *arg, const kl_value *item),
    void (*take)(void *arg, const kl_value *object), void *arg, kl_err *err)
{
    reader r = {.path = path, .take = take, .wanted = wanted, .arg = arg};
    bool yaml = false;
    kl_status st = kl_file_open_given(path, &r.file, err);
    if (st)
        return st;
    st = read_pieces(&r, &yaml, err);
    if (!st && (yaml || r.json))
        st = read_yaml(&r, err);
    json_drop(&r);
    kl_free(r.items);
    kl_buf_fini(&r.seen);
    kl_file_close(r.file);
    return st;
}
