/* pattern.c - compiles a pattern into a row of nodes, and matches it with a stack of choices.
 *
 *   "(%w+)=(%d*)$"  ->  open 0 | many %w, 1.. | close 0 | one '=' | open 1 | many %d, 0.. | close 1 | end |
 *   match
 *
 * Patterns have no alternatives but the number of repetitions of one character, so each node has at most one
 * open choice, and the state of captures at a node is fixed when the row is built: which exist, which are
 * closed, what a %1 refers to. Backtracking leaves later captures behind; they are set again before they are
 * read. */
#include "base/pattern.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define SPEND_EVERY 4096

typedef enum op {
    ONE,
    OPTIONAL,
    MANY,
    FEW,
    OPEN,
    POSITION,
    CLOSE,
    SAME,
    BALANCED,
    FRONTIER,
    END,
    WRONG,
    MATCH
} op;
typedef enum kind { CHARACTER, ANY, SET } kind;

/* a: the character, the capture, or the opening character of %b. b: the closing character of %b, or the
 * minimum of a MANY. */
typedef struct node {
    uint8_t op, kind, a, b;
    uint32_t set;
} node;
typedef struct set {
    uint64_t bits[4];
} set;
/* MANY, OPTIONAL: the match continued from `now` and may continue from less, down to `least`. FEW: from
 * `now`, or more. */
typedef struct choice {
    const node *after;
    const char *now, *least;
} choice;

struct kl_pattern {
    const node *lead; /* a character that every match begins with, or NULL */
    node *nodes;
    set *sets;
    choice *choices;
    uint32_t n_nodes, n_sets;
    uint8_t n_captures;
    bool anchored;
    /* the message of the WRONG node; NULL: the pattern refers to capture `missing`, which does not exist */
    const char *wrong;
    uint8_t missing;
};

/* --- making the row ----------------------------------------------------------------------- */

static bool repeats(char c) { return c == '*' || c == '+' || c == '-' || c == '?'; }

static size_t rounded(size_t n) { return (n + 15) & ~(size_t)15; }

/* All parts are in one allocation; these are the maximum sizes that a pattern text needs. */
typedef struct extent {
    size_t nodes, sets, choices;
} extent;

static extent extent_of(const char *text, size_t n)
{
    extent e = {n + 1, 0, 0};
    for (size_t i = 0; i < n; i++) {
        e.sets += text[i] == '[' || text[i] == '%';
        e.choices += repeats(text[i]);
    }
    return e;
}

static size_t size_of(extent e)
{
    return rounded(sizeof(kl_pattern)) + rounded(e.nodes * sizeof(node)) + rounded(e.sets * sizeof(set))
        + e.choices * sizeof(choice);
}

size_t kl_pattern_size(const char *text, size_t n) { return size_of(extent_of(text, n)); }

static void set_add(set *s, uint8_t c) { s->bits[c >> 6] |= 1ull << (c & 63); }
static inline bool set_has(const set *s, uint8_t c) { return s->bits[c >> 6] >> (c & 63) & 1; }

bool kl_pattern_plain(const char *text, size_t n)
{
    static const set specials = {{0x80006d3000000000, 0x0000000048000000, 0, 0}}; /* ^$*+?.([%- */
    for (size_t i = 0; i < n; i++)
        if (set_has(&specials, (uint8_t)text[i]))
            return false;
    return true;
}

/* The named classes of the C locale: all of ASCII. */
static bool add_class(set *s, char name)
{
    static const struct {
        char name;
        uint64_t low, high;
    } classes[] = {
        {'a', 0, 0x07fffffe07fffffe},
        {'c', 0x00000000ffffffff, 0x8000000000000000},
        {'d', 0x03ff000000000000, 0},
        {'g', 0xfffffffe00000000, 0x7fffffffffffffff},
        {'l', 0, 0x07fffffe00000000},
        {'p', 0xfc00fffe00000000, 0x78000001f8000001},
        {'s', 0x0000000100003e00, 0},
        {'u', 0, 0x0000000007fffffe},
        {'w', 0x03ff000000000000, 0x07fffffe07fffffe},
        {'x', 0x03ff000000000000, 0x0000007e0000007e},
        {'z', 1, 0},
    };
    bool others = name >= 'A' && name <= 'Z';
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (classes[i].name == (others ? name | 0x20 : name)) {
            uint64_t flip = others ? ~0ull : 0;
            s->bits[0] |= classes[i].low ^ flip;
            s->bits[1] |= classes[i].high ^ flip;
            s->bits[2] |= flip;
            s->bits[3] |= flip;
            return true;
        }
    return false;
}

