/* yaml.c - reads YAML documents as values; with yaml_write.c and yaml_edit.c the only door to libyaml.
 *
 * Most text is read without libyaml (yaml_parts.c); it has the rest, and each mistake. Its events become
 * values as they come; containers gather on a stack as in the decoder. An alias is one more reference on a
 * value, so "a billion laughs" cost nothing here, but would for whoever walks them: the nodes that aliases
 * stand for are counted, and too many are refused. Merge keys give way to the mapping's own keys. */
#include "yaml/yaml.h"

#include <stdio.h>
#include <string.h>
#include <yaml.h>
#include "base/base64.h"
#include "base/map.h"
#include "base/mem.h"
#include "value/intern.h"
#include "yaml/scalar.h"
#include "yaml/yaml_impl.h"

#define ALIASED_NODES_MAX 400000u /* the maximum number of nodes that all aliases of a stream stand for */

typedef struct anchor {
    const kl_value *v;
    size_t nodes;
} anchor;

typedef struct reader {
    const char *name;
    yaml_parser_t parser;
    kl__yaml_text *in;
    size_t depth;
    kl_buf *repeated; /* it reads as Go does, see kl_yaml_decode_first; NULL: repeated keys fail */
    kl_status read;   /* why the source ended */
    kl_err *err;
} reader;

static kl_status node(reader *r, yaml_event_t *ev, const kl_value **out, size_t *nodes);

static kl_status fail_at(reader *r, yaml_mark_t at, const char *what)
{
    if (r->repeated)
        return kl_fail(r->err, KL_ESYNTAX, "yaml: %s", what);
    return kl_fail(
        r->err, KL_ESYNTAX, "%s:%zu:%zu: %s", r->name, r->in->line + at.line + 1, at.column + 1, what);
}

static kl_status next(reader *r, yaml_event_t *ev)
{
    if (yaml_parser_parse(&r->parser, ev))
        return KL_OK;
    const yaml_parser_t *p = &r->parser;
    const char *problem = p->problem ? p->problem : "not YAML";
    if (r->read)
        return r->read;
    if (p->error == YAML_READER_ERROR)
        return kl_fail(
            r->err, KL_ESYNTAX, "%s: byte %zu: %s", r->name, r->in->byte + p->problem_offset, problem);
    if (p->error == YAML_MEMORY_ERROR)
        kl_mem_die("memory (YAML)");
    char what[256];
    snprintf(what, sizeof what, "%s%s%s", problem, p->context ? ", " : "", p->context ? p->context : "");
    return fail_at(r, p->problem_mark, what);
}

static void anchor_free(void *arg)
{
    anchor *a = arg;
    kl_value_unref(a->v);
    kl_free(a);
}

static void remember(reader *r, const yaml_char_t *name, const kl_value *v, size_t nodes)
{
    if (!name)
        return;
    anchor *a = kl_new(anchor);
    *a = (anchor){kl_value_ref(v), nodes};
    if (!r->in->anchors)
        r->in->anchors = kl_map_new();
    anchor *old = kl_map_set(r->in->anchors, (const char *)name, a);
    if (old)
        anchor_free(old);
}

/* --- scalars ------------------------------------------------------------------------------ */

static const char *core_tag(const yaml_char_t *tag)
{
    const char *prefix = "tag:yaml.org,2002:", *t = (const char *)tag;
    return t && !strncmp(t, prefix, strlen(prefix)) ? t + strlen(prefix) : NULL;
}

