/* parse.c - an expression as a tree. Parsing stops at the first mistake; core/grammar then says
 * what is wrong. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cel/lex.h"
#include "grammar/grammar.h"

typedef struct parser {
    kl__clex l;
    kl__csource *s;
    unsigned depth;
    bool stuck; /* at a mistake of syntax: nothing more is read */
} parser;

static kl__cexpr *expr(parser *p);

/* ---------------------------------------------------------------- issues */

void kl__cel_blame(kl__csource *s, uint32_t at, const char *fmt, ...)
{
    if (s->nissues > KL__CEL_ERRORS_MAX)
        return;
    va_list ap;
    va_start(ap, fmt);
    char *text = kl_vsprintf(fmt, ap);
    va_end(ap);
    if (s->nissues == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : 8;
        struct kl__cissue *more = kl__carena_alloc(s->a, cap * sizeof *more);
        if (s->nissues)
            memcpy(more, s->issue, s->nissues * sizeof *more);
        s->issue = more;
        s->cap = cap;
    }
    s->issue[s->nissues++] = (struct kl__cissue){at, kl__carena_text(s->a, text, strlen(text))};
    kl_free(text);
}

static void show(const kl__csource *s, const struct kl__cissue *issue, kl_buf *out)
{
    size_t line = 1, begin = 0, column = 0;
    if (issue->at == KL__CEL_NOWHERE) {
        kl_buf_printf(out, "ERROR: <input>:-1:0: %s", issue->message);
        return;
    }
    if (!s->n) { /* there is nothing to show */
        kl_buf_printf(out, "ERROR: <input>:1:0: %s", issue->message);
        return;
    }
    for (size_t i = 0; i < issue->at && i < s->n; i++)
        if (s->text[i] == '\n') {
            line++;
            begin = i + 1;
        }
    for (size_t i = begin; i < issue->at && i < s->n; i++)
        column += ((unsigned char)s->text[i] & 0xc0) != 0x80;
    kl_buf_printf(out, "ERROR: <input>:%zu:%zu: %s\n | ", line, column + 1, issue->message);
    size_t end = begin;
    for (; end < s->n && s->text[end] != '\n'; end++)
        kl_buf_putc(out, s->text[end] == '\t' ? ' ' : s->text[end]);
    kl_buf_puts(out, "\n | ");
    for (size_t i = begin; i < issue->at && i < end; i++) {
        unsigned char c = (unsigned char)s->text[i];
        if ((c & 0xc0) != 0x80)
            kl_buf_puts(out, c < 0x80 ? "." : "．");
    }
    kl_buf_puts(out, issue->at < end && (unsigned char)s->text[issue->at] >= 0x80 ? "＾" : "^");
}

void kl__cel_issues(kl__csource *s, kl_buf *out)
{
    for (size_t i = 1; i < s->nissues; i++) /* by place, then in the order of discovery */
        for (size_t k = i; k && s->issue[k].at + 1 < s->issue[k - 1].at + 1; k--) {
            struct kl__cissue x = s->issue[k];
            s->issue[k] = s->issue[k - 1];
            s->issue[k - 1] = x;
        }
    for (size_t i = 0; i < s->nissues && i < KL__CEL_ERRORS_MAX; i++) {
        kl_buf_puts(out, i ? "\n" : "");
        show(s, &s->issue[i], out);
    }
}

/* ---------------------------------------------------------------- nodes */

static bool bad(const parser *p) { return p->stuck; }

static void stop(parser *p, size_t at, const char *why)
{
    if (!bad(p))
        kl__cel_blame(p->s, (uint32_t)at, "%s", why);
    p->stuck = true;
}

static kl__cexpr *node(parser *p, kl__cnode kind, size_t at, size_t n)
{
    kl__cexpr *e = KL__CNEW(p->s->a, kl__cexpr);
    e->node = kind;
    e->at = (uint32_t)at;
    e->n = n;
    if (n)
        e->arg = kl__carena_alloc(p->s->a, n * sizeof *e->arg);
    return e;
}

