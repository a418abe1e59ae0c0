/* suggest.c - edit distance over three rows (optimal string alignment). */
#include "base/suggest.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* Longer words are not typos of keys and flags. */
#define WORD_MAX 128

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

size_t kl_edit_distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b), rows[3][WORD_MAX + 1];
    if (n > WORD_MAX || m > WORD_MAX)
        return n > m ? n : m;
    size_t *before = rows[0], *above = rows[1], *row = rows[2];
    for (size_t j = 0; j <= m; j++)
        above[j] = j;
    for (size_t i = 1; i <= n; i++) {
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            int x = tolower((unsigned char)a[i - 1]), y = tolower((unsigned char)b[j - 1]);
            row[j] = least(least(above[j] + 1, row[j - 1] + 1), above[j - 1] + (x != y));
            if (i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2])
                && y == tolower((unsigned char)a[i - 2]))
                row[j] = least(row[j], before[j - 2] + 1);
        }
        size_t *spare = before;
        before = above;
        above = row;
        row = spare;
    }
    return above[m];
}

/* The word in lower case, without separators; out has room for WORD_MAX and a NUL. False: it is too long. */
static bool plain(const char *word, char *out)
{
    size_t n = 0;
    for (; *word && n < WORD_MAX; word++)
        if (*word != '-' && *word != '_')
            out[n++] = (char)tolower((unsigned char)*word);
    out[n] = '\0';
    return !*word;
}

static size_t same_beginning(const char *a, const char *b)
{
    size_t n = 0;
    while (a[n] && a[n] == b[n])
        n++;
    return n;
}

const char *kl_suggest(const char *word, const char *const *candidates, size_t n)
{
    char given[WORD_MAX + 1], other[WORD_MAX + 1];
    const char *best = NULL;
    size_t nearest = strlen(word) < 6 ? 1 : strlen(word) / 3; /* a third, and one letter of short words */
    size_t begins = 0; /* prefers words with the same first letter: few people mistype it */
    if (!plain(word, given))
        return NULL;
    for (size_t i = 0; i < n; i++) {
        size_t d = plain(candidates[i], other) ? kl_edit_distance(given, other) : WORD_MAX;
        size_t same = same_beginning(given, other);
        if (d > nearest || d >= strlen(other) || (best && d == nearest && same <= begins))
            continue;
        nearest = d;
        begins = same;
        best = candidates[i];
    }
    return best;
}
