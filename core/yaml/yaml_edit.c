/* yaml_edit.c - one string of a YAML text changed, the rest left alone.
 *
 * libyaml says where each node stands; the new text goes there. It counts characters, so places are turned
 * into bytes first. */
#include "yaml/yaml.h"

#include <string.h>
#include <yaml.h>
#include "base/mem.h"

static const char *text_of(const yaml_node_t *n)
{
    return n && n->type == YAML_SCALAR_NODE ? (const char *)n->data.scalar.value : NULL;
}

/* The pair of a mapping with that key, or NULL. */
static yaml_node_pair_t *pair_of(yaml_document_t *d, yaml_node_t *map, const char *key)
{
    if (!map || map->type != YAML_MAPPING_NODE)
        return NULL;
    for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top; p++) {
        const char *s = text_of(yaml_document_get_node(d, p->key));
        if (s && !strcmp(s, key))
            return p;
    }
    return NULL;
}

static yaml_node_t *item_of(yaml_document_t *d, yaml_node_t *list, const char *step)
{
    const char *eq = strchr(step, '=');
    char *key = eq ? kl_strndup(step, (size_t)(eq - step)) : NULL;
    yaml_node_t *found = NULL;
    for (yaml_node_item_t *i = list->data.sequence.items.start;
         key && !found && i < list->data.sequence.items.top; i++) {
        yaml_node_t *item = yaml_document_get_node(d, *i);
        yaml_node_pair_t *p = pair_of(d, item, key);
        const char *s = p ? text_of(yaml_document_get_node(d, p->value)) : NULL;
        if (s && !strcmp(s, eq + 1))
            found = item;
    }
    kl_free(key);
    return found;
}

static size_t byte_of(const char *text, size_t n, size_t characters)
{
    size_t at = 0;
    for (; at < n && characters; characters--)
        for (at++; at < n && ((unsigned char)text[at] & 0xc0) == 0x80;)
            at++;
    return at;
}

/* Writes a quoted text: JSON's quotes are YAML's double quotes. */
static void put_quoted(kl_buf *out, const char *s)
{
    const kl_value *v = kl_value_of_str(s);
    char *json = kl_value_to_json(v);
    kl_buf_puts(out, json);
    kl_free(json);
    kl_value_unref(v);
}

/* A change that is under way. */
typedef struct change {
    const char *name, *text; /* name: for messages */
    size_t n;
    const char *const *path;
    const char *value;
    kl_buf *out;
} change;

static void splice(const change *c, size_t from, size_t to, const kl_buf *middle)
{
    kl_buf_add(c->out, c->text, from);
    kl_buf_add(c->out, middle->data, middle->len);
    kl_buf_add(c->out, c->text + to, c->n - to);
}

static void replace(const change *c, const yaml_node_t *old)
{
    kl_buf fresh = KL_BUF_INIT;
    bool lines = old->data.scalar.style == YAML_LITERAL_SCALAR_STYLE
        || old->data.scalar.style == YAML_FOLDED_SCALAR_STYLE;
    size_t from = byte_of(c->text, c->n, old->start_mark.index),
           to = byte_of(c->text, c->n, old->end_mark.index);
    if (from == to && from && c->text[from - 1] == ':')
        kl_buf_putc(&fresh, ' '); /* for "key:" without a value */
    put_quoted(&fresh, c->value);
    if (lines)
        kl_buf_putc(&fresh, '\n');
    splice(c, from, to, &fresh);
    kl_buf_fini(&fresh);
}

/* Inserts a new key of a mapping, before its first one. */
static void insert(const change *c, const yaml_node_t *map, const yaml_node_t *first, const char *key)
{
    kl_buf fresh = KL_BUF_INIT;
    size_t at = byte_of(c->text, c->n, first->start_mark.index);
    put_quoted(&fresh, key);
    kl_buf_puts(&fresh, ": ");
    put_quoted(&fresh, c->value);
    if (map->data.mapping.style == YAML_FLOW_MAPPING_STYLE)
        kl_buf_puts(&fresh, ", ");
    else
        kl_buf_printf(&fresh, "\n%*s", (int)first->start_mark.column, "");
    splice(c, at, at, &fresh);
    kl_buf_fini(&fresh);
}

