/* stream.h - sessions and forwarded ports as userdata: functions of lstream.c for lclient.c and the command
 * line. */
#ifndef LKL_STREAM_H
#define LKL_STREAM_H

#include "state/border.h"
#include "session/session.h"

extern const lkl_class lkl__session_class, lkl__forward_class;
int lkl__client_session(lua_State *L);              /* client:session(options) */
int lkl__client_forward(lua_State *L);              /* client:forward(options) */
kl_session *lkl__session_at(lua_State *L, int idx); /* borrowed from its userdata; raises */

#endif
