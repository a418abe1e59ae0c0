/* pattern.h - Lua's patterns, as the manual of Lua 5.4 defines them, by a matcher that counts its steps
 * and can be stopped.
 *
 * A pattern is compiled once to a row of nodes in the caller's memory; a match needs no recursion. As
 * in stock Lua, a mistake in a pattern is reported only when a match reaches it, and with the same message.
 * Pure, but for `spend`; one match at a time for each pattern. */
#ifndef KL_BASE_PATTERN_H
#define KL_BASE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

typedef struct kl_pattern kl_pattern;

/* How many bytes kl_pattern_init needs for a text. */
size_t kl_pattern_size(const char *text, size_t n);
/* Makes the pattern in memory that is aligned as malloc's, or returns NULL when the room is too small. The
 * text may be freed afterwards. With `anchors`, a leading ^ anchors the match; without, it is an ordinary
 * character, as in string.gmatch. There is nothing to free. */
kl_pattern *kl_pattern_init(void *memory, size_t room, const char *text, size_t n, bool anchors);
/* Whether the pattern is anchored, so that kl_pattern_search tries one place only. */
bool kl_pattern_anchored(const kl_pattern *p);
/* Whether a text has no special characters, so that as a pattern it matches only itself. */
bool kl_pattern_plain(const char *text, size_t n);
size_t kl_pattern_captures(const kl_pattern *p);

#define KL_CAPTURES_MAX 32
#define KL_CAPTURE_POSITION (-2) /* as a length: `()`, a position */
#define KL_CAPTURE_OPEN (-1)     /* the pattern never closes it */
typedef struct kl_capture {
    const char *at;
    ptrdiff_t len;
} kl_capture;

/* One subject, and the result of its last match. */
typedef struct kl_matching {
    const char *begin, *end;                /* the subject; end is readable and 0 */
    void (*spend)(void *arg, size_t steps); /* called every few thousand steps; may leave by longjmp */
    void *arg;
    size_t steps;                         /* since the last spend */
    const char *from;                     /* where the last match begins */
    char error[64];                       /* the fault of the pattern, or empty */
    kl_capture captures[KL_CAPTURES_MAX]; /* of the last match: kl_pattern_captures of them */
} kl_matching;

void kl_matching_init(
    kl_matching *m, const char *subject, size_t n, void (*spend)(void *arg, size_t steps), void *arg);
/* The end of a match that begins at `at`; NULL when there is none, or m->error. */
const char *kl_pattern_match(kl_pattern *p, kl_matching *m, const char *at);
/* The same for the first match at `at` or, unless the pattern is anchored, after it; m->from is its
 * beginning. */
const char *kl_pattern_search(kl_pattern *p, kl_matching *m, const char *at);

#endif