typedef struct maker {
    kl_pattern *p;
    const char *at, *end;
    size_t choices;
    bool open[KL_CAPTURES_MAX];
} maker;

static node *add(maker *m, op what)
{
    node *n = &m->p->nodes[m->p->n_nodes++];
    *n = (node){.op = (uint8_t)what};
    return n;
}

static bool wrong(maker *m, const char *why)
{
    m->p->wrong = why;
    add(m, WRONG);
    return false;
}

static set *new_set(maker *m, uint32_t *number)
{
    *number = m->p->n_sets++;
    return memset(&m->p->sets[*number], 0, sizeof(set));
}

/* Just after the ] that ends the set at m->at, or NULL. A ] in first place, or after a %, is a character. */
static const char *set_end(const maker *m)
{
    const char *c = m->at + 1;
    if (c < m->end && *c == '^')
        c++;
    for (const char *first = c; c < m->end; c++)
        if (*c == ']' && c > first)
            return c + 1;
        else if (*c == '%' && ++c == m->end)
            return NULL;
    return NULL;
}

/* Reads the set at m->at, and moves m->at past it. */
static bool read_set(maker *m, uint32_t *number)
{
    const char *last = set_end(m);
    if (!last)
        return wrong(m, "malformed pattern (missing ']')");
    set *s = new_set(m, number);
    const char *c = m->at + 1, *close = last - 1;
    bool others = *c == '^';
    for (c += others; c < close; c++) {
        if (*c == '%') {
            if (!add_class(s, *++c))
                set_add(s, (uint8_t)*c);
        } else if (c[1] == '-' && c + 2 < close) {
            for (int i = (uint8_t)c[0]; i <= (uint8_t)c[2]; i++)
                set_add(s, (uint8_t)i);
            c += 2;
        } else
            set_add(s, (uint8_t)*c);
    }
    for (int i = 0; others && i < 4; i++)
        s->bits[i] = ~s->bits[i];
    m->at = last;
    return true;
}

/* Reads a single character class and its repetition. */
static bool read_single(maker *m)
{
    node n = {.op = ONE};
    char c = *m->at;
    if (c == '[') {
        n.kind = SET;
        if (!read_set(m, &n.set))
            return false;
    } else {
        m->at++;
        n.kind = c == '.' ? ANY : CHARACTER;
        if (c == '%') {
            if (m->at == m->end)
                return wrong(m, "malformed pattern (ends with '%')");
            c = *m->at++;
            uint32_t number;
            set *s = new_set(m, &number);
            if (add_class(s, c)) {
                n.kind = SET;
                n.set = number;
            } else
                m->p->n_sets--;
        }
        n.a = (uint8_t)c;
    }
    if (m->at < m->end && repeats(*m->at)) {
        char how = *m->at++;
        n.op = how == '?' ? OPTIONAL : how == '-' ? FEW : MANY;
        n.b = how == '+';
    }
    *add(m, (op)n.op) = n;
    return true;
}

static bool read_open(maker *m)
{
    if (m->p->n_captures == KL_CAPTURES_MAX)
        return wrong(m, "too many captures");
    m->at++;
    bool position = m->at < m->end && *m->at == ')';
    m->at += position;
    m->open[m->p->n_captures] = !position;
    add(m, position ? POSITION : OPEN)->a = m->p->n_captures++;
    return true;
}

static bool read_close(maker *m)
{
    m->at++;
    for (int i = m->p->n_captures; i-- > 0;)
        if (m->open[i]) {
            m->open[i] = false;
            add(m, CLOSE)->a = (uint8_t)i;
            return true;
        }
    return wrong(m, "invalid pattern capture");
}

/* %b, %f and %1 are not single characters, and cannot be repeated. */
static bool read_escape(maker *m)
{
    char c = m->end - m->at > 1 ? m->at[1] : 0;
    if (c == 'b') {
        if (m->end - m->at < 4)
            return wrong(m, "malformed pattern (missing arguments to '%b')");
        node *n = add(m, BALANCED);
        n->a = (uint8_t)m->at[2];
        n->b = (uint8_t)m->at[3];
        m->at += 4;
        return true;
    }
    if (c == 'f') {
        m->at += 2;
        uint32_t number;
        if (m->at == m->end || *m->at != '[')
            return wrong(m, "missing '[' after '%f' in pattern");
        if (!read_set(m, &number))
            return false;
        add(m, FRONTIER)->set = number;
        return true;
    }
    if (c < '0' || c > '9')
        return read_single(m);
    int i = c - '1';
    if (i < 0 || i >= m->p->n_captures || m->open[i]) {
        m->p->missing = (uint8_t)(i + 1);
        return wrong(m, NULL);
    }
    add(m, SAME)->a = (uint8_t)i;
    m->at += 2;
    return true;
}

