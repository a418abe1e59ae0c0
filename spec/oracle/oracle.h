/* oracle.h - how the oracle program learns the operations of a table.
 *
 * A file of spec/oracle names the ops it knows and is linked in; nothing else needs to be told:
 *
 *   static kl_status parse(const oracle_case *c, kl_builder *out, kl_err *err);
 *   static const oracle_op ops[] = { { "parse", parse, NULL }, { 0 } };
 *   ORACLE_TABLE("quantity", ops)
 *
 * Several files may know ops of one table. */
#ifndef KL_SPEC_ORACLE_H
#define KL_SPEC_ORACLE_H

#include "base/err.h"
#include "value/value.h"

typedef struct oracle_case {
    const char *name, *op;
    const kl_value *in;
    const kl_value *want; /* NULL when the library returned an error */
} oracle_case;

typedef struct oracle_op {
    const char *name;
    /* Works out the answer: adds the members of the object `want` to `out`, which is open. A failure is
     * the answer to a case whose library call failed, and wrong elsewhere; out is thrown away then. */
    kl_status (*run)(const oracle_case *c, kl_builder *out, kl_err *err);
    /* Whether the answer is as good as c->want; NULL: when they are equal as JSON values. */
    bool (*same)(const oracle_case *c, const kl_value *got);
} oracle_op;

/* ops ends with an empty one; both live forever. */
void oracle_register(const char *table, const oracle_op *ops);
#define ORACLE_TABLE(table, ops)                                                                             \
    __attribute__((constructor)) static void oracle_register_ops(void) { oracle_register(table, ops); }

/* A member that the case must have. When it is missing or of another type, the case fails with a message
 * that says so. */
KL_NODISCARD kl_status oracle_str(const kl_value *in, const char *key, const char **out, kl_err *err);
/* a number, or a decimal in a string */
KL_NODISCARD kl_status oracle_int(const kl_value *in, const char *key, int64_t *out, kl_err *err);
/* The JSON of schemas/FILE beside the tables; borrowed, for as long as the program runs. */
KL_NODISCARD kl_status oracle_schemas(const char *file, const kl_value **out, kl_err *err);
/* as a decimal in a string */
void oracle_build_int(kl_builder *b, const char *key, int64_t v);
void oracle_build_bool(kl_builder *b, const char *key, bool v);

/* What oracle_str and oracle_int return, and what a run may return: the case itself makes no sense. Never
 * a right answer. */
#define ORACLE_BAD_CASE KL_EINTERNAL

/* What a run may return where we answer otherwise than the library and mean to; the file says why. Such a
 * case is counted apart. */
#define ORACLE_ON_PURPOSE KL_ECANCELLED

#endif
