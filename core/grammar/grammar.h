/* grammar.h - the mistakes in a text that is not a CEL expression, in the words of a parser made by ANTLR.
 * Any thread. */
#ifndef KL_GRAMMAR_GRAMMAR_H
#define KL_GRAMMAR_GRAMMAR_H

#include <stddef.h>

#define KL_GRAMMAR_DEPTH_MAX 250 /* of expressions within expressions */

/* Tokens by ANTLR's numbers, which give their order in messages; operators and brackets have no names
 * here. */
typedef enum kl_token_type {
    KL_T_END,
    KL_T_IN = 3,
    KL_T_AND = 8,
    KL_T_OR,
    KL_T_OPEN_MAP = 12,
    KL_T_LPAREN = 14,
    KL_T_DOT = 16,
    KL_T_COMMA,
    KL_T_MINUS,
    KL_T_NOT,
    KL_T_OPTION,
    KL_T_PLUS = 22,
    KL_T_TRUE = 26,
    KL_T_FALSE,
    KL_T_NULL,
    KL_T_DOUBLE = 31,
    KL_T_INT,
    KL_T_UINT,
    KL_T_STRING,
    KL_T_BYTES,
    KL_T_NAME,
    KL_T_ESCAPED,
    KL_T_TOKENS /* how many there are */
} kl_token_type;

typedef struct kl_token {
    unsigned type;
    size_t at, len; /* in the text */
} kl_token;

/* The type of an operator or a bracket. */
unsigned kl_token_sign(const char *sign);

/* Called for each mistake, in the order of discovery; `message` is borrowed. */
typedef void kl_grammar_told(void *arg, size_t at, const char *message);
#define KL_GRAMMAR_NOWHERE ((size_t)-1) /* the mistake has no position */

/* Reports all mistakes of `text`, n bytes, whose tokens end with KL_T_END. */
void kl_grammar_mistakes(
    const char *text, size_t n, const kl_token *tokens, size_t ntokens, kl_grammar_told *told, void *arg);

#endif
