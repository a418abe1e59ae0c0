/* lex.h - the words of an expression (private to this room). Owner thread. */
#ifndef KL_CEL_LEX_H
#define KL_CEL_LEX_H

#include "cel/cel_impl.h"

typedef enum kl__cword {
    KL_W_END,
    KL_W_IDENT,
    KL_W_ESCAPED, /* `a name` */
    KL_W_CONST,   /* a number, a text, true, false, null */
    KL_W_SIGN,    /* an operator or a bracket: sign[] */
    KL_W_IN,
} kl__cword;

typedef struct kl__clex {
    kl__csource *src;
    size_t pos; /* behind the word */
    kl__cword word;
    size_t at, len; /* the word in the text */
    char sign[4];
    kl__cval value;
    bool negatable; /* a number that includes a minus before it */
} kl__clex;

/* Reads the next word. Skips signs that begin no word, and adds an issue for each. */
void kl__clex_next(kl__clex *l);
/* A number with a minus before it, whose place is `at`. */
void kl__clex_negate(kl__clex *l, size_t at);

#endif
