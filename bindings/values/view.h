/* view.h - the structure of a view, for view.c, which reads, and place.c, which finds its path. */
#ifndef LKL_VIEW_H
#define LKL_VIEW_H

#include "state/border.h"

typedef lkl__view lkl_view;

typedef struct child_view {
    lkl_view view;
    const void *parent; /* the userdata that user value 1 keeps alive, */
    /* and the view's key in it: equal keys are the same place (see the KEY_ words) */
    uintptr_t key;
} child_view;

/* User values of a view that is not a root. */
enum { VIEW_PARENT = 1, VIEW_KEY };

/* A key as a word: the address of Lua's string, whose low bits are free for the kind of the key. The view
 * keeps the string alive, so equal words mean equal keys. Equal long strings may have different words. */
enum { KEY_STRING, KEY_INDEX, KEY_PATH, KEY_TOP, KEY_BITS = 3 };

lkl_view *lkl__get_view(lua_State *L, int idx); /* NULL when idx is not a view; finalised ones too */
/* The compiled path whose text is at idx (a string of Lua's, by its address), valid until Lua allocates;
 * raises when it is not a path. */
kl_path *lkl__path_now(lua_State *L, lkl_border *b, int idx);

#endif
