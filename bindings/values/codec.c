/* codec.c - text in, text out: JSON and YAML for scripts, and the name under which equal values are one
 * table key. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/escape.h"
#include "base/map.h"
#include "base/mem.h"
#include "state/border.h"
#include "state/ceiling.h"
#include "yaml/yaml.h"

static void free_buf(void *ptr)
{
    kl_buf_fini(ptr);
    kl_free(ptr);
}

static const lkl_class buf_class = {.name = "kubelua.buf", .free = free_buf};

/* The text exists twice at the end: in the buffer, and as Lua's string. */
static void limit(lua_State *L, kl_buf *b, bool collected)
{
    size_t left = lkl_ceiling_left(L, collected);
    kl_buf_clear(b);
    b->max = left < SIZE_MAX ? left / 2 + 1 : 0;
}

/* Pushes a buffer in a box on the stack, so no error leaks it. Its ceiling is what is left of the state's
 * memory. */
static kl_buf *push_buf(lua_State *L)
{
    lkl_box *box = lkl_box_new(L, &buf_class, 0);
    box->ptr = kl_new(kl_buf);
    limit(L, box->ptr, false);
    return box->ptr;
}

/* Whether to try again: the text did not fit, and garbage was collected since. True once at most. */
static bool again(lua_State *L, kl_buf *b, int *tries)
{
    if (!b->failed || !b->max || (*tries)++)
        return false;
    limit(L, b, true);
    return true;
}

/* Replaces the buffer's box on top of the stack by its text. */
static void buf_to_string(lua_State *L, kl_buf *b)
{
    kl_status st = kl_buf_status(b);
    if (st) {
        lkl_box_close(L, -1);
        lkl_ceiling_ask(L, lkl_ceiling_max(L));
        luaL_error(L, "the text would be larger than %d MiB", (int)(KL_BUF_MAX >> 20));
    }
    lua_pushlstring(L, kl_buf_str(b), b->len);
    lkl_box_close(L, -2);
    lua_remove(L, -2);
}

void lkl__push_json(lua_State *L, const kl_value *v, bool pretty)
{
    kl_buf *b = push_buf(L);
    int tries = 0;
    do
        (void)(pretty ? kl_value_encode_pretty(v, b) : kl_value_encode(v, b));
    while (again(L, b, &tries));
    buf_to_string(L, b);
}

/* --- a canonical text: keys sorted -------------------------------------------------------- */

typedef struct member {
    const char *key;
    size_t n;
    const kl_value *v;
} member;

static int by_key(const void *a, const void *b)
{
    const member *x = a, *y = b;
    int order = memcmp(x->key, y->key, x->n < y->n ? x->n : y->n);
    return order ? order : x->n < y->n ? -1 : x->n > y->n;
}

static void canonical(const kl_value *v, kl_buf *b)
{
    size_t n = kl_value_len(v);
    if (kl_value_type(v) == KL_ARRAY) {
        (void)kl_buf_putc(b, '[');
        for (size_t i = 0; i < n; i++) {
            canonical(kl_value_item(v, i), b);
            (void)kl_buf_putc(b, ',');
        }
        (void)kl_buf_putc(b, ']');
    } else if (kl_value_type(v) == KL_OBJECT) {
        member *m = kl_new_array(member, n + 1);
        for (size_t i = 0; i < n; i++)
            m[i].v = kl_value_member(v, i, &m[i].key, &m[i].n);
        qsort(m, n, sizeof *m, by_key);
        (void)kl_buf_putc(b, '{');
        for (size_t i = 0; i < n; i++) {
            (void)kl_buf_printf(b, "%zu:", m[i].n);
            (void)kl_buf_add(b, m[i].key, m[i].n);
            canonical(m[i].v, b);
        }
        (void)kl_buf_putc(b, '}');
        kl_free(m);
    } else {
        (void)kl_value_encode(v, b);
    }
}

/* kube.id(x): equal values give the same string (scalars: themselves). 128 bits of a hash that is seeded
 * per process. */
static int id(lua_State *L)
{
    luaL_checkany(L, 1);
    if (lua_type(L, 1) != LUA_TUSERDATA && lua_type(L, 1) != LUA_TTABLE) {
        lua_settop(L, 1);
        return 1;
    }
    const kl_value *v = lkl__value_at(L, 1, "the value");
    kl_buf *b = push_buf(L);
    int tries = 0;
    do
        canonical(v, b);
    while (again(L, b, &tries));
    if (kl_buf_status(b))
        buf_to_string(L, b);
    uint64_t high = kl_hash(b->data, b->len);
    (void)kl_buf_putc(b, '\n');
    uint64_t low = kl_hash(b->data, b->len);
    kl_buf_clear(b);
    (void)kl_buf_printf(b, "%016llx%016llx", (unsigned long long)high, (unsigned long long)low);
    buf_to_string(L, b);
    return 1;
}

/* Reading a text is one call that no budget can end, so a script's text is bounded: JSON as objects are;
 * YAML, which takes thirty times as long per byte, at about the same time. */
#define JSON_TEXT_MAX ((size_t)16 << 20)
#define YAML_TEXT_MAX ((size_t)2 << 20)

static void check_length(lua_State *L, size_t n, size_t max)
{
    if (lkl__border(L)->counted && n > max)
        luaL_argerror(L, 1,
            lua_pushfstring(L, "a string that a script decodes may have at most %d MiB", (int)(max >> 20)));
}

/* --- JSON --------------------------------------------------------------------------------- */

/* kube.encode(x, pretty): JSON text */
static int encode(lua_State *L)
{
    luaL_checkany(L, 1);
    bool pretty = lua_toboolean(L, 2);
    const kl_value *v = lkl__value_at(L, 1, "the value");
    lkl__push_json(L, v, pretty);
    return 1;
}

