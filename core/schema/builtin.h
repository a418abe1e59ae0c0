/* builtin.h - the built-in kinds and types as text: one line each, NULL at the end. */
#ifndef KL_SCHEMA_BUILTIN_H
#define KL_SCHEMA_BUILTIN_H

#include <stddef.h>

/* "GROUP VERSION KIND PLURAL SINGULAR ns|cluster VERBS SHORT CATEGORIES TYPE
 * SUB:GROUP/VERSION/KIND:VERBS|...", "-" is nothing. */
extern const char *const kl__builtin_kinds[];
/* "NAME[;atomic] FIELD:TYPE[;FLAG]..." with types s i n b q(uantity) t(ime) m(icrotime) B(ytes) x(int or
 * string) o(anything) [list] {map} or a type's name (NAME+: its single fields have owners); flags r(equired)
 * d(efault {}) o(mitted at its zero value) set key=A,B atomic patch=[KEY] retain default=VALUE go=NAME (of a
 * text's type). */
extern const char *const kl__builtin_types[];

#endif
