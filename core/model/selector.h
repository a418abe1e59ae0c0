/* selector.h - label and field selectors, exactly as apimachinery reads, prints and matches them.
 * Immutable; any thread. */
#ifndef KL_MODEL_SELECTOR_H
#define KL_MODEL_SELECTOR_H

#include "value/value.h"

/* A longer text is refused (KL_EINVAL): scripts can make one of any length, and no server takes one in a URL.
 */
#define KL_SELECTOR_BYTES_MAX (1 << 20)

typedef struct kl_selector kl_selector; /* label selector */

typedef enum kl_selector_op {
    KL_SEL_EQ,
    KL_SEL_DOUBLE_EQ,
    KL_SEL_NE,
    KL_SEL_IN,
    KL_SEL_NOTIN,
    KL_SEL_EXISTS,
    KL_SEL_NOT_EXISTS,
    KL_SEL_GT,
    KL_SEL_LT
} kl_selector_op;

/* "" selects everything */
KL_NODISCARD kl_status kl_selector_parse(const char *text, kl_selector **out, kl_err *err);
KL_NODISCARD kl_status kl_selector_parsen(const char *text, size_t n, kl_selector **out, kl_err *err);
/* Why a text is not a label selector, for a caller that words its own message: the text that was found and
 * what was expected instead, or, with KL_WANT_NOTHING, a requirement whose key or values are not allowed. */
typedef enum kl_selector_want {
    KL_WANT_NOTHING,
    KL_WANT_START, /* at the start of the text: a key or "!" */
    KL_WANT_NEXT,  /* after a comma: a key or "!" */
    KL_WANT_KEY,
    KL_WANT_OPERATOR,
    KL_WANT_VALUE,
    KL_WANT_OPEN,  /* "(" */
    KL_WANT_FIRST, /* behind "(" */
    KL_WANT_MORE,  /* "," or ")", behind a word of a list */
    KL_WANT_WORD,  /* behind a comma of a list */
    KL_WANT_END    /* behind a requirement */
} kl_selector_want;
typedef struct kl_selector_fault {
    kl_selector_want want;
    char *found; /* "" at the end of the text */
    char *key;   /* of the requirement; its values are sorted */
    kl_selector_op op;
    char **values;
    size_t nvalues;
} kl_selector_fault;
/* As kl_selector_parse; a failure fills `fault`, which the caller zeroes before and fini()s in any case. */
KL_NODISCARD kl_status kl_selector_parse_or(
    const char *text, kl_selector **out, kl_selector_fault *fault, kl_err *err);
void kl_selector_fault_fini(kl_selector_fault *f);
/* metav1.LabelSelector {matchLabels, matchExpressions}: NULL or JSON null selects nothing, {} everything. */
KL_NODISCARD kl_status kl_selector_from_struct(
    const kl_value *label_selector, kl_selector **out, kl_err *err);
/* A map of equalities, validated. */
KL_NODISCARD kl_status kl_selector_from_map(const kl_value *labels, kl_selector **out, kl_err *err);
void kl_selector_free(kl_selector *s);
/* The selector as metav1.LabelSelector, a new reference. KL_EINVAL for selectors that it cannot express:
 * a!=b, a>1, one that selects nothing. */
KL_NODISCARD kl_status kl_selector_to_struct(const kl_selector *s, const kl_value **out, kl_err *err);
/* "a=b,c=d" as a map of labels, a new reference; anything but equalities is KL_ESYNTAX. */
KL_NODISCARD kl_status kl_selector_text_to_map(const char *text, const kl_value **out, kl_err *err);
/* canonical: requirements sorted by key; caller frees */
char *kl_selector_text(const kl_selector *s);
/* The selector of a workload as text: a LabelSelector, a map of labels, or text already. NULL where there is
 * none, or an invalid one; caller frees. */
char *kl_selector_text_of(const kl_value *selector);
/* "k=v,..." sorted as texts, unchecked; caller frees */
char *kl_labels_text(const kl_value *labels);
/* labels: object of strings or NULL */
bool kl_selector_matches(const kl_selector *s, const kl_value *labels);
bool kl_selector_empty(const kl_selector *s); /* selects everything */
size_t kl_selector_len(const kl_selector *s);
/* The i-th requirement's key; borrowed. values is NULL-terminated and sorted; a LabelSelector may repeat
 * some. */
const char *kl_selector_requirement(
    const kl_selector *s, size_t i, kl_selector_op *op, const char *const **values);
bool kl_selector_selectable(const kl_selector *s); /* false for "nothing" */
/* "=" "==" "!=" "in" "notin" "exists" "!" "gt" "lt"; static */
const char *kl_selector_op_text(kl_selector_op op);

typedef struct kl_field_selector kl_field_selector;
/* "a=b,c!=d"; terms are sorted by their text. "" selects everything. In values, backslash, comma and = are
 * escaped with a backslash. */
KL_NODISCARD kl_status kl_field_selector_parse(const char *text, kl_field_selector **out, kl_err *err);
/* As kl_field_selector_parse; on failure *term is the wrong term, as it was given; caller frees. */
KL_NODISCARD kl_status kl_field_selector_parse_or(
    const char *text, kl_field_selector **out, char **term, kl_err *err);
/* one term */
kl_field_selector *kl_field_selector_of(const char *field, const char *value, bool negated);
void kl_field_selector_free(kl_field_selector *s);
char *kl_field_selector_text(const kl_field_selector *s); /* caller frees */
size_t kl_field_selector_len(const kl_field_selector *s);
/* the field; borrowed */
const char *kl_field_selector_term(const kl_field_selector *s, size_t i, bool *negated, const char **value);
/* The value that every match must have in `field` (so that the server can search only there), or NULL;
 * borrowed. */
const char *kl_field_selector_exact(const kl_field_selector *s, const char *field);
char *kl_field_value_escape(const char *value); /* caller frees */
/* caller frees */
KL_NODISCARD kl_status kl_field_value_unescape(const char *escaped, char **out, kl_err *err);
/* `lookup` gives the value of a field as a string ("" when absent). */
bool kl_field_selector_matches(
    const kl_field_selector *s, const char *(*lookup)(void *arg, const char *field), void *arg);
/* The same, with the fields of an object, spelled as kube-apiserver spells them. */
bool kl_field_selector_selects(const kl_field_selector *s, const kl_value *object);

#endif
