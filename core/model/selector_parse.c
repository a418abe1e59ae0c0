/* selector_parse.c - "a=b,c in (d,e),!f,g>3" to a label selector.
 *
 *   selector    = [ requirement { "," requirement } ]
 *   requirement = key | "!" key | key ( "=" | "==" | "!=" | ">" | "<" ) [ word ] | key ( "in" | "notin" )
 *   "(" words ")"
 *   words       = any number of words and commas; a comma with nothing beside it stands for an empty word
 *
 * `in` and `notin` are words except where an operator is due. */
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "model/names.h"
#include "model/selector_impl.h"

typedef enum token {
    T_END,
    T_WORD,
    T_COMMA,
    T_OPEN,
    T_CLOSE,
    T_NOT,
    T_EQ,
    T_DOUBLE_EQ,
    T_NE,
    T_GT,
    T_LT
} token;

typedef struct parser {
    const char *text, *at, *end;
    token next; /* the next token; word and nword are its text */
    const char *word;
    size_t nword;
    char **values; /* of the requirement under way */
    size_t nvalues, cap;
    kl_selector *out;
    kl_selector_fault *fault; /* or NULL */
    kl_err *err;
} parser;

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

static bool is_symbol(char c) { return c && strchr("=!(),><", c); }

/* Reads the next token. A NUL ends a word; where a token would start, it ends the text. */
static void advance(parser *p)
{
    while (p->at < p->end && is_space(*p->at))
        p->at++;
    p->word = p->at;
    p->nword = 0;
    if (p->at == p->end || !*p->at) {
        p->next = T_END;
        return;
    }
    if (is_symbol(*p->at)) {
        static const char symbols[] = ",()!=><";
        static const token tokens[] = {T_COMMA, T_OPEN, T_CLOSE, T_NOT, T_EQ, T_GT, T_LT};

        p->next = tokens[strchr(symbols, *p->at) - symbols];
        p->at++;
        if ((p->next == T_EQ || p->next == T_NOT) && p->at < p->end && *p->at == '=') {
            p->next = p->next == T_EQ ? T_DOUBLE_EQ : T_NE;
            p->at++;
        }
        p->nword = (size_t)(p->at - p->word);
        return;
    }
    p->next = T_WORD;
    while (p->at < p->end && *p->at && !is_space(*p->at) && !is_symbol(*p->at))
        p->at++;
    p->nword = (size_t)(p->at - p->word);
    if (p->at < p->end && !*p->at)
        p->at++;
}

static kl_status bad(parser *p, kl_selector_want want)
{
    static const char *const words[] = {
        [KL_WANT_START] = "a label key or '!'",
        [KL_WANT_NEXT] = "a label key or '!'",
        [KL_WANT_KEY] = "a label key",
        [KL_WANT_OPERATOR] = "one of in, notin, =, ==, !=, > and <",
        [KL_WANT_VALUE] = "a value",
        [KL_WANT_OPEN] = "'('",
        [KL_WANT_FIRST] = "a value, ',' or ')'",
        [KL_WANT_MORE] = "',' or ')'",
        [KL_WANT_WORD] = "a value",
        [KL_WANT_END] = "',' or the end",
    };
    int shown = p->end - p->text < 200 ? (int)(p->end - p->text) : 200;

    if (p->fault) {
        p->fault->want = want;
        p->fault->found = kl_strndup(p->word, p->nword);
    }
    if (p->next == T_END)
        return kl_fail(p->err, KL_ESYNTAX, "label selector \"%.*s\" ends where %s is expected", shown,
            p->text, words[want]);
    return kl_fail(p->err, KL_ESYNTAX, "label selector \"%.*s\": found \"%.*s\" where %s is expected", shown,
        p->text, (int)(p->nword < 80 ? p->nword : 80), p->word, words[want]);
}