/* Sets the depth of e, once its arguments are parsed. */
static kl__cexpr *grown(parser *p, kl__cexpr *e)
{
    for (size_t i = 0; i < e->n; i++)
        if (e->arg[i] && e->arg[i]->depth >= e->depth)
            e->depth = e->arg[i]->depth + 1;
    if (e->depth > KL__CEL_DEPTH_MAX)
        stop(p, KL__CEL_NOWHERE, "max recursion depth exceeded");
    return e;
}

static kl__cexpr *call(parser *p, const char *name, size_t at, kl__cexpr *x, kl__cexpr *y)
{
    kl__cexpr *e = node(p, KL_E_CALL, at, y ? 2 : 1);
    e->name = name;
    e->arg[0] = x;
    if (y)
        e->arg[1] = y;
    return grown(p, e);
}

static bool sign(const parser *p, const char *s) { return p->l.word == KL_W_SIGN && !strcmp(p->l.sign, s); }

static bool take(parser *p, const char *s)
{
    if (!sign(p, s))
        return false;
    kl__clex_next(&p->l);
    return true;
}

static void unexpected(parser *p) { stop(p, p->l.at, "Syntax error"); }

static void must(parser *p, const char *s)
{
    if (!take(p, s))
        unexpected(p);
}

static const char *word(parser *p) { return kl__carena_text(p->s->a, p->s->text + p->l.at, p->l.len); }

static bool reserved(const char *w)
{
    static const char *const words[] = {"as", "break", "const", "continue", "else", "for", "function", "if",
        "import", "let", "loop", "package", "namespace", "return", "var", "void", "while"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(w, words[i]))
            return true;
    return false;
}

/* ---------------------------------------------------------------- lists of expressions */

typedef struct items {
    kl__cexpr **v;
    bool *optional;
    size_t n, cap;
} items;

static void add(parser *p, items *to, kl__cexpr *e, bool optional)
{
    if (to->n == to->cap) {
        size_t cap = to->cap ? 2 * to->cap : 4;
        kl__cexpr **v = kl__carena_alloc(p->s->a, cap * sizeof *v);
        bool *o = kl__carena_alloc(p->s->a, cap * sizeof *o);
        if (to->n) {
            memcpy(v, to->v, to->n * sizeof *v);
            memcpy(o, to->optional, to->n * sizeof *o);
        }
        to->v = v;
        to->optional = o;
        to->cap = cap;
    }
    to->optional[to->n] = optional;
    to->v[to->n++] = e;
}

static void arguments(parser *p, items *to)
{
    if (!sign(p, ")"))
        do
            add(p, to, expr(p), false);
        while (!bad(p) && take(p, ","));
    must(p, ")");
}

/* Whether an item follows. A trailing comma is allowed, also alone in an empty list or map. */
static bool goes_on(parser *p, const char *end) { return take(p, ",") && !bad(p) && !sign(p, end); }

static bool is_empty(parser *p, const char *end) { return take(p, ",") || sign(p, end); }

static kl__cexpr *from_items(parser *p, kl__cnode kind, size_t at, items *from)
{
    kl__cexpr *e = node(p, kind, at, 0);
    e->arg = from->v;
    e->n = from->n;
    e->optional = from->optional;
    return grown(p, e);
}

static kl__cexpr *list(parser *p, size_t at)
{
    items to = {0};
    if (!is_empty(p, "]"))
        do {
            bool optional = take(p, "?");
            add(p, &to, expr(p), optional);
        } while (!bad(p) && goes_on(p, "]"));
    must(p, "]");
    return from_items(p, KL_E_LIST, at, &to);
}

static kl__cexpr *map(parser *p, size_t at)
{
    items to = {0};
    if (!is_empty(p, "}"))
        do {
            bool optional = take(p, "?");
            add(p, &to, expr(p), optional);
            must(p, ":");
            if (!bad(p))
                add(p, &to, expr(p), optional);
        } while (!bad(p) && goes_on(p, "}"));
    must(p, "}");
    return from_items(p, KL_E_MAP, at, &to);
}

