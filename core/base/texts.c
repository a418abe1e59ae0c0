/* texts.c - sets of texts: sorted, each text once, in one array with its end marked. */
#include "base/texts.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

size_t kl_texts_len(char *const *t)
{
    size_t n = 0;
    while (t && t[n])
        n++;
    return n;
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

char **kl_texts_set(char *const *t, size_t n)
{
    char **set = kl_new_array(char *, n + 1);
    size_t left = 0;
    for (size_t i = 0; i < n; i++)
        set[i] = kl_strdup(t[i]);
    qsort(set, n, sizeof *set, by_text);
    for (size_t i = 0; i < n; i++)
        if (left && !strcmp(set[left - 1], set[i]))
            kl_free(set[i]);
        else
            set[left++] = set[i];
    set[left] = NULL;
    return set;
}

char **kl_texts_copy(char *const *t) { return kl_texts_set(t, kl_texts_len(t)); }

void kl_texts_free(char **t)
{
    for (char **p = t; p && *p; p++)
        kl_free(*p);
    kl_free(t);
}

bool kl_texts_same(char *const *a, char *const *b)
{
    if (!a || !b)
        return a == b;
    for (; *a && *b; a++, b++)
        if (strcmp(*a, *b))
            return false;
    return !*a && !*b;
}

size_t kl_texts_find(char *const *t, size_t len, const char *text, size_t n, bool *found)
{
    size_t from = 0, to = len;
    *found = false;
    while (from < to) {
        size_t mid = from + (to - from) / 2;
        int c = strncmp(t[mid], text, n);
        if (!c && t[mid][n])
            c = 1;
        *found |= !c;
        if (c < 0)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

bool kl_texts_has(char *const *t, const char *text)
{
    bool found;
    kl_texts_find(t, kl_texts_len(t), text, strlen(text), &found);
    return found;
}