static kl_status scalar(reader *r, const yaml_event_t *ev, const kl_value **out)
{
    const char *text = (const char *)ev->data.scalar.value, *tag = core_tag(ev->data.scalar.tag);
    size_t n = ev->data.scalar.length;
    bool text_only = ev->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    char what[256];
    if (r->repeated && tag && !strcmp(tag, "binary")) {
        kl_buf bytes = KL_BUF_INIT;
        kl_status st = kl_base64_decode(text, n, &bytes, NULL);
        if (!st)
            *out = kl_value_of_strn(kl_buf_str(&bytes), bytes.len);
        kl_buf_fini(&bytes);
        return st ? fail_at(r, ev->start_mark, "!!binary value contains invalid base64 data") : KL_OK;
    }
    if (!r->repeated && ev->data.scalar.tag && !tag && strcmp((const char *)ev->data.scalar.tag, "!")) {
        snprintf(
            what, sizeof what, "the tag %.100s is not supported here", (const char *)ev->data.scalar.tag);
        return fail_at(r, ev->start_mark, what);
    }
    if (ev->data.scalar.tag && (!tag || !strcmp(tag, "str") || !strcmp(tag, "timestamp"))) {
        *out = kl_value_of_strn(text, n);
        return KL_OK;
    }
    if (!tag && text_only) {
        *out = kl_value_of_strn(text, n);
        return KL_OK;
    }
    const kl_value *v = kl__scalar_plain(text, n);
    kl_type t = kl_value_type(v);
    bool fits = v
        && (!tag || (!strcmp(tag, "null") && t == KL_NULL) || (!strcmp(tag, "bool") && t == KL_BOOL)
            || (!strcmp(tag, "int") && (t == KL_INT || t == KL_UINT))
            || (!strcmp(tag, "float") && (t == KL_INT || t == KL_UINT || t == KL_DOUBLE)));
    if (!fits) {
        kl_value_unref(v);
        if (tag)
            snprintf(what, sizeof what, "`%.60s` cannot be read as !!%.60s", text, tag);
        else
            snprintf(what, sizeof what, "`%.60s` has no form in JSON; quote it if it is text", text);
        return fail_at(r, ev->start_mark, what);
    }
    *out = v;
    return KL_OK;
}

/* --- containers --------------------------------------------------------------------------- */

static kl_status enter(reader *r, yaml_mark_t at)
{
    if (r->depth == KL_VALUE_DEPTH_MAX)
        return fail_at(r, at, "nested deeper than 512 levels");
    r->depth++;
    return KL_OK;
}

static kl_status container_tag(reader *r, const yaml_char_t *tag, const char *allowed, yaml_mark_t at)
{
    const char *core = core_tag(tag);
    if (!tag || (core && !strcmp(core, allowed)) || !strcmp((const char *)tag, "!") || r->repeated)
        return KL_OK;
    char what[160];
    snprintf(what, sizeof what, "the tag %.100s is not supported here", (const char *)tag);
    return fail_at(r, at, what);
}

static kl_status sequence(reader *r, const yaml_event_t *start, const kl_value **out, size_t *nodes)
{
    kl__stack s = {0};
    kl_status st = container_tag(r, start->data.sequence_start.tag, "seq", start->start_mark);
    for (bool done = false; !st && !done;) {
        yaml_event_t ev;
        st = next(r, &ev);
        if (st)
            break;
        if (ev.type == YAML_SEQUENCE_END_EVENT) {
            done = true;
        } else {
            const kl_value *v;
            st = node(r, &ev, &v, nodes);
            if (!st)
                kl__stack_push(&s, v);
        }
        yaml_event_delete(&ev);
    }
    if (!st) {
        *out = kl__intern_container(KL_ARRAY, s.v, s.len);
        s.len = 0;
    }
    kl__stack_fini(&s);
    return st;
}

/* JSON's form of a key: numbers and booleans are written out, as sigs.k8s.io/yaml does. Takes over v. */
static kl_status key_of(reader *r, const kl_value *v, yaml_mark_t at, const kl_value **out)
{
    kl_type t = kl_value_type(v);
    if (t == KL_STRING) {
        *out = v;
        return KL_OK;
    }
    if (t == KL_NULL || t == KL_ARRAY || t == KL_OBJECT) {
        char what[96];
        snprintf(what, sizeof what, "a key must be text, and this one is of type %s", kl_value_type_name(v));
        kl_value_unref(v);
        return fail_at(r, at, what);
    }
    char *text = kl_value_to_json(v);
    kl_value_unref(v);
    *out = kl_value_of_str(text);
    kl_free(text);
    return KL_OK;
}

/* The member number `place` gets another value. Takes over v. */
static void replace(kl__stack *s, size_t place, const kl_value *v)
{
    kl_value_unref(s->v[2 * place + 1]);
    s->v[2 * place + 1] = v;
}

/* Adds the members of one merged mapping. Keys that are there already keep their values; in Go's reading they
 * lose them. */
static void merge_one(const reader *r, kl__stack *s, kl__seen *seen, const kl_value *from)
{
    for (size_t i = 0; i < kl_value_len(from); i++) {
        const kl_value *key = kl__key(from, i);
        size_t was = kl__seen_check(seen, 1, s, 0, key);
        if (was == SIZE_MAX) {
            kl__stack_push(s, kl_value_ref(key));
            kl__stack_push(s, kl_value_ref(kl__val(from, i)));
        } else if (r->repeated)
            replace(s, was, kl_value_ref(kl__val(from, i)));
    }
}