bool kl__cel_dotted(const kl__cexpr *e, kl_buf *out)
{
    if (e->node == KL_E_SELECT && !e->test && !e->opt) {
        if (!kl__cel_dotted(e->arg[0], out))
            return false;
        kl_buf_putc(out, '.');
    } else if (e->node != KL_E_IDENT)
        return false;
    kl_buf_puts(out, e->name);
    return true;
}

static bool is_field(parser *p)
{
    if (p->l.word == KL_W_ESCAPED)
        kl__cel_blame(p->s, (uint32_t)p->l.at, "unsupported syntax: '`'");
    else if (p->l.word != KL_W_IDENT)
        unexpected(p);
    return !bad(p);
}

/* TYPE{field: value, ...}; the brace is read. */
static kl__cexpr *object(parser *p, kl__cexpr *type, size_t at)
{
    kl_buf name = KL_BUF_INIT;
    items to = {0};
    const kl__cexpr *first = type;
    while (first->node == KL_E_SELECT)
        first = first->arg[0];
    kl_buf_puts(&name, first->global ? "." : "");
    kl__cel_dotted(type, &name);
    for (bool empty = is_empty(p, "}"); !empty && !bad(p) && !sign(p, "}");) {
        bool optional = take(p, "?");
        is_field(p);
        kl__clex_next(&p->l);
        must(p, ":");
        if (!bad(p))
            add(p, &to, expr(p), optional);
        if (!take(p, ","))
            break;
    }
    must(p, "}");
    kl__cexpr *e = from_items(p, KL_E_OBJECT, at, &to);
    e->name = kl__carena_text(p->s->a, kl_buf_str(&name), name.len);
    kl_buf_fini(&name);
    return e;
}

/* ---------------------------------------------------------------- from the inside out */

/* NAME or NAME(...); a dot before it is read. */
static kl__cexpr *named(parser *p, bool global)
{
    size_t at = p->l.at;
    const char *name = word(p);
    if (reserved(name))
        kl__cel_blame(p->s, (uint32_t)at, "reserved identifier: %s", name);
    kl__clex_next(&p->l);
    size_t open = p->l.at;
    if (!take(p, "(")) {
        kl__cexpr *e = node(p, KL_E_IDENT, at, 0);
        e->name = name;
        e->global = global;
        return e;
    }
    items to = {0};
    arguments(p, &to);
    kl__cexpr *e = from_items(p, KL_E_CALL, open, &to);
    e->name = name;
    e->global = global;
    if (!bad(p) && !global)
        kl__cel_expand(p->s, e);
    return grown(p, e);
}

static kl__cexpr *primary(parser *p)
{
    size_t at = p->l.at;
    if (p->l.word == KL_W_CONST) {
        kl__cexpr *e = node(p, KL_E_CONST, at, 0);
        e->value = p->l.value;
        e->constant = true;
        kl__clex_next(&p->l);
        return e;
    }
    if (p->l.word == KL_W_IDENT)
        return named(p, false);
    if (take(p, "(")) {
        kl__cexpr *e = expr(p);
        must(p, ")");
        return e;
    }
    if (take(p, "["))
        return list(p, at);
    if (take(p, "{"))
        return map(p, at);
    if (take(p, ".") && p->l.word == KL_W_IDENT)
        return named(p, true);
    unexpected(p);
    return NULL;
}

static kl__cexpr *select_from(parser *p, kl__cexpr *e, size_t at)
{
    bool opt = take(p, "?");
    if (!is_field(p))
        return e;
    const char *name = word(p);
    kl__clex_next(&p->l);
    size_t open = p->l.at;
    if (!opt && take(p, "(")) {
        items to = {0};
        add(p, &to, e, false);
        arguments(p, &to);
        kl__cexpr *c = from_items(p, KL_E_CALL, open, &to);
        c->name = name;
        c->member = true;
        if (!bad(p))
            kl__cel_expand(p->s, c);
        return grown(p, c);
    }
    kl__cexpr *s = node(p, KL_E_SELECT, at, 1);
    s->name = name;
    s->opt = opt;
    s->arg[0] = e;
    return grown(p, s);
}

