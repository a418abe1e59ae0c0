/* statement.c - which reads gave the table that an assignment writes to.
 *
 * Lua calls __newindex with a line and says nothing of the expression: in
 *
 *   n.status.a.b = {      -- reads status and a here
 *     x = n.spec.y }      -- assigns here
 *
 * the assignment has the line of its last word. The compiled function knows more: the table lies in a
 * register, and the instruction before that wrote this register is the read that gave it, and so on down to
 * a local variable, an upvalue, or something computed. A register above all local variables is used for
 * nothing else until the statement is over, so the nearest instruction that names it is the one.
 *
 * lua_dump's format and the instructions are those of Lua 5.4 (ldump.c, lopcodes.h); the header is checked.
 */
#include "values/statement.h"

#include <string.h>

#include "base/mem.h"

/* --- the dump ----------------------------------------------------------------------------- */

typedef struct input {
    const unsigned char *at, *end;
    bool is_bad;
} input;

typedef struct locals { /* pcs between which a local variable lives */
    int from, to;
} locals;

typedef struct function {
    const unsigned char *code; /* not aligned */
    size_t n_code, n_constants, n_locals;
    lkl__key *constants; /* ANY where it is no name */
    int *lines;
    locals *locals;
} function;

static const unsigned char *bytes(input *in, size_t n)
{
    const unsigned char *p = in->at;
    if (n > (size_t)(in->end - in->at)) {
        in->is_bad = true;
        in->at = in->end;
        return NULL;
    }
    in->at += n;
    return p;
}

static unsigned byte(input *in)
{
    const unsigned char *p = bytes(in, 1);
    return p ? *p : 0;
}

/* Seven bits a byte, the highest first; the last one is marked. */
static size_t number(input *in)
{
    size_t x = 0;
    unsigned b = 0;
    while (!in->is_bad && !(b & 0x80)) {
        b = byte(in);
        x = x << 7 | (b & 0x7f);
    }
    return in->is_bad ? 0 : x;
}

/* How many things follow that take at least a byte each. */
static size_t count(input *in)
{
    size_t n = number(in);
    if (n > (size_t)(in->end - in->at))
        in->is_bad = true;
    return in->is_bad ? 0 : n;
}

static lkl__key text(input *in)
{
    size_t n = number(in); /* 0: no text, else its length and one */
    if (!n)
        return (lkl__key){LKL__KEY_ANY};
    return (lkl__key){.kind = LKL__KEY_NAME, .name = (const char *)bytes(in, n - 1), .len = n - 1};
}

static lkl__key constant(input *in)
{
    switch (byte(in)) {
    case 0x03: /* an integer */
    case 0x13: /* a float */ (void)bytes(in, 8); break;
    case 0x04: /* a short text */
    case 0x14: /* a long one */ return text(in);
    default: break; /* nil and booleans have no content */
    }
    return (lkl__key){LKL__KEY_ANY};
}

/* Lines are differences; one of -128 says that the next absolute line counts. */
static void read_lines(input *in, function *f, int line)
{
    size_t n = count(in);
    const unsigned char *steps = bytes(in, n);
    size_t n_absolute = count(in);
    f->lines = kl_new_array(int, f->n_code + 1);
    in->is_bad = in->is_bad || n != f->n_code;
    for (size_t pc = 0; !in->is_bad && pc < n; pc++) {
        if ((signed char)steps[pc] != -128) {
            line += (signed char)steps[pc];
        } else if (n_absolute) {
            (void)number(in);
            line = (int)number(in);
            n_absolute--;
        }
        f->lines[pc] = line;
    }
    for (; n_absolute; n_absolute--) {
        (void)number(in);
        (void)number(in);
    }
}

static void read_function(input *in, function *f)
{
    (void)text(in); /* the chunk's name */
    int line = (int)number(in);
    (void)number(in);
    (void)bytes(in, 3);
    f->n_code = count(in);
    f->code = bytes(in, f->n_code * 4);
    f->n_constants = count(in);
    f->constants = kl_new_array(lkl__key, f->n_constants + 1);
    for (size_t i = 0; i < f->n_constants; i++)
        f->constants[i] = constant(in);
    size_t n = count(in);
    (void)bytes(in, n * 3); /* upvalues */
    for (n = count(in); n && !in->is_bad; n--) {
        function inner = {0};
        read_function(in, &inner);
        kl_free(inner.constants);
        kl_free(inner.lines);
        kl_free(inner.locals);
    }
    read_lines(in, f, line);
    f->n_locals = count(in);
    f->locals = kl_new_array(locals, f->n_locals + 1);
    for (size_t i = 0; i < f->n_locals; i++) {
        (void)text(in);
        f->locals[i].from = (int)number(in);
        f->locals[i].to = (int)number(in);
    }
    for (n = count(in); n && !in->is_bad; n--)
        (void)text(in);
}

