/* scan.c - finds what is wrong in a script's text although Lua would compile it. */
#include "state/scan.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* a.b.c[d].e: to name what was nil, Lua walks back along the chain, by recursion, and looks through the
 * function for each step. */
typedef struct scan {
    const char *at, *end;
    size_t line;
    size_t chain;      /* fields so far */
    size_t outer[256]; /* the chains of open brackets; Lua compiles no more than this */
    size_t open;
    bool dot;    /* of the last token: a field's name follows */
    bool wants;  /* of the last token: an expression goes on, so no statement begins here */
    size_t lost; /* the line of a verdict whose result is not used */
} scan;

static void skip_to(scan *s, const char *to)
{
    for (; s->at < to; s->at++)
        s->line += *s->at == '\n';
}

/* The level of a long bracket that begins here, or -1. */
static int long_level(const scan *s)
{
    const char *p = s->at + 1;
    while (p < s->end && *p == '=')
        p++;
    return *s->at == '[' && p < s->end && *p == '[' ? (int)(p - s->at - 1) : -1;
}

static void skip_long(scan *s, int level)
{
    for (const char *p = s->at + level + 2; p < s->end; p++) {
        const char *q = p + 1;
        if (*p != ']')
            continue;
        while (q < s->end && *q == '=' && q - p - 1 < level)
            q++;
        if (q < s->end && *q == ']' && q - p - 1 == level) {
            skip_to(s, q + 1);
            return;
        }
    }
    skip_to(s, s->end);
}

static void skip_quoted(scan *s)
{
    char quote = *s->at;
    const char *p = s->at + 1;
    while (p < s->end && *p != quote && *p != '\n')
        p += *p == '\\' && p + 1 < s->end ? 2 : 1;
    skip_to(s, p < s->end ? p + 1 : s->end);
}

static void skip_comment(scan *s)
{
    s->at += 2;
    int level = s->at < s->end ? long_level(s) : -1;
    if (level >= 0) {
        skip_long(s, level);
        return;
    }
    while (s->at < s->end && *s->at != '\n')
        s->at++;
}

static void skip_word(scan *s)
{
    while (s->at < s->end && (isalnum((unsigned char)*s->at) || *s->at == '_'))
        s->at++;
}

static void open_bracket(scan *s)
{
    if (s->open < sizeof s->outer / sizeof *s->outer)
        s->outer[s->open] = s->chain;
    s->open++;
    s->chain = 0;
}

/* (a.b).c is one chain; a call's longest argument counts. */
static void close_bracket(scan *s, char c)
{
    if (s->open)
        s->open--;
    size_t outer = s->open < sizeof s->outer / sizeof *s->outer ? s->outer[s->open] : 0;
    if (c == ']')
        s->chain = outer + 1;
    else if (c == '}' || s->chain < outer)
        s->chain = outer;
}

/* Words after which an expression goes on. */
static bool goes_on(const char *word, size_t n)
{
    static const char *const words[] = {
        "and", "elseif", "function", "if", "in", "not", "or", "return", "until", "while", NULL};
    for (const char *const *w = words; *w; w++)
        if (strlen(*w) == n && !memcmp(*w, word, n))
            return true;
    return false;
}

static void skip_spaces(scan *s)
{
    while (s->at < s->end && isspace((unsigned char)*s->at))
        s->at++;
}

static bool take_word(scan *s, const char *word)
{
    const char *start = s->at;
    skip_word(s);
    return strlen(word) == (size_t)(s->at - start) && !memcmp(start, word, strlen(word));
}

/* Whether kube.fail or kube.retry begins here. */
static bool is_verdict(scan s)
{
    if (!take_word(&s, "kube"))
        return false;
    skip_spaces(&s);
    if (s.at == s.end || *s.at++ != '.')
        return false;
    skip_spaces(&s);
    scan again = s;
    return take_word(&s, "fail") || take_word(&again, "retry");
}

/* A word that begins at `at`. */
static void word(scan *s, bool dot, bool wants)
{
    if (!dot && !wants && !s->lost && is_verdict(*s))
        s->lost = s->line;
    const char *start = s->at;
    skip_word(s);
    s->chain = dot ? s->chain : 0;
    s->wants = !dot && goes_on(start, (size_t)(s->at - start));
}

static void space(scan *s, bool dot, bool wants)
{
    if (*s->at == '-')
        skip_comment(s);
    else
        skip_to(s, s->at + 1);
    s->dot = dot;
    s->wants = wants;
}

static void step(scan *s)
{
    unsigned char c = (unsigned char)*s->at;
    bool dot = s->dot, wants = s->wants;
    s->dot = s->wants = false;
    if (isspace(c) || (c == '-' && s->at + 1 < s->end && s->at[1] == '-')) {
        space(s, dot, wants);
    } else if (isalpha(c) || c == '_') {
        word(s, dot, wants);
    } else if (isdigit(c)) {
        skip_word(s);
    } else if (c == '"' || c == '\'') {
        skip_quoted(s);
    } else if (c == '[' && long_level(s) >= 0) {
        skip_long(s, long_level(s));
    } else if (c == '[' || c == '(' || c == '{') {
        s->at++;
        open_bracket(s);
        s->wants = true;
    } else if (c == ']' || c == ')' || c == '}') {
        s->at++;
        close_bracket(s, (char)c);
    } else if (s->end - s->at >= 3 && !memcmp(s->at, "...", 3)) {
        s->at += 3;
        s->chain = 0;
    } else {
        bool field = (c == '.' || c == ':') && s->at + 1 < s->end && s->at[1] != c;
        s->wants = c != ';' && !(c == ':' && !field);
        s->at += (c == '.' || c == ':') && !field && s->at + 1 < s->end ? 2 : 1;
        s->dot = field;
        s->chain = field ? s->chain + 1 : 0;
    }
}

#define STRING_OF_(x) #x
#define STRING_OF(x) STRING_OF_(x)

const char *lkl_scan(const char *text, size_t n, size_t *line)
{
    scan s = {.at = text, .end = text + n, .line = 1};
    while (s.at < s.end && s.chain <= LKL_CHAIN_MAX)
        step(&s);
    bool too_long = s.chain > LKL_CHAIN_MAX;
    *line = too_long ? s.line : s.lost;
    return too_long ? "a chain of more than " STRING_OF(
               LKL_CHAIN_MAX) " fields (a.b.c ...): put a part of it into a local variable"
        : s.lost
        ? "kube.fail and kube.retry do nothing by themselves: return their result, or raise it with error()"
        : NULL;
}