static kl__cexpr *member(parser *p)
{
    kl__cexpr *e = primary(p);
    while (!bad(p)) {
        size_t at = p->l.at;
        if (take(p, "."))
            e = select_from(p, e, at);
        else if (take(p, "[")) {
            bool opt = take(p, "?");
            kl__cexpr *index = expr(p);
            must(p, "]");
            if (!bad(p))
                e = call(p, opt ? "_[?_]" : "_[_]", at, e, index);
        } else if (sign(p, "{")) {
            kl_buf name = KL_BUF_INIT;
            bool is = kl__cel_dotted(e, &name);
            kl_buf_fini(&name);
            if (!is)
                break;
            kl__clex_next(&p->l);
            e = object(p, e, at);
        } else
            break;
    }
    return e;
}

static kl__cexpr *unary(parser *p)
{
    size_t at = p->l.at, count = 0, minus_at = at;
    bool not = sign(p, "!"), minus = sign(p, "-");
    while (take(p, not ? "!" : "-"))
        count++;
    if (not ) {
        minus_at = p->l.at;
        minus = take(p, "-");
    }
    if (minus && (not || count == 1) && p->l.negatable) {
        kl__clex_negate(&p->l, minus_at);
        count -= !not ;
    } else if (minus && not )
        unexpected(p);
    kl__cexpr *e = bad(p) ? NULL : member(p);
    return bad(p) || count % 2 == 0 ? e : call(p, not ? "!_" : "-_", at, e, NULL);
}

static kl__cexpr *factor(parser *p)
{
    kl__cexpr *e = unary(p);
    while (!bad(p) && (sign(p, "*") || sign(p, "/") || sign(p, "%"))) {
        const char *name = sign(p, "*") ? "_*_" : sign(p, "/") ? "_/_" : "_%_";
        size_t at = p->l.at;
        kl__clex_next(&p->l);
        kl__cexpr *right = unary(p);
        if (!bad(p))
            e = call(p, name, at, e, right);
    }
    return e;
}

static kl__cexpr *sum(parser *p)
{
    kl__cexpr *e = factor(p);
    while (!bad(p) && (sign(p, "+") || sign(p, "-"))) {
        const char *name = sign(p, "+") ? "_+_" : "_-_";
        size_t at = p->l.at;
        kl__clex_next(&p->l);
        kl__cexpr *right = factor(p);
        if (!bad(p))
            e = call(p, name, at, e, right);
    }
    return e;
}

static const char *relation_name(const parser *p)
{
    static const char *const names[][2] = {
        {"==", "_==_"}, {"!=", "_!=_"}, {"<", "_<_"}, {"<=", "_<=_"}, {">", "_>_"}, {">=", "_>=_"}};
    if (p->l.word == KL_W_IN)
        return "@in";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (sign(p, names[i][0]))
            return names[i][1];
    return NULL;
}

static kl__cexpr *relation(parser *p)
{
    kl__cexpr *e = sum(p);
    const char *name;
    while (!bad(p) && (name = relation_name(p))) {
        size_t at = p->l.at;
        kl__clex_next(&p->l);
        kl__cexpr *right = sum(p);
        if (!bad(p))
            e = call(p, name, at, e, right);
    }
    return e;
}

static kl__cexpr *logic(parser *p, bool and)
{
    kl__cexpr *e = and? relation(p) : logic(p, true);
    size_t at = p->l.at;
    const char *what = and? "&&" : "||";
    if (bad(p) || !sign(p, what))
        return e;
    items to = {0};
    add(p, &to, e, false);
    while (!bad(p) && take(p, what))
        add(p, &to, and? relation(p) : logic(p, true), false);
    return bad(p) ? e : from_items(p, and? KL_E_AND : KL_E_OR, at, &to);
}

