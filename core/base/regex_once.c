/* regex_once.c - regular expressions that are compiled when they are first needed. */
#include "base/regex.h"

const kl_regex *kl_regex_once(_Atomic(kl_regex *) *slot, const char *pattern, size_t n)
{
    kl_regex *have = atomic_load(slot), *made;
    if (have || kl_regex_new(pattern, n, &made, NULL))
        return have;
    if (atomic_compare_exchange_strong(slot, &have, made))
        return made;
    kl_regex_free(made); /* another thread was first */
    return have;
}
