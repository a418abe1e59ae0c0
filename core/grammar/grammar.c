/* grammar.c - the grammar of CEL as a graph of tokens, calls of rules and choices, and a walk over it by
 * ANTLR's strategy for errors (its class DefaultErrorStrategy). */
#include "grammar/grammar.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

/* How often the real one resumes, and how many tokens it skips at once. */
#define RECOVERIES_MAX 30
#define SKIPPED_MAX 256
#define NODES_MAX 256

/* Sets of tokens have a bit for each, and one for the end of a rule. */
#define BIT(t) ((uint64_t)1 << (t))
#define RULE_END BIT(63)
static const char *const names[KL_T_TOKENS] = {"<EOF>", "'=='", "'!='", "'in'", "'<'", "'<='", "'>='", "'>'",
    "'&&'", "'||'", "'['", "']'", "'{'", "'}'", "'('", "')'", "'.'", "','", "'-'", "'!'", "'?'", "':'", "'+'",
    "'*'", "'/'", "'%'", "'true'", "'false'", "'null'", "", "", "NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING",
    "BYTES", "IDENTIFIER", "ESC_IDENTIFIER"};

/* The grammar: rules are capitals, with the precedence that a call of a left-recursive one has; <x/y> is
 * either, followed by ~ for at most one, * and +. Tokens are themselves but for those in `letters`. */
static const char *const rules[] = {"SE$", "EO<?O:E>~", "OA<|A>*", "AR<&R>*", "RC<rR2>*", "CU<<mC3/aC2>>*",
    "U<M/<!>+M/<->+M>", "MP<<.<?>~N/.i(<L>~)/[<?>~E]>>*",
    "P<<.>~i/<.>~i(<L>~)/(E)/[<I>~<,>~]/{<K>~<,>~}/<.>~i<.i>*{<F>~<,>~}/T>", "LE<,E>*", "IX<,X>*",
    "FD:E<,D:E>*", "D<?>~N", "KX:E<,X:E>*", "N<i/q>", "X<?>~E", "T<<->~n/u/<->~d/s/b/t/f/z>"};
static const struct {
    char letter;
    uint64_t set;
} letters[] = {{'$', BIT(KL_T_END)}, {'r', BIT(8) - BIT(1)}, {'&', BIT(KL_T_AND)}, {'|', BIT(KL_T_OR)},
    {'a', BIT(KL_T_MINUS) | BIT(KL_T_PLUS)}, {'m', BIT(23) | BIT(24) | BIT(25)}, {'t', BIT(KL_T_TRUE)},
    {'f', BIT(KL_T_FALSE)}, {'z', BIT(KL_T_NULL)}, {'d', BIT(KL_T_DOUBLE)}, {'n', BIT(KL_T_INT)},
    {'u', BIT(KL_T_UINT)}, {'s', BIT(KL_T_STRING)}, {'b', BIT(KL_T_BYTES)}, {'i', BIT(KL_T_NAME)},
    {'q', BIT(KL_T_ESCAPED)}};

typedef struct gnode gnode;
struct gnode {
    enum { TOKEN, RULE, EITHER, MAYBE, STAR, PLUS, BACK } kind; /* BACK: behind one round of a STAR or PLUS */
    char rule;                                                  /* the rule that it is in */
    unsigned id;
    uint64_t set; /* TOKEN */
    char call;    /* RULE */
    int precedence;
    const gnode *alt[9];
    unsigned n;
    const gnode *next; /* NULL: the end of the rule */
};

typedef struct frame {
    const gnode *call; /* NULL: the outermost */
    const struct frame *up;
    int precedence;
} frame;

typedef struct walk {
    const char *text;
    size_t n;
    const kl_token *token;
    size_t ntokens, pos;
    kl_grammar_told *told;
    void *arg;
    gnode node[NODES_MAX];
    unsigned nodes;
    const gnode *rule['Z' + 1];
    const gnode *state;
    bool failed;     /* the rule ends here */
    bool recovering; /* after a fault: the next ones are told once a token fits again */
    bool stopped;
    size_t failed_at; /* the token of the last failure, and the states that failed there */
    uint64_t failed_in[NODES_MAX / 64];
    int recoveries, depth;
} walk;

/* ---------------------------------------------------------------- the graph */

static uint64_t set_of(char c)
{
    const char one[] = {'\'', c, '\'', 0};
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
        if (letters[i].letter == c)
            return letters[i].set;
    for (unsigned t = 1; t < KL_T_TOKENS; t++)
        if (!strcmp(names[t], one))
            return BIT(t);
    return 0;
}

