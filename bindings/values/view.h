/* view.h - how a view is made, for view.c, which reads, and place.c, which says where one stands. */
#ifndef LKL_VIEW_H
#define LKL_VIEW_H

#include "state/border.h"

typedef lkl__view lkl_view;

typedef struct child_view {
    lkl_view view;
    const void *parent; /* the userdata that user value 1 keeps, */
    /* and which key in it: what is equal here is the same place (see the KEY_ words) */
    uintptr_t key;
} child_view;

/* User values of a view that is no root. */
enum { VIEW_PARENT = 1, VIEW_KEY };

/* A key as a word. Lua's strings are aligned, and each is kept by the view that has it as key; so equal
 * words are equal keys. Long strings may have several words. */
enum { KEY_STRING, KEY_INDEX, KEY_PATH, KEY_TOP, KEY_BITS = 3 };

lkl_view *lkl__get_view(lua_State *L, int idx); /* NULL when idx is none; finalised ones too */
/* The compiled path whose text is at idx (a string of Lua's, by its address), good until Lua allocates;
 * raises when it is none. */
const kl_path *lkl__path_now(lua_State *L, lkl_border *b, int idx);

#endif
