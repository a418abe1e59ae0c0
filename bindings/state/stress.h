/* stress.h - an allocator for a Lua state that refuses each N-th growth once, which makes Lua run a full
 * collection and ask again. That frees unanchored objects, so that a sanitizer sees later uses.
 * KUBELUA_GC_STRESS=N enables it, in debug builds and in the host of the specs. */
#ifndef LKL_STRESS_H
#define LKL_STRESS_H

#include <lua.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct lkl_stress {
    unsigned every, n;
    bool refused;
} lkl_stress;

static inline void *lkl_stress_alloc(void *ud, void *p, size_t had, size_t n)
{
    lkl_stress *s = ud;
    if (n == 0) {
        free(p);
        return NULL;
    }
    if ((!p || n > had) && !s->refused && ++s->n % s->every == 0) {
        s->refused = true; /* Lua's second request, which succeeds */
        return NULL;
    }
    if (!p || n > had)
        s->refused = false;
    return realloc(p, n);
}

/* For specs: a C function that never returns, called in the load of a script whose text contains the words in
 * KUBELUA_STRESS_STUCK. */
static inline void lkl_stress_stuck(const char *text)
{
    const char *words = getenv("KUBELUA_STRESS_STUCK");
    clock_t began = clock(); /* of the process */
    while (words && strstr(text, words))
        if (clock() - began >= 4 * CLOCKS_PER_SEC) /* more than a load may use; the rest is waiting */
            (void)poll(NULL, 0, 100);
}

/* Enables it if the environment says so. s must live as long as the state. */
static inline void lkl_stress_start(lua_State *L, lkl_stress *s)
{
    const char *every = getenv("KUBELUA_GC_STRESS");
    *s = (lkl_stress){every ? (unsigned)atoi(every) : 0, 0, false};
    if (s->every)
        lua_setallocf(L, lkl_stress_alloc, s);
}

#endif