/* Bytes that reading takes for each byte of the text, at most: "[]," is the shortest thing. */
#define READING 4

/* kube.decode(text [, {duplicates = "last"}]): scalars and views; raises a structured error of kind
 * "syntax". A repeated key is an error, or with "last" replaces the earlier one, as Go reads what people
 * write into annotations. */
static int decode(lua_State *L)
{
    size_t n;
    const char *text = luaL_checklstring(L, 1, &n);
    const kl_value *v = NULL;
    bool last = false;
    check_length(L, n, JSON_TEXT_MAX);
    if (!lua_isnoneornil(L, 2)) {
        luaL_checktype(L, 2, LUA_TTABLE);
        last = lua_getfield(L, 2, "duplicates") == LUA_TSTRING && strcmp(lua_tostring(L, -1), "last") == 0;
        luaL_argcheck(L, last, 2, "expected { duplicates = \"last\" }");
    }
    kl_err err = KL_ERR_INIT;
    lkl_ceiling_ask(L, READING * n);
    lkl_box *box = lkl_value_box(L);
    if ((last ? kl_value_decode_last : kl_value_decode)(text, n, &v, &err))
        return lkl_raise(L, &err, "decode", NULL, NULL);
    box->ptr = (void *)v;
    lkl_push_value(L, v);
    lkl_box_close(L, -2);
    return 1;
}

/* --- YAML --------------------------------------------------------------------------------- */

typedef struct documents {
    size_t n, cap;
    const kl_value **v;
} documents;

static void free_documents(void *ptr)
{
    documents *d = ptr;
    for (size_t i = 0; i < d->n; i++)
        kl_value_unref(d->v[i]);
    kl_free(d->v);
    kl_free(d);
}

static const lkl_class documents_class = {.name = "kubelua.documents", .free = free_documents};

static kl_status add_document(void *arg, const kl_value *v, kl_err *err)
{
    documents *d = arg;
    (void)err;
    if (d->n == d->cap) {
        d->cap = d->cap ? d->cap * 2 : 8;
        d->v = kl_realloc(d->v, d->cap * sizeof *d->v);
    }
    d->v[d->n++] = v;
    return KL_OK;
}

/* Reads an open file to its end and then its documents, so that a text of gigabytes is in memory once, and
 * only while it is read. */
static kl_status read_file(FILE *file, const char *name, documents *d, kl_err *err)
{
    char piece[65536];
    kl_buf text = KL_BUF_INIT;
    kl_status st = KL_OK;
    for (size_t n; !st && (n = fread(piece, 1, sizeof piece, file)) > 0;)
        st = kl_buf_add(&text, piece, n);
    if (ferror(file))
        st = kl_fail(err, KL_EIO, "cannot read %s: %s", name, strerror(errno));
    if (!st)
        st = kl_yaml_each(name, kl_buf_str(&text), text.len, add_document, d, err);
    kl_buf_fini(&text);
    return st;
}

/* kube.yaml(text or open file, name): a list of documents as views; `name` stands in messages */
static int yaml(lua_State *L)
{
    size_t n = 0;
    const luaL_Stream *file = luaL_testudata(L, 1, LUA_FILEHANDLE);
    const char *text = file ? NULL : luaL_checklstring(L, 1, &n), *name = lkl__opt_text(L, 2, "yaml");
    luaL_argcheck(L, !file || file->closef, 1, "the file is closed");
    check_length(L, n, YAML_TEXT_MAX);
    kl_err err = KL_ERR_INIT;
    lkl_ceiling_ask(L, READING * n);
    lkl_box *box = lkl_box_new(L, &documents_class, 0);
    documents *d = box->ptr = kl_new(documents);
    if (file ? read_file(file->f, name, d, &err) : kl_yaml_each(name, text, n, add_document, d, &err))
        return lkl_raise(L, &err, "read", NULL, NULL);
    lua_createtable(L, (int)d->n, 0);
    for (size_t i = 0; i < d->n; i++) {
        lkl_push_value(L, d->v[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lkl_box_close(L, -2);
    return 1;
}

/* kube.to_yaml(x): one document in block style */
static int to_yaml(lua_State *L)
{
    kl_err err = KL_ERR_INIT;
    luaL_checkany(L, 1);
    const kl_value *v = lkl__value_at(L, 1, "the value");
    kl_buf *b = push_buf(L);
    int tries = 0;
    kl_status st;
    do
        st = kl_yaml_encode(v, b);
    while (again(L, b, &tries));
    if (st && !b->failed) {
        (void)kl_fail(&err, KL_EINVAL, "this value cannot be written as YAML");
        return lkl_raise(L, &err, "encode", NULL, NULL);
    }
    buf_to_string(L, b);
    return 1;
}

/* core.visible(text, one_line): a text of others for a terminal or a comment (base/escape.h) */
static int visible(lua_State *L)
{
    size_t n;
    const char *text = luaL_checklstring(L, 1, &n);
    bool one_line = lua_toboolean(L, 2);
    kl_buf *b = push_buf(L);
    int tries = 0;
    do
        kl_visible_escape(b, text, n, one_line);
    while (again(L, b, &tries));
    buf_to_string(L, b);
    return 1;
}

void lkl__open_codec(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"id", id},
        {"encode", encode},
        {"decode", decode},
        {"yaml", yaml},
        {"to_yaml", to_yaml},
        {NULL, NULL},
    };
    luaL_setfuncs(L, functions, 0);
}

void lkl__open_visible(lua_State *L)
{
    lua_pushcfunction(L, visible);
    lua_setfield(L, -2, "visible");
}