static gnode *node(walk *w, char rule)
{
    gnode *g = &w->node[w->nodes];
    g->id = w->nodes++;
    g->rule = rule;
    return g;
}

/* Reads a sequence, whose end leads to `after`. Items are made from the right: *end is behind the last one.
 */
static const gnode *sequence(walk *w, char rule, const char *begin, const char *end, const gnode *after)
{
    while (end > begin) {
        gnode *g = node(w, rule);
        char last = *--end, kind = 0;
        if (last == '~' || last == '*' || last == '+') {
            kind = last;
            last = *--end;
        }
        g->next = after;
        if (last == '>') {
            const gnode *behind = after;
            g->kind = kind == '~' ? MAYBE : kind == '*' ? STAR : kind == '+' ? PLUS : EITHER;
            gnode *back = kind == '*' || kind == '+' ? node(w, rule) : NULL;
            if (back)
                behind = back;
            const char *close = end;
            for (int level = 1; level;) {
                end--;
                level += *end == '>' ? 1 : *end == '<' ? -1 : 0;
                if ((*end == '/' || *end == '<') && level == (*end == '/')) {
                    g->alt[g->n++] = sequence(w, rule, end + 1, close, behind);
                    close = end;
                }
            }
            for (unsigned i = 0; i < g->n / 2; i++) {
                const gnode *x = g->alt[i];
                g->alt[i] = g->alt[g->n - 1 - i];
                g->alt[g->n - 1 - i] = x;
            }
            if (back) {
                unsigned id = back->id;
                *back = *g;
                back->kind = BACK;
                back->id = id;
            }
        } else {
            if (last >= '1' && last <= '9') {
                g->precedence = last - '0';
                last = *--end;
            }
            g->kind = last >= 'A' && last <= 'Z' ? RULE : TOKEN;
            g->call = last;
            g->set = set_of(last);
        }
        after = g;
    }
    return after;
}

/* What may come at a place of a rule; RULE_END where the rule may end. */
static uint64_t look(const walk *w, const gnode *g)
{
    if (!g)
        return RULE_END;
    if (g->kind == TOKEN)
        return g->set;
    if (g->kind == RULE)
        return look(w, w->rule[(unsigned char)g->call]);
    uint64_t set = 0;
    for (unsigned i = 0; i < g->n; i++)
        set |= look(w, g->alt[i]);
    return g->kind == EITHER || g->kind == PLUS ? set : set | look(w, g->next);
}

/* The same, with what may come behind the rule. */
static uint64_t expected(const walk *w, const gnode *g, const frame *f)
{
    uint64_t set = look(w, g);
    for (; (set & RULE_END) && f && f->call; f = f->up)
        set = (set & ~RULE_END) | look(w, f->call->next);
    return set & RULE_END ? (set & ~RULE_END) | BIT(KL_T_END) : set;
}

/* ---------------------------------------------------------------- tokens */

unsigned kl_token_sign(const char *sign)
{
    for (unsigned t = 1; t < KL_T_TRUE; t++)
        if (!strncmp(names[t] + 1, sign, strlen(names[t]) - 2) && !sign[strlen(names[t]) - 2])
            return t;
    return KL_T_END;
}

static const kl_token *ahead(const walk *w, size_t n)
{
    size_t i = w->pos + n - 1;
    return &w->token[i < w->ntokens ? i : w->ntokens - 1];
}

static bool may(uint64_t set, const kl_token *t) { return set & BIT(t->type); }

static void consume(walk *w)
{
    if (w->pos + 1 < w->ntokens)
        w->pos++;
}

/* ---------------------------------------------------------------- what is said */

static void tell(walk *w, size_t at, const char *fmt, ...) KL_PRINTF(3, 4);
static void tell(walk *w, size_t at, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *text = kl_vsprintf(fmt, ap);
    va_end(ap);
    w->told(w->arg, at, text);
    kl_free(text);
}

/* Appends these bytes as messages show them; the end is its name. */
static void show(const walk *w, size_t from, size_t to, kl_buf *out)
{
    if (from >= w->n)
        kl_buf_puts(out, names[KL_T_END]);
    for (size_t i = from; i < to && i < w->n; i++) {
        const char *at = memchr("\t\n\r", w->text[i], 3);
        if (at)
            kl_buf_printf(out, "\\%c", "tnr"[strchr("\t\n\r", *at) - "\t\n\r"]);
        else
            kl_buf_putc(out, w->text[i]);
    }
}

static void list(uint64_t set, kl_buf *out)
{
    bool several = set & (set - 1);
    const char *before = several ? "{" : "";
    for (unsigned t = 0; t < KL_T_TOKENS; t++)
        if (set & BIT(t)) {
            kl_buf_printf(out, "%s%s", before, names[t]);
            before = ", ";
        }
    kl_buf_puts(out, several ? "}" : "");
}