static bool read_header(input *in)
{
    static const unsigned char head[] = "\x1bLua\x54\x00\x19\x93\r\n\x1a\n\x04\x08\x08";
    const unsigned char *p = bytes(in, sizeof head - 1);
    const unsigned char *sample = bytes(in, 16);
    int64_t integer;
    double real;
    if (!p || !sample)
        return false;
    memcpy(&integer, sample, 8);
    memcpy(&real, sample + 8, 8);
    (void)byte(in); /* how many upvalues */
    return !memcmp(p, head, sizeof head - 1) && integer == 0x5678 && real == 370.5;
}

/* --- instructions ------------------------------------------------------------------------- */

enum {
    OP_GETTABUP = 11,
    OP_GETTABLE,
    OP_GETI,
    OP_GETFIELD,
    OP_SETTABLE = 16,
    OP_SETI,
    OP_SETFIELD,
    OP_JMP = 56,
    OP_EXTRAARG = 82,
};

typedef struct instruction {
    unsigned op, a, b, c;
} instruction;

static instruction at(const function *f, size_t pc)
{
    uint32_t i;
    memcpy(&i, f->code + pc * 4, 4);
    return (instruction){.op = i & 0x7f, .a = i >> 7 & 0xff, .b = i >> 16 & 0xff, .c = i >> 24};
}

static bool is_local(const function *f, size_t pc, unsigned r)
{
    unsigned alive = 0;
    for (size_t i = 0; i < f->n_locals; i++)
        alive += f->locals[i].from <= (int)pc && (int)pc < f->locals[i].to;
    return r < alive;
}

static lkl__key key_of(const function *f, bool is_name, bool is_index, unsigned x)
{
    if (is_index)
        return (lkl__key){.kind = LKL__KEY_INDEX, .index = x};
    return is_name && x < f->n_constants ? f->constants[x] : (lkl__key){LKL__KEY_ANY};
}

/* The instruction before `pc` that wrote register r, when that was a read of a field. */
static bool read_before(const function *f, size_t *pc, unsigned r)
{
    while ((*pc)-- > 0) {
        instruction i = at(f, *pc);
        if (i.op != OP_JMP && i.op != OP_EXTRAARG && i.a == r)
            return i.op >= OP_GETTABUP && i.op <= OP_GETFIELD;
    }
    return false;
}

static void follow(const function *f, size_t pc, unsigned r, lkl__target *t)
{
    while (t->n < LKL__READS_MAX) {
        if (is_local(f, pc, r)) {
            t->root = LKL__ROOT_LOCAL;
            t->root_number = (int)r + 1;
            return;
        }
        if (!read_before(f, &pc, r))
            return;
        instruction i = at(f, pc);
        t->reads[t->n].line = f->lines[pc];
        t->reads[t->n++].key = key_of(f, i.op == OP_GETFIELD || i.op == OP_GETTABUP, i.op == OP_GETI, i.c);
        if (i.op == OP_GETTABUP) {
            t->root = LKL__ROOT_UPVALUE;
            t->root_number = (int)i.b + 1;
            return;
        }
        r = i.b;
    }
}

size_t lkl__targets(const char *dump, size_t n, int line, lkl__target *out, size_t max)
{
    input in = {.at = (const unsigned char *)dump, .end = (const unsigned char *)dump + n};
    function f = {0};
    size_t found = 0;
    if (!read_header(&in))
        return 0;
    read_function(&in, &f);
    for (size_t pc = 0; !in.is_bad && pc < f.n_code && found < max; pc++) {
        instruction i = at(&f, pc);
        if (f.lines[pc] != line || i.op < OP_SETTABLE || i.op > OP_SETFIELD)
            continue;
        lkl__target *t = &out[found];
        *t = (lkl__target){.key = key_of(&f, i.op == OP_SETFIELD, i.op == OP_SETI, i.b)};
        follow(&f, pc, i.a, t);
        found += t->n > 0;
    }
    kl_free(f.constants);
    kl_free(f.lines);
    kl_free(f.locals);
    return found;
}
