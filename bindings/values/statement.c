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
 */
#include "values/statement.h"

#include "state/dump.h"

static bool is_local(const lkl_dumped *f, size_t pc, unsigned r)
{
    unsigned alive = 0;
    for (size_t i = 0; i < f->n_locals; i++)
        alive += f->locals[i].from <= (int)pc && (int)pc < f->locals[i].to;
    return r < alive;
}

static lkl__key key_of(const lkl_dumped *f, bool is_name, bool is_index, unsigned x)
{
    if (is_index)
        return (lkl__key){.kind = LKL__KEY_INDEX, .index = x};
    if (!is_name || x >= f->n_constants || !f->constants[x].text)
        return (lkl__key){LKL__KEY_ANY};
    return (lkl__key){.kind = LKL__KEY_NAME, .name = f->constants[x].text, .len = f->constants[x].len};
}

/* Finds the instruction before `pc` that wrote register r; true if it reads a field. */
static bool read_before(const lkl_dumped *f, size_t *pc, unsigned r)
{
    while ((*pc)-- > 0) {
        lkl_instruction i = lkl_dump_at(f, *pc);
        if (i.op != LKL_OP_JMP && i.op != LKL_OP_EXTRAARG && i.a == r)
            return i.op >= LKL_OP_GETTABUP && i.op <= LKL_OP_GETFIELD;
    }
    return false;
}

static void follow(const lkl_dumped *f, size_t pc, unsigned r, lkl__target *t)
{
    while (t->n < LKL__READS_MAX) {
        if (is_local(f, pc, r)) {
            t->root = LKL__ROOT_LOCAL;
            t->root_number = (int)r + 1;
            return;
        }
        if (!read_before(f, &pc, r))
            return;
        lkl_instruction i = lkl_dump_at(f, pc);
        t->reads[t->n].line = f->lines[pc];
        t->reads[t->n++].key = key_of(
            f, i.op == LKL_OP_GETFIELD || i.op == LKL_OP_GETTABUP, i.op == LKL_OP_GETI, i.c);
        if (i.op == LKL_OP_GETTABUP) {
            t->root = LKL__ROOT_UPVALUE;
            t->root_number = (int)i.b + 1;
            return;
        }
        r = i.b;
    }
}

/* The register that this instruction uses in that way, or -1. */
static int register_of(lkl_instruction i, lkl__use use)
{
    if (use == LKL__ASSIGNED)
        return i.op >= LKL_OP_SETTABLE && i.op <= LKL_OP_SETFIELD ? (int)i.a : -1;
    if (use == LKL__MEASURED)
        return i.op == LKL_OP_LEN ? (int)i.b : -1;
    return i.op == LKL_OP_CALL || i.op == LKL_OP_TAILCALL ? (int)i.a + 1 : -1;
}

typedef struct looked { /* for */
    int line;
    lkl__use use;
    lkl__target *out;
    size_t n, max;
} looked;

static void look(const lkl_dumped *f, void *arg)
{
    looked *l = arg;
    for (size_t pc = 0; !f->inner && pc < f->n_code && l->n < l->max; pc++) {
        lkl_instruction i = lkl_dump_at(f, pc);
        int r = register_of(i, l->use);
        if (f->lines[pc] != l->line || r < 0)
            continue;
        lkl__target *t = &l->out[l->n];
        *t = (lkl__target){.key = {LKL__KEY_ANY}};
        if (l->use == LKL__ASSIGNED)
            t->key = key_of(f, i.op == LKL_OP_SETFIELD, i.op == LKL_OP_SETI, i.b);
        follow(f, pc, (unsigned)r, t);
        l->n += t->n > 0;
    }
}

size_t lkl__targets(const char *dump, size_t n, int line, lkl__use use, lkl__target *out, size_t max)
{
    looked l = {.line = line, .use = use, .out = out, .max = max};
    (void)lkl_dump_read(dump, n, look, &l);
    return l.n;
}