static bool read_next(maker *m)
{
    switch (*m->at) {
    case '(': return read_open(m);
    case ')': return read_close(m);
    case '%': return read_escape(m);
    case '$':
        if (m->at + 1 == m->end) {
            add(m, END);
            m->at++;
            return true;
        }
        /* fall through */
    default: return read_single(m);
    }
}

static const node *lead_of(const kl_pattern *p)
{
    const node *n = p->nodes;
    while (n->op == OPEN || n->op == POSITION)
        n++;
    return (n->op == ONE || n->op == BALANCED || (n->op == MANY && n->b)) && n->kind != ANY ? n : NULL;
}

kl_pattern *kl_pattern_init(void *memory, size_t room, const char *text, size_t n, bool anchors)
{
    extent e = extent_of(text, n);
    if (size_of(e) > room)
        return NULL;
    kl_pattern *p = memory;
    char *place = (char *)memory + rounded(sizeof *p);
    *p = (kl_pattern){.nodes = (node *)(void *)place, .anchored = anchors && n && *text == '^'};
    place += rounded(e.nodes * sizeof(node));
    p->sets = (set *)(void *)place;
    p->choices = (choice *)(void *)(place + rounded(e.sets * sizeof(set)));
    maker m = {.p = p, .at = text + p->anchored, .end = text + n};
    bool good = true;
    while (good && m.at < m.end)
        good = read_next(&m);
    if (good)
        add(&m, MATCH);
    p->lead = lead_of(p);
    return p;
}

bool kl_pattern_anchored(const kl_pattern *p) { return p->anchored; }
size_t kl_pattern_captures(const kl_pattern *p) { return p->n_captures; }

/* --- matching ----------------------------------------------------------------------------- */

void kl_matching_init(
    kl_matching *m, const char *subject, size_t n, void (*spend)(void *arg, size_t steps), void *arg)
{
    m->begin = m->from = subject;
    m->end = subject + n;
    m->spend = spend;
    m->arg = arg;
    m->steps = 0;
    m->error[0] = 0;
}

static void spent(kl_matching *m, size_t steps)
{
    m->steps += steps;
    if (m->steps < SPEND_EVERY)
        return;
    steps = m->steps;
    m->steps = 0;
    m->spend(m->arg, steps);
}

static inline bool holds(const kl_pattern *p, const node *n, char c)
{
    switch (n->kind) {
    case CHARACTER: return (uint8_t)c == n->a;
    case SET: return set_has(&p->sets[n->set], (uint8_t)c);
    default: return true;
    }
}

/* The length of a run of characters of a class. */
static const char *run_of(const kl_pattern *p, const node *n, const char *s, const char *end)
{
    switch (n->kind) {
    case CHARACTER:
        while (s < end && (uint8_t)*s == n->a)
            s++;
        return s;
    case SET: {
        const set *in = &p->sets[n->set];
        while (s < end && set_has(in, (uint8_t)*s))
            s++;
        return s;
    }
    default: return end;
    }
}

/* The end of the text that n->a opens at s and n->b closes, or NULL. */
static const char *balanced(kl_matching *m, const node *n, const char *s)
{
    if (s == m->end || (uint8_t)*s != n->a)
        return NULL;
    const char *from = s;
    size_t depth = 1;
    while (++s < m->end)
        if ((uint8_t)*s == n->b) {
            if (!--depth)
                break;
        } else if ((uint8_t)*s == n->a)
            depth++;
    spent(m, (size_t)(s - from));
    return s < m->end ? s + 1 : NULL;
}

static bool at_frontier(const kl_pattern *p, const kl_matching *m, const node *n, const char *s)
{
    uint8_t before = s == m->begin ? 0 : (uint8_t)s[-1], here = s == m->end ? 0 : (uint8_t)*s;
    const set *in = &p->sets[n->set];
    return !set_has(in, before) && set_has(in, here);
}