static kl_status set(const change *c, yaml_document_t *d, kl_err *err)
{
    const char *const *path = c->path;
    yaml_node_t *at = yaml_document_get_root_node(d);
    for (; path[1]; path++) {
        yaml_node_pair_t *p = pair_of(d, at, *path);
        at = p                                     ? yaml_document_get_node(d, p->value)
            : at && at->type == YAML_SEQUENCE_NODE ? item_of(d, at, *path)
                                                   : NULL;
        if (!at)
            return kl_fail(err, KL_ENOTFOUND, "%s: there is no %s", c->name, *path);
    }
    yaml_node_pair_t *p = pair_of(d, at, *path);
    yaml_node_t *old = p ? yaml_document_get_node(d, p->value) : NULL;
    yaml_node_t *first = at->type == YAML_MAPPING_NODE
            && at->data.mapping.pairs.start < at->data.mapping.pairs.top
        ? yaml_document_get_node(d, at->data.mapping.pairs.start->key)
        : NULL;
    if (old && old->type == YAML_SCALAR_NODE)
        replace(c, old);
    else if (!p && first)
        insert(c, at, first, *path);
    else
        return kl_fail(err, KL_ENOTFOUND, "%s: %s cannot be set in place", c->name, *path);
    return kl_buf_status(c->out) ? kl_fail(err, KL_ETOOBIG, "%s is too large", c->name) : KL_OK;
}

static kl_status take_first(void *arg, const kl_value *v, kl_err *err)
{
    (void)err;
    *(const kl_value **)arg = v;
    return KL_EAGAIN;
}

/* Whether the result reads back as intended. */
static bool reads_back(const kl_buf *b, const char *const *path, const char *value)
{
    const kl_value *root = NULL, *v;
    (void)!kl_yaml_each("yaml", kl_buf_str(b), b->len, take_first, &root, NULL);
    v = root;
    for (; *path && v; path++) {
        const char *eq = strchr(*path, '=');
        if (kl_value_type(v) != KL_ARRAY || !eq) {
            v = kl_value_get(v, *path);
            continue;
        }
        const kl_value *found = NULL;
        for (size_t i = 0; i < kl_value_len(v) && !found; i++) {
            const char *s = kl_value_str(kl_value_getn(kl_value_item(v, i), *path, (size_t)(eq - *path)));
            if (s && !strcmp(s, eq + 1))
                found = kl_value_item(v, i);
        }
        v = found;
    }
    const char *s = kl_value_str(v);
    bool same = s && !strcmp(s, value);
    kl_value_unref(root);
    return same;
}

kl_status kl_yaml_set_string(const char *name, const char *text, size_t n, const char *const *path,
    const char *value, kl_buf *out, kl_err *err)
{
    yaml_parser_t parser;
    yaml_document_t d;
    if (!yaml_parser_initialize(&parser))
        kl_mem_die("memory (YAML)");
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, n);
    kl_status st = KL_OK;
    if (!yaml_parser_load(&parser, &d))
        st = kl_fail(err, KL_ESYNTAX, "%s:%zu: %s", name, parser.problem_mark.line + 1,
            parser.problem ? parser.problem : "not YAML");
    else {
        change c = {.name = name, .text = text, .n = n, .path = path, .value = value, .out = out};
        st = set(&c, &d, err);
        yaml_document_delete(&d);
    }
    yaml_parser_delete(&parser);
    if (!st && !reads_back(out, path, value))
        st = kl_fail(err, KL_ESYNTAX, "%s: its form cannot be changed in place", name);
    return st;
}
