/* dump.h - reads compiled functions in lua_dump's format: their instructions, constants and lines. Any
 * thread; never raises. */
#ifndef LKL_DUMP_H
#define LKL_DUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A text among the constants, which points into the dump; NULL for another constant. */
typedef struct lkl_dump_text {
    const char *text;
    size_t len;
} lkl_dump_text;

/* Everything is borrowed until the visit is over. */
typedef struct lkl_dumped {
    const unsigned char *code; /* points into the dump, not aligned; lkl_dump_at reads it */
    size_t n_code, n_constants, n_locals;
    lkl_dump_text *constants;
    int *lines; /* one for each instruction */
    struct lkl_dump_local {
        int from, to;
    } * locals; /* instructions between which a variable lives */
    bool inner; /* a function of the one that was dumped, or of one of its functions */
} lkl_dumped;

typedef void lkl_dump_visit(const lkl_dumped *f, void *arg);

/* Calls visit for each function, the inner ones first and the one that was dumped last. False, after fewer
 * visits, if the format is not that of Lua 5.4 on this machine. */
bool lkl_dump_read(const char *dump, size_t n, lkl_dump_visit *visit, void *arg);

typedef enum lkl_op {
    LKL_OP_LFALSESKIP = 6,
    LKL_OP_GETTABUP = 11,
    LKL_OP_GETTABLE,
    LKL_OP_GETI,
    LKL_OP_GETFIELD,
    LKL_OP_SETTABLE = 16,
    LKL_OP_SETI,
    LKL_OP_SETFIELD,
    LKL_OP_LEN = 52,
    LKL_OP_CLOSE = 54,
    LKL_OP_JMP = 56,
    LKL_OP_CALL = 68,
    LKL_OP_TAILCALL,
    LKL_OP_TFORLOOP = 77,
    LKL_OP_EXTRAARG = 82,
} lkl_op;

typedef struct lkl_instruction {
    unsigned op, a, b, c; /* op: an lkl_op, or the number of another opcode */
} lkl_instruction;

lkl_instruction lkl_dump_at(const lkl_dumped *f, size_t pc);
/* Sets operand A of the instruction at `code`. */
void lkl_dump_set_a(unsigned char *code, unsigned a);

#endif