static void add_value(parser *p, const char *s, size_t n)
{
    if (p->nvalues == p->cap) {
        p->cap = p->cap ? p->cap * 2 : 8;
        p->values = kl_realloc(p->values, p->cap * sizeof *p->values);
    }
    p->values[p->nvalues++] = kl_strndup(s, n);
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* A value counts once. */
static void unique_values(parser *p)
{
    size_t kept = 0;

    if (p->nvalues < 2)
        return;
    qsort(p->values, p->nvalues, sizeof *p->values, by_text);
    for (size_t i = 0; i < p->nvalues; i++)
        if (kept && !strcmp(p->values[kept - 1], p->values[i]))
            kl_free(p->values[i]);
        else
            p->values[kept++] = p->values[i];
    p->nvalues = kept;
}

static void drop_values(parser *p)
{
    while (p->nvalues)
        kl_free(p->values[--p->nvalues]);
}

static bool next_is(const parser *p, const char *word)
{
    return p->next == T_WORD && p->nword == strlen(word) && !memcmp(p->word, word, p->nword);
}

static bool read_operator(parser *p, kl_selector_op *op)
{
    switch (p->next) {
    case T_EQ: *op = KL_SEL_EQ; break;
    case T_DOUBLE_EQ: *op = KL_SEL_DOUBLE_EQ; break;
    case T_NE: *op = KL_SEL_NE; break;
    case T_GT: *op = KL_SEL_GT; break;
    case T_LT: *op = KL_SEL_LT; break;
    default:
        if (!next_is(p, "in") && !next_is(p, "notin"))
            return false;
        *op = next_is(p, "in") ? KL_SEL_IN : KL_SEL_NOTIN;
    }
    advance(p);
    return true;
}

/* Reads the words between the parentheses; stops at ")". */
static kl_status read_words(parser *p)
{
    for (;;) {
        if (p->next == T_WORD) {
            add_value(p, p->word, p->nword);
            advance(p);
            if (p->next == T_CLOSE)
                return KL_OK;
            if (p->next != T_COMMA)
                return bad(p, KL_WANT_MORE);
        } else if (p->next == T_COMMA) {
            if (!p->nvalues)
                add_value(p, "", 0);
            advance(p);
            if (p->next == T_CLOSE || p->next == T_COMMA)
                add_value(p, "", 0);
            if (p->next == T_CLOSE)
                return KL_OK;
            if (p->next == T_COMMA)
                advance(p);
        } else {
            return bad(p, KL_WANT_WORD);
        }
    }
}

static kl_status read_list(parser *p)
{
    kl_status st;

    if (p->next != T_OPEN)
        return bad(p, KL_WANT_OPEN);
    advance(p);
    if (p->next == T_CLOSE) {
        add_value(p, "", 0);
    } else {
        if (p->next != T_WORD && p->next != T_COMMA)
            return bad(p, KL_WANT_FIRST);
        st = read_words(p);
        if (st)
            return st;
    }
    advance(p);
    return KL_OK;
}

static kl_status read_value(parser *p)
{
    if (p->next == T_END || p->next == T_COMMA) {
        add_value(p, "", 0);
        return KL_OK;
    }
    if (p->next != T_WORD)
        return bad(p, KL_WANT_VALUE);
    add_value(p, p->word, p->nword);
    advance(p);
    return KL_OK;
}

/* Moves the requirement to the fault, for its message. */
static void keep_requirement(parser *p, const char *key, kl_selector_op op)
{
    kl_selector_fault *f = p->fault;
    f->key = kl_strdup(key);
    f->op = op;
    f->values = p->values;
    f->nvalues = p->nvalues;
    p->values = NULL;
    p->nvalues = p->cap = 0;
}

void kl_selector_fault_fini(kl_selector_fault *f)
{
    while (f->nvalues)
        kl_free(f->values[--f->nvalues]);
    kl_free(f->values);
    kl_free(f->found);
    kl_free(f->key);
    *f = (kl_selector_fault){0};
}

static kl_status read_requirement(parser *p)
{
    bool not = p->next == T_NOT;
    kl_selector_op op = KL_SEL_NOT_EXISTS;
    kl_status st = KL_OK;
    char *key;

    if (not )
        advance(p);
    if (p->next != T_WORD)
        return bad(p, KL_WANT_KEY);
    key = kl_strndup(p->word, p->nword);
    advance(p);
    if (kl_name_qualified(key))
        ; /* an invalid key is refused below */
    else if (!not ) {
        if (p->next == T_END || p->next == T_COMMA)
            op = KL_SEL_EXISTS;
        else if (!read_operator(p, &op))
            st = bad(p, KL_WANT_OPERATOR);
        else
            st = op == KL_SEL_IN || op == KL_SEL_NOTIN ? read_list(p) : read_value(p);
    }
    unique_values(p);
    if (!st)
        st = kl__selector_require(p->out, key, op, (const char *const *)p->values, p->nvalues, p->err);
    if (st && p->fault && !p->fault->want)
        keep_requirement(p, key, op);
    drop_values(p);
    kl_free(key);
    return st;
}

static kl_status read_selector(parser *p)
{
    kl_selector_want want = KL_WANT_START;
    kl_status st;

    advance(p);
    if (p->next == T_END)
        return KL_OK;
    for (;;) {
        if (p->next != T_WORD && p->next != T_NOT)
            return bad(p, want);
        st = read_requirement(p);
        if (st)
            return st;
        if (p->next == T_END)
            return KL_OK;
        if (p->next != T_COMMA)
            return bad(p, KL_WANT_END);
        advance(p);
        want = KL_WANT_NEXT;
    }
}

static kl_status parse(const char *text, size_t n, kl_selector **out, kl_selector_fault *fault, kl_err *err)
{
    if (n > KL_SELECTOR_BYTES_MAX && fault)
        *fault = (kl_selector_fault){.want = KL_WANT_START, .found = kl_strndup(text, 60)};
    if (n > KL_SELECTOR_BYTES_MAX)
        return kl_fail(err, KL_EINVAL, "label selector \"%.60s...\" has %zu bytes, at most %d are allowed",
            text, n, KL_SELECTOR_BYTES_MAX);
    parser p = {
        .text = text, .at = text, .end = text + n, .out = kl_new(kl_selector), .fault = fault, .err = err};
    kl_status st = read_selector(&p);

    kl_free(p.values);
    if (st) {
        kl_selector_free(p.out);
        return st;
    }
    kl__selector_sort(p.out);
    *out = p.out;
    return KL_OK;
}

kl_status kl_selector_parsen(const char *text, size_t n, kl_selector **out, kl_err *err)
{
    return parse(text, n, out, NULL, err);
}

kl_status kl_selector_parse(const char *text, kl_selector **out, kl_err *err)
{
    return parse(text, strlen(text), out, NULL, err);
}

kl_status kl_selector_parse_or(const char *text, kl_selector **out, kl_selector_fault *fault, kl_err *err)
{
    return parse(text, strlen(text), out, fault, err);
}