static kl_status merge(reader *r, kl__stack *s, kl__seen *seen, const kl_value *merged, yaml_mark_t at)
{
    bool ok = kl_value_type(merged) == KL_OBJECT || kl_value_type(merged) == KL_ARRAY;
    size_t n = kl_value_type(merged) == KL_ARRAY ? kl_value_len(merged) : 0;
    if (kl_value_type(merged) == KL_OBJECT)
        merge_one(r, s, seen, merged);
    for (size_t i = 0; i < n; i++) { /* the first mapping of a list counts: in Go's reading it comes last */
        const kl_value *one = kl_value_item(merged, r->repeated ? n - 1 - i : i);
        ok &= kl_value_type(one) == KL_OBJECT;
        if (ok)
            merge_one(r, s, seen, one);
    }
    return ok ? KL_OK
              : fail_at(r, at,
                  r->repeated ? "map merge requires map or sequence of maps as the value"
                              : "<< takes a mapping, or a list of mappings");
}

#define REPEATED_MAX ((size_t)64 << 10) /* longer complaints about repeated keys are not continued */

/* Says of a key what Go's strict reader says: `key` is as it was written, text or not. */
static void say_repeated(reader *r, const kl_value *key, bool text, yaml_mark_t at)
{
    if (r->repeated->len > REPEATED_MAX)
        return;
    kl_buf_printf(r->repeated, "\n  line %zu: key ", at.line + 1);
    if (text)
        kl_value_encode(key, r->repeated);
    else
        kl_buf_puts(r->repeated, kl_value_str(key));
    kl_buf_puts(r->repeated, " already set in map");
}

/* A mapping whose members are being read. */
typedef struct members {
    kl__stack s; /* keys and values */
    kl__seen seen;
    const kl_value *merged; /* the value of its merge, which waits for the end */
    yaml_mark_t merged_at;
} members;

/* Ends a member whose key began at `at`, and whose value began at `value_at`. Takes over both. */
static kl_status add_member(reader *r, members *m, const kl_value *key, size_t was, bool text,
    yaml_mark_t value_at, const kl_value *v)
{
    if (was == SIZE_MAX) {
        kl__stack_push(&m->s, key);
        kl__stack_push(&m->s, v);
        return KL_OK;
    }
    say_repeated(r, key, text, value_at);
    replace(&m->s, was, v);
    kl_value_unref(key);
    return KL_OK;
}

/* Reads one key and its value. */
static kl_status member(reader *r, yaml_event_t *ev, members *m, size_t *nodes)
{
    const kl_value *key = NULL, *v = NULL;
    yaml_mark_t at = ev->start_mark, value_at = at;
    bool is_merge = ev->type == YAML_SCALAR_EVENT && ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE
        && !ev->data.scalar.tag && ev->data.scalar.length == 2 && !memcmp(ev->data.scalar.value, "<<", 2);
    kl_status st = node(r, ev, &key, nodes);
    bool text = !st && kl_value_type(key) == KL_STRING;
    if (!st)
        st = key_of(r, key, at, &key);
    if (st)
        return st;
    size_t was = is_merge ? SIZE_MAX : kl__seen_check(&m->seen, 1, &m->s, 0, key);
    if (!r->repeated && (is_merge ? m->merged != NULL : was != SIZE_MAX)) {
        char *what = kl_sprintf("duplicate key \"%.80s\"", kl_value_str(key));
        st = fail_at(r, at, what);
        kl_free(what);
        kl_value_unref(key);
        return st;
    }
    yaml_event_t value;
    st = next(r, &value);
    if (!st) {
        value_at = value.start_mark;
        st = node(r, &value, &v, nodes);
        yaml_event_delete(&value);
    }
    if (!st && !is_merge)
        return add_member(r, m, key, was, text, value_at, v);
    kl_value_unref(key);
    if (!st && r->repeated) {
        st = merge(r, &m->s, &m->seen, v, at);
        kl_value_unref(v);
    } else if (!st) {
        m->merged = v;
        m->merged_at = at;
    }
    return st;
}

static kl_status mapping(reader *r, const yaml_event_t *start, const kl_value **out, size_t *nodes)
{
    members m = {.merged_at = start->start_mark};
    kl_status st = container_tag(r, start->data.mapping_start.tag, "map", start->start_mark);
    for (bool done = false; !st && !done;) {
        yaml_event_t ev;
        st = next(r, &ev);
        if (st)
            break;
        if (ev.type == YAML_MAPPING_END_EVENT)
            done = true;
        else
            st = member(r, &ev, &m, nodes);
        yaml_event_delete(&ev);
    }
    if (!st && m.merged)
        st = merge(r, &m.s, &m.seen, m.merged, m.merged_at);
    if (!st) {
        *out = kl__intern_container(KL_OBJECT, m.s.v, m.s.len / 2);
        m.s.len = 0;
    }
    kl_value_unref(m.merged);
    kl__stack_fini(&m.s);
    kl__seen_fini(&m.seen);
    return st;
}