/* A position capture never matches again; text does when it is equal. */
static bool comes_again(kl_matching *m, const kl_capture *c, const char *s)
{
    if (c->len < 0 || m->end - s < c->len)
        return false;
    spent(m, (size_t)c->len);
    return !memcmp(c->at, s, (size_t)c->len);
}

/* Backtracks to the last choice: where the match continues, or NULL. *top moves. */
static const char *otherwise(const kl_pattern *p, const kl_matching *m, choice **top, const node **at)
{
    while (*top > p->choices) {
        choice *c = *top - 1;
        const node *n = c->after - 1;
        *at = c->after;
        if (n->op == FEW) {
            if (c->now < m->end && holds(p, n, *c->now))
                return ++c->now;
        } else {
            const char *s = c->now;
            /* Skips places where the required next character is not found. */
            bool known = c->after->op == ONE && c->after->kind == CHARACTER;
            do
                s--;
            while (known && s > c->least && (uint8_t)*s != c->after->a);
            c->now = s;
            if (s == c->least)
                --*top;
            return s;
        }
        --*top;
    }
    return NULL;
}

static void tell(kl_matching *m, const kl_pattern *p)
{
    if (p->wrong)
        snprintf(m->error, sizeof m->error, "%s", p->wrong);
    else
        snprintf(m->error, sizeof m->error, "invalid capture index %%%d", p->missing);
}

/* The walk from `s`: the end of the match, or NULL. */
static const char *walk(kl_pattern *p, kl_matching *m, const char *s)
{
    const char *const end = m->end;
    const node *at = p->nodes;
    choice *top = p->choices;
    size_t steps = 0;
    for (;;) {
        const node *n = at++;
        bool good = true;
        switch ((op)n->op) {
        case ONE:
            if ((good = s < end && holds(p, n, *s)))
                s++;
            break;
        case OPTIONAL:
            if (s < end && holds(p, n, *s)) {
                *top++ = (choice){at, s + 1, s};
                s++;
            }
            break;
        case MANY: {
            const char *far = run_of(p, n, s, end);
            steps += (size_t)(far - s);
            s += n->b;
            if ((good = far >= s)) {
                if (far > s)
                    *top++ = (choice){at, far, s};
                s = far;
            }
            break;
        }
        case FEW: *top++ = (choice){at, s, s}; break;
        case OPEN: m->captures[n->a] = (kl_capture){s, KL_CAPTURE_OPEN}; break;
        case POSITION: m->captures[n->a] = (kl_capture){s, KL_CAPTURE_POSITION}; break;
        case CLOSE: m->captures[n->a].len = s - m->captures[n->a].at; break;
        case SAME:
            if ((good = comes_again(m, &m->captures[n->a], s)))
                s += m->captures[n->a].len;
            break;
        case BALANCED: {
            const char *behind = balanced(m, n, s);
            if ((good = behind != NULL))
                s = behind;
            break;
        }
        case FRONTIER: good = at_frontier(p, m, n, s); break;
        case END: good = s == end; break;
        case WRONG: tell(m, p); return NULL;
        case MATCH: spent(m, steps); return s;
        }
        if (++steps >= SPEND_EVERY) {
            spent(m, steps);
            steps = 0;
        }
        if (!good && !(s = otherwise(p, m, &top, &at))) {
            spent(m, steps);
            return NULL;
        }
    }
}

const char *kl_pattern_match(kl_pattern *p, kl_matching *m, const char *at)
{
    m->error[0] = 0;
    m->from = at;
    return walk(p, m, at);
}

/* The first place at or behind s where a match may begin, or NULL. */
static const char *next_begin(const kl_pattern *p, const kl_matching *m, const char *s)
{
    if (!p->lead)
        return s;
    if (p->lead->kind == CHARACTER)
        return memchr(s, p->lead->a, (size_t)(m->end - s));
    const set *in = &p->sets[p->lead->set];
    while (s < m->end && !set_has(in, (uint8_t)*s))
        s++;
    return s < m->end ? s : NULL;
}

const char *kl_pattern_search(kl_pattern *p, kl_matching *m, const char *at)
{
    if (p->anchored)
        return kl_pattern_match(p, m, at);
    for (const char *s = at; s <= m->end; s++) {
        const char *begin = next_begin(p, m, s);
        if (!begin)
            return NULL;
        const char *end = kl_pattern_match(p, m, begin);
        if (end || m->error[0])
            return end;
        s = begin;
    }
    return NULL;
}