static kl__cexpr *expr(parser *p)
{
    if (++p->depth > KL__CEL_DEPTH_MAX) {
        char *why = kl__carena_printf(p->s->a, "expression recursion limit exceeded: %d", KL__CEL_DEPTH_MAX);
        stop(p, KL__CEL_NOWHERE, why);
    }
    kl__cexpr *e = bad(p) ? NULL : logic(p, false);
    size_t at = p->l.at;
    if (!bad(p) && take(p, "?")) {
        kl__cexpr *choice = node(p, KL_E_IF, at, 3);
        choice->arg[0] = e;
        choice->arg[1] = logic(p, false);
        must(p, ":");
        choice->arg[2] = bad(p) ? NULL : expr(p);
        e = bad(p) ? NULL : grown(p, choice);
    }
    p->depth--;
    return e;
}

/* ---------------------------------------------------------------- texts that are no expressions */

static unsigned token_type(const kl__clex *l)
{
    static const unsigned constants[] = {[KL_C_INT] = KL_T_INT,
        [KL_C_UINT] = KL_T_UINT,
        [KL_C_DOUBLE] = KL_T_DOUBLE,
        [KL_C_STRING] = KL_T_STRING,
        [KL_C_BYTES] = KL_T_BYTES,
        [KL_C_NULL] = KL_T_NULL};
    switch (l->word) {
    case KL_W_IDENT: return KL_T_NAME;
    case KL_W_ESCAPED: return KL_T_ESCAPED;
    case KL_W_IN: return KL_T_IN;
    case KL_W_SIGN: return kl_token_sign(l->sign);
    case KL_W_CONST:
        if (l->value.kind == KL_C_BOOL)
            return l->value.b ? KL_T_TRUE : KL_T_FALSE;
        return constants[l->value.kind];
    case KL_W_END: break;
    }
    return KL_T_END;
}

static void told(void *arg, size_t at, const char *message)
{
    bool whole = at == KL_GRAMMAR_NOWHERE || !strncmp(message, "unsupported", 11);
    kl__cel_blame(arg, at == KL_GRAMMAR_NOWHERE ? KL__CEL_NOWHERE : (uint32_t)at, "%s%s",
        whole ? "" : "Syntax error: ", message);
}

/* Adds all mistakes of a text that was refused, in the words of the real server. */
static void tell_mistakes(kl__csource *s)
{
    kl__clex l = {.src = s};
    kl_token *t = kl__carena_alloc(s->a, (s->n + 1) * sizeof *t);
    size_t n = 0;
    do {
        kl__clex_next(&l);
        t[n++] = (kl_token){token_type(&l), l.at, l.len};
    } while (l.word != KL_W_END);
    kl_grammar_mistakes(s->text, s->n, t, n, told, s);
}

kl__cexpr *kl__cel_parse(kl__csource *s)
{
    parser p = {.l = {.src = s}, .s = s};
    size_t runes = kl__cel_runes(s->text, s->n);
    if (runes > KL__CEL_TEXT_MAX) {
        kl__cel_blame(s, KL__CEL_NOWHERE, "expression code point size exceeds limit: size: %zu, limit %d",
            runes, KL__CEL_TEXT_MAX);
        return NULL;
    }
    kl__clex_next(&p.l);
    kl__cexpr *e = expr(&p);
    if (p.l.word != KL_W_END)
        unexpected(&p);
    if (!s->nissues)
        return e;
    /* Mistakes of syntax come first, in the real one's words; then what else was found on the way. */
    size_t n = s->nissues;
    struct kl__cissue *found = s->issue;
    s->issue = NULL;
    s->nissues = s->cap = 0;
    tell_mistakes(s);
    for (size_t i = 0; i < n; i++) {
        bool told = !strncmp(found[i].message, "Syntax", 6) && s->nissues;
        for (size_t k = 0; k < s->nissues && !told; k++)
            told = s->issue[k].at == found[i].at && !strcmp(s->issue[k].message, found[i].message);
        if (!told)
            kl__cel_blame(s, found[i].at, "%s", found[i].message);
    }
    return NULL;
}