static kl_status alias(reader *r, const yaml_event_t *ev, const kl_value **out, size_t *nodes)
{
    char what[160];
    const char *name = (const char *)ev->data.alias.anchor;
    const anchor *a = r->in->anchors ? kl_map_get(r->in->anchors, name) : NULL;
    if (!a) {
        snprintf(what, sizeof what,
            r->repeated ? "unknown anchor '%.80s' referenced" : "the alias *%.80s has no anchor before it",
            name);
        return fail_at(r, ev->start_mark, what);
    }
    r->in->aliased += a->nodes;
    if (r->in->aliased > ALIASED_NODES_MAX) {
        snprintf(what, sizeof what, "aliases stand for more than %u values; write the document out",
            ALIASED_NODES_MAX);
        return fail_at(r, ev->start_mark, r->repeated ? "document contains excessive aliasing" : what);
    }
    *nodes += a->nodes;
    *out = kl_value_ref(a->v);
    return KL_OK;
}

/* Reads the value that begins with ev. *nodes grows by its number of nodes, aliases written out. The depth of
 * recursion is bounded. */
static kl_status node(reader *r, yaml_event_t *ev, const kl_value **out, size_t *nodes)
{
    if (ev->type == YAML_ALIAS_EVENT)
        return alias(r, ev, out, nodes);
    size_t mine = 1;
    const kl_value *v = NULL;
    const yaml_char_t *name = NULL;
    kl_status st;
    if (ev->type == YAML_SCALAR_EVENT) {
        name = ev->data.scalar.anchor;
        st = scalar(r, ev, &v);
    } else {
        st = enter(r, ev->start_mark);
        if (st)
            return st;
        name = ev->type == YAML_SEQUENCE_START_EVENT ? ev->data.sequence_start.anchor
                                                     : ev->data.mapping_start.anchor;
        st = ev->type == YAML_SEQUENCE_START_EVENT ? sequence(r, ev, &v, &mine) : mapping(r, ev, &v, &mine);
        r->depth--;
    }
    *nodes += mine;
    if (st)
        return st;
    remember(r, name, v, mine);
    *out = v;
    return KL_OK;
}

/* --- documents ---------------------------------------------------------------------------- */

static kl_status document(reader *r, kl__yaml_fn *doc, void *arg)
{
    yaml_event_t ev;
    const kl_value *v = NULL;
    size_t nodes = 0;
    kl_status st = next(r, &ev);
    if (st)
        return st;
    st = node(r, &ev, &v, &nodes);
    yaml_event_delete(&ev);
    if (!st && (st = next(r, &ev)) == KL_OK) /* the document's end */
        yaml_event_delete(&ev);
    if (!r->in->is_part)
        kl__yaml_forget_anchors(r->in);
    if (!st && (r->repeated || kl_value_type(v) != KL_NULL))
        return doc(arg, v, r->err);
    kl_value_unref(v);
    return st;
}

static kl_status documents(reader *r, kl__yaml_fn *doc, void *arg)
{
    for (;;) {
        yaml_event_t ev;
        kl_status st = next(r, &ev);
        if (st)
            return st;
        yaml_event_type_t type = ev.type;
        yaml_event_delete(&ev);
        if (type == YAML_STREAM_END_EVENT)
            return KL_OK;
        if (type == YAML_DOCUMENT_START_EVENT) {
            st = document(r, doc, arg);
            if (st || r->repeated)
                return st;
        }
    }
}

/* Tries JSON first: such text needs no YAML, and may have escapes that YAML lacks. */
static bool try_json(const char *text, size_t n, const kl_value **out)
{
    size_t i = 0;
    while (i < n && (text[i] == ' ' || text[i] == '\n' || text[i] == '\r' || text[i] == '\t'))
        i++;
    return i < n && (text[i] == '{' || text[i] == '[') && !kl_value_decode(text, n, out, NULL);
}