/* Says that the next token does not fit; once, until one does. */
static void unfit(walk *w, const char *how, const gnode *g, const frame *f)
{
    const kl_token *t = ahead(w, 1);
    kl_buf it = KL_BUF_INIT, what = KL_BUF_INIT;
    show(w, t->at, t->at + t->len, &it);
    list(expected(w, g, f), &what);
    if (!w->recovering && !strcmp(how, "missing"))
        tell(w, t->at, "missing %s at '%s'", kl_buf_str(&what), kl_buf_str(&it));
    else if (!w->recovering)
        tell(w, t->at, "%s input '%s' expecting %s", how, kl_buf_str(&it), kl_buf_str(&what));
    w->recovering = true;
    kl_buf_fini(&it);
    kl_buf_fini(&what);
}

/* No alternative goes on with the n-th token. */
static const gnode *hopeless(walk *w, size_t n)
{
    const kl_token *t = ahead(w, n), *from = ahead(w, 1);
    bool word = n == 2 && from->len == 1 && t->at == from->at + 1 && t->type >= KL_T_TRUE
        && t->type <= KL_T_NULL;
    kl_buf it = KL_BUF_INIT;
    show(w, from->at, t->at + t->len, &it);
    if (!w->recovering && word)
        tell(w, t->at, "mismatched input %s expecting IDENTIFIER", names[t->type]);
    else if (!w->recovering)
        tell(w, t->at, "no viable alternative at input '%s'", kl_buf_str(&it));
    kl_buf_fini(&it);
    w->recovering = w->failed = true;
    return NULL;
}

/* ---------------------------------------------------------------- resuming */

static bool may_resume(walk *w)
{
    if (w->recoveries++ < RECOVERIES_MAX)
        return true;
    tell(w, ahead(w, 1)->at, "error recovery attempt limit exceeded: %d", RECOVERIES_MAX);
    w->failed = w->stopped = true;
    return false;
}

static void skip_until(walk *w, uint64_t set)
{
    for (int n = 0; ahead(w, 1)->type != KL_T_END && !may(set, ahead(w, 1)); consume(w))
        if (n++ == SKIPPED_MAX) {
            tell(w, KL_GRAMMAR_NOWHERE, "error recovery token lookahead limit exceeded: %d", SKIPPED_MAX);
            w->stopped = true;
            return;
        }
}

static uint64_t behind(const walk *w, const frame *f)
{
    uint64_t set = 0;
    for (; f && f->call; f = f->up)
        set |= look(w, f->call->next);
    return set & ~RULE_END;
}

/* Ends a rule that failed, where something follows that may come behind it or behind its callers. */
static void resume(walk *w, const frame *f)
{
    unsigned id = w->state->id;
    if (!may_resume(w))
        return;
    if (w->failed_at == w->pos && w->failed_in[id / 64] & BIT(id % 64))
        consume(w);
    if (w->failed_at != w->pos)
        w->failed_at = w->pos;
    w->failed_in[id / 64] |= BIT(id % 64);
    skip_until(w, behind(w, f));
}

static void fits(walk *w)
{
    w->recovering = false;
    w->failed_at = SIZE_MAX;
    memset(w->failed_in, 0, sizeof w->failed_in);
}

static bool skip_one(walk *w, const gnode *g, const frame *f)
{
    if (!may(expected(w, g, f), ahead(w, 2)))
        return false;
    unfit(w, "extraneous", g, f);
    consume(w);
    fits(w);
    return true;
}

static void match(walk *w, const gnode *g, const frame *f)
{
    if (!may(g->set, ahead(w, 1))) {
        if (!may_resume(w))
            return;
        if (!skip_one(w, g, f)) {
            bool missing = may(expected(w, g->next, f), ahead(w, 1));
            unfit(w, missing ? "missing" : "mismatched", g, f);
            w->failed = !missing;
            return;
        }
    }
    fits(w);
    consume(w);
}

/* Before a choice: drops what fits none of its alternatives. */
static void settle(walk *w, const gnode *g, const frame *f)
{
    uint64_t set = look(w, g);
    if (w->recovering || set & RULE_END || may(set, ahead(w, 1)))
        return;
    if (g->kind == BACK) {
        unfit(w, "extraneous", g, f);
        skip_until(w, expected(w, g, f) | behind(w, f));
    } else if (!skip_one(w, g, f)) {
        unfit(w, "mismatched", g, f);
        w->failed = true;
    }
}

/* ---------------------------------------------------------------- choices */

