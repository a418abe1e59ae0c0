/* differences.h - groups differences for the reports of shadow and replay. Differences in the same fields of
 * the same kind of object, or with the same change of outcome, are of one kind: they are reported once, with
 * their number. Owner thread, or the owner's lock. */
#ifndef KL_LAB_DIFFERENCES_H
#define KL_LAB_DIFFERENCES_H

#include "base/buf.h"
#include "value/value.h"

/* --- the kind of one difference, a line that is appended to: "patch v1/ConfigMap: data.pods" ------------- */
/* The kind of a difference: the call `what`, and the fields that differ between two states (NULL: none).
 * Values and the name of the key's object are ignored. */
void kl_kind_add(kl_buf *kind, const char *key, const char *what, const kl_value *was, const kl_value *is);
/* A text such as "written -> not written" or an error message: numbers, quoted parts and the name of the
 * key's object are ignored; line numbers of scripts are kept. */
void kl_kind_text(kl_buf *kind, const char *key, const char *what, const char *text);

/* "POST https://example.com" of "POST https://example.com/a/b", "v1/Pod" of "v1/Pod a/b": the part of a call
 * that tells its kind. The caller frees it. */
char *kl_kind_word(const char *call);

/* --- all of a report ------------------------------------------------------------------------------------- */
typedef struct kl_differences kl_differences;
typedef struct kl_likes {                 /* the differences of one kind */
    char *controller, *key, *kind, *text; /* of the first difference; `text` is for people */
    int verdict;                          /* the caller's */
    size_t n;
} kl_likes;

kl_differences *kl_differences_new(void);
void kl_differences_free(kl_differences *d); /* NULL is fine */
/* Adds a difference; returns its group, which lives as long as `d`. Beyond 500 kinds, one group, whose kind
 * is "", takes all others. The caller may take a difference back (n--). */
kl_likes *kl_differences_add(kl_differences *d, const kl_likes *one);
/* The groups with n > 0, the most frequent first, equal ones in the order of their first occurrence.
 * NULL-terminated; the caller frees the array. */
kl_likes **kl_differences_sorted(const kl_differences *d);

#endif
