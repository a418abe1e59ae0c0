/* mend.c - two bugs of Lua's compiler that leave the sandbox, found in what it made.
 *
 * 1. `for ... in f, s, v, closing do ... break end`, where a function in the body holds a variable of the
 *    loop. What `break` jumps to closes the variables above the loop's own, so that `closing` is left on the
 *    list of what is to be closed. The next <close> variable below it makes that list's length wrap round:
 *    the interpreter writes far beyond the stack. After the loop there is then
 *
 *        TFORLOOP a
 *        CLOSE    a + 4        where there should be CLOSE a
 *
 *    which is put right. (Mended in 5.4.5.)
 *
 * 2. t[a < b], where t is a variable of an outer function. Where a < b the instruction that loads t is
 *    jumped over, and what lay in its register, of whatever function ran before, is indexed in its place:
 *    tables and functions of the runtime. Before LFALSESKIP there is always the jump that does not want
 *    it; here it is the load of t
 *
 *        LT ... ; JMP ; GETUPVAL t ; LFALSESKIP ; LOADTRUE
 *
 *    which is refused: t's register may be one that the comparison needs. (Mended in 5.4.8.)
 *
 * Lua made the code a moment ago, out of text: that it is loaded again, as bytecode, gives nobody a way to
 * bring bytecode of his own. */
#include "state/mend.h"

#include <lauxlib.h>

#include "base/buf.h"
#include "state/dump.h"

typedef struct found {
    kl_buf code;
    bool is_mended;
    int line; /* of what cannot be, or 0 */
} found;

static int add(lua_State *L, const void *part, size_t n, void *arg)
{
    (void)L;
    return kl_buf_add(arg, part, n) ? 1 : 0;
}

static void close_loop(found *x, const lkl_dumped *f, size_t pc, unsigned a)
{
    size_t place = (size_t)((const char *)f->code - x->code.data) + pc * 4;
    lkl_dump_set_a((unsigned char *)x->code.data + place, a);
    x->is_mended = true;
}

static void look(const lkl_dumped *f, void *arg)
{
    found *x = arg;
    for (size_t pc = 1; pc < f->n_code; pc++) {
        lkl_instruction before = lkl_dump_at(f, pc - 1), now = lkl_dump_at(f, pc);
        if (before.op == LKL_OP_TFORLOOP && now.op == LKL_OP_CLOSE && now.a != before.a)
            close_loop(x, f, pc, before.a);
        if (now.op == LKL_OP_LFALSESKIP && before.op != LKL_OP_JMP && !x->line)
            x->line = f->lines[pc] ? f->lines[pc] : 1;
    }
}

const char *lkl_mend(lua_State *L, const char *chunk, int *line)
{
    found x = {.code = KL_BUF_INIT};
    if (lua_dump(L, add, &x.code, 0) || !lkl_dump_read(x.code.data, x.code.len, look, &x)) {
        kl_buf_fini(&x.code);
        *line = 1;
        return "its compiled code cannot be checked: it is too large, or not from Lua 5.4";
    }
    int st = LUA_OK;
    if (x.is_mended && !x.line) {
        st = luaL_loadbufferx(L, x.code.data, x.code.len, chunk, "b");
        lua_remove(L, -2);
    }
    kl_buf_fini(&x.code);
    if (st)
        lua_error(L);
    *line = x.line;
    return x.line ? "a comparison is the index of a variable of an outer function, t[a < b]: " LUA_RELEASE
                    " would read something else; put the comparison into a local variable"
                  : NULL;
}