/* Whether a loop or an optional part begins here. */
static bool enters(walk *w, const gnode *g, const frame *f)
{
    const kl_token *t = ahead(w, 1);
    const gnode *body = g->alt[0];
    if (g->kind == BACK && may(body->set, &(kl_token){.type = KL_T_MINUS})) { /* of a number, or another one
                                                                               */
        size_t n = t->type == KL_T_MINUS ? 2 : 1;
        return may(look(w, w->rule['M']), ahead(w, n)) ? n == 2 : hopeless(w, n) != NULL;
    }
    if (!may(look(w, body), t))
        return false;
    if (g->rule == 'R')
        return f->precedence <= 1;
    if (g->rule == 'C')
        return f->precedence <= (may(look(w, body->alt[0]), t) ? 2 : 1);
    /* A comma may be the last one, but in a call. */
    return t->type != KL_T_COMMA || g->rule == 'L' || g->kind == MAYBE
        || may(look(w, body->next), ahead(w, 2));
}

/* The alternative that the next tokens decide for; fails when there is none. */
static const gnode *chosen(walk *w, const gnode *g)
{
    const kl_token *t = ahead(w, 1), *second = ahead(w, 2);
    bool number = second->type == KL_T_INT || second->type == KL_T_DOUBLE;
    if (g->rule == 'U' && t->type == KL_T_MINUS)
        return number ? g->alt[0] : may(look(w, w->rule['M']), second) ? g->alt[2] : hopeless(w, 2);
    if (g->rule == 'T' && t->type == KL_T_MINUS)
        return number ? g->alt[second->type == KL_T_INT ? 0 : 2] : hopeless(w, 2);
    if (g->rule == 'M' && t->type == KL_T_DOT) {
        if (second->type == KL_T_NAME)
            return g->alt[ahead(w, 3)->type == KL_T_LPAREN];
        return second->type == KL_T_OPTION || second->type == KL_T_ESCAPED ? g->alt[0] : hopeless(w, 2);
    }
    if (g->rule == 'P' && (t->type == KL_T_DOT || t->type == KL_T_NAME)) {
        size_t n = t->type == KL_T_DOT ? 2 : 1;
        if (ahead(w, n)->type != KL_T_NAME)
            return hopeless(w, n);
        if (ahead(w, ++n)->type == KL_T_LPAREN)
            return g->alt[1];
        while (ahead(w, n)->type == KL_T_DOT && ahead(w, n + 1)->type == KL_T_NAME)
            n += 2;
        return g->alt[ahead(w, n)->type == KL_T_OPEN_MAP ? 5 : 0];
    }
    for (unsigned i = 0; i < g->n; i++)
        if (may(look(w, g->alt[i]), t))
            return g->alt[i];
    return hopeless(w, 1);
}

static void follow(walk *w, const gnode *call, const frame *up)
{
    frame f = {call, up, call ? call->precedence : 0};
    const gnode *g = w->rule[call ? (unsigned char)call->call : 'S'];
    if (g->rule == 'E' && ++w->depth > KL_GRAMMAR_DEPTH_MAX) {
        tell(w, KL_GRAMMAR_NOWHERE, "expression recursion limit exceeded: %d", KL_GRAMMAR_DEPTH_MAX);
        w->stopped = true;
    }
    size_t began = ahead(w, 1)->at;
    while (g && !w->stopped) {
        const gnode *now = w->state = g;
        g = now->next;
        if (now->kind == TOKEN)
            match(w, now, &f);
        else if (now->kind == RULE)
            follow(w, now, &f);
        else {
            settle(w, now, &f);
            if (!w->failed && now->kind == EITHER)
                g = chosen(w, now);
            else if (!w->failed && (now->kind == PLUS || enters(w, now, &f)))
                g = now->alt[0];
        }
        if (w->failed && !w->stopped) {
            w->failed = false;
            resume(w, &f);
            if (call && call->call == 'N' && call->rule == 'M')
                tell(w, began, "unsupported ident kind");
            break;
        }
    }
    w->depth -= w->rule[call ? (unsigned char)call->call : 'S']->rule == 'E';
}

void kl_grammar_mistakes(
    const char *text, size_t n, const kl_token *tokens, size_t ntokens, kl_grammar_told *told, void *arg)
{
    walk *w = kl_new(walk);
    *w = (walk){.text = text,
        .n = n,
        .token = tokens,
        .ntokens = ntokens,
        .told = told,
        .arg = arg,
        .failed_at = SIZE_MAX};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        w->rule[(unsigned char)rules[i][0]] = sequence(
            w, rules[i][0], rules[i] + 1, rules[i] + strlen(rules[i]), NULL);
    follow(w, NULL, NULL);
    kl_free(w);
}