/* Gives what stands before the text, the text, and what follows it. */
static int on_read(void *arg, unsigned char *piece, size_t room, size_t *got)
{
    reader *r = arg;
    for (size_t i = 0; i < 2; i++) {
        size_t n = r->in->left[i] < room ? r->in->left[i] : room;
        if (!n)
            continue;
        memcpy(piece, r->in->text[i], n);
        r->in->text[i] += n;
        r->in->left[i] -= n;
        *got = n;
        return 1;
    }
    *got = 0;
    if (r->in->source)
        r->read = r->in->source->next(r->in->source->from, (char *)piece, room, got, r->err);
    return !r->read;
}

void kl__yaml_forget_anchors(kl__yaml_text *in)
{
    kl_map_free(in->anchors, anchor_free);
    in->anchors = NULL;
}

static kl_status read_all(reader *r, kl__yaml_fn *doc, void *arg)
{
    if (!yaml_parser_initialize(&r->parser))
        kl_mem_die("memory (YAML)");
    yaml_parser_set_encoding(&r->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input(&r->parser, on_read, r);
    kl_status st = documents(r, doc, arg);
    yaml_parser_delete(&r->parser);
    return st;
}

kl_status kl__yaml_libyaml(const char *name, kl__yaml_text *in, kl__yaml_fn *doc, void *arg, kl_err *err)
{
    reader r = {.name = name, .in = in, .err = err};
    return read_all(&r, doc, arg);
}

kl_status kl_yaml_each(const char *name, const char *text, size_t n, kl__yaml_fn *doc, void *arg, kl_err *err)
{
    const kl_value *v;
    if (try_json(text, n, &v))
        return doc(arg, v, err);
    return kl__yaml_parts(name ? name : "yaml", text ? text : "", n, NULL, doc, arg, err);
}

kl_status kl_yaml_each_from(
    const char *name, const kl_yaml_source *source, kl__yaml_fn *doc, void *arg, kl_err *err)
{
    return kl__yaml_parts(name, "", 0, source, doc, arg, err);
}

static kl_status keep_first(void *arg, const kl_value *v, kl_err *err)
{
    (void)err;
    *(const kl_value **)arg = v;
    return KL_OK;
}

kl_status kl_yaml_decode_first(
    const char *text, size_t n, kl_buf *repeated, const kl_value **out, kl_err *err)
{
    const kl_value *v = NULL;
    kl__yaml_text in = {.text = {NULL, text}, .left = {0, text ? n : 0}};
    reader r = {.name = "", .in = &in, .repeated = repeated, .err = err};
    if (try_json(text, n, out))
        return KL_OK;
    kl_status st = read_all(&r, keep_first, &v);
    kl__yaml_forget_anchors(&in);
    if (!st)
        *out = v ? v : kl_value_null();
    return st;
}

/* Go counts lines from 0, but those of tokens from 1, and does not name line 0. */
static char *mistake(const yaml_parser_t *p)
{
    const char *problem = p->problem ? p->problem : "unknown problem parsing YAML content";
    size_t line = p->problem_mark.line;
    if (line)
        line += p->error == YAML_SCANNER_ERROR;
    else
        line = p->context_mark.line;
    return line ? kl_sprintf("yaml: line %zu: %s", line, problem) : kl_sprintf("yaml: %s", problem);
}

char *kl_yaml_mistake(const char *text, size_t n)
{
    yaml_parser_t p;
    yaml_event_t ev = {0};
    if (!yaml_parser_initialize(&p))
        kl_mem_die("memory (YAML)");
    yaml_parser_set_input_string(&p, (const unsigned char *)text, n);
    char *said = NULL;
    for (bool more = true; more && !said;) {
        if (!yaml_parser_parse(&p, &ev))
            said = mistake(&p);
        more = !said && ev.type != YAML_DOCUMENT_END_EVENT && ev.type != YAML_STREAM_END_EVENT;
        yaml_event_delete(&ev);
    }
    yaml_parser_delete(&p);
    return said;
}

typedef struct single {
    const char *name;
    const kl_value *v;
} single;

static kl_status keep_one(void *arg, const kl_value *v, kl_err *err)
{
    single *s = arg;
    if (s->v) {
        kl_value_unref(v);
        return kl_fail(
            err, KL_ESYNTAX, "%s: expected one document, but another follows after `---`", s->name);
    }
    s->v = v;
    return KL_OK;
}

kl_status kl_yaml_decode(const char *name, const char *text, size_t n, const kl_value **out, kl_err *err)
{
    single s = {name ? name : "yaml", NULL};
    kl_status st = kl_yaml_each(name, text, n, keep_one, &s, err);
    if (st)
        kl_value_unref(s.v);
    else
        *out = s.v ? s.v : KL__EMPTY_OBJECT;
    return st;
}
