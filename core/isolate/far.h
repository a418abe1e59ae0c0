/* far.h - runs whose runtime is in another process: the stand-ins for queue, caches and door in an isolated
 * process.
 *
 *   runtime (isolate/isolate.c)                                isolated process (here)
 *     BOOT ------------------------------------------------> loads the script, in the jail (isolate/jail.h)
 *     <------------------------------------------------------ READY | FAILED
 *     START | RESUME | FUNCTION -----------------------------> a turn of the program begins
 *     <------------------------------------------------------ a tell (log, event, ...): no answer } any
 *     <------------------------------------------------------ an ask (get, list, ...)             } number
 *     ANSWER ------------------------------------------------>                                    } of these
 *     <------------------------------------------------------ CALL | RESOLVE | SLEEP | OVER: it waits; DONE:
 *     it has ended; RESULT: of a function
 *     ABANDON -----------------------------------------------> it is forgotten; no answer
 *
 * Only one side sends at a time; tells are exempt. In the isolated process kl_run, kl_reader and kl_shared
 * are stubs that send asks, which a program cannot notice. The runtime answers with its own kl_run, so
 * witnesses, replays and shadows work as usual. */
#ifndef KL_ISOLATE_FAR_H
#define KL_ISOLATE_FAR_H

#include "run/reconciler.h"
#include "run/shared.h"
#include "isolate/message.h"

typedef enum kl_word {
    KL_WORD_BOOT = 1, /* an object of the embedder, see kl_isolate_order */
    /* {id, key, attempt, generation, epoch, uuid, why, events, deadline, priority, level, ...}, object,
     * cause, params */
    KL_WORD_START,
    KL_WORD_RESUME,     /* id, error or none, deposed, body */
    KL_WORD_ABANDON,    /* id */
    KL_WORD_FUNCTION,   /* "map", "index" or "predicate"; its number, object, old object */
    KL_WORD_ANSWER,     /* error or none, deposed, values */
    KL_WORD_READY = 32, /* a value for the runtime (kl_isolate_open's *said) */
    KL_WORD_FAILED,     /* error */
    KL_WORD_CALL,       /* op, body, cluster or none */
    KL_WORD_RESOLVE,    /* kind, cluster or none */
    KL_WORD_SLEEP,      /* nanoseconds */
    KL_WORD_DONE,       /* result, after, message, traceback, priority, worn */
    KL_WORD_RESULT,     /* error or none, emitted texts, whether it passes, worn */
    /* asks */
    KL_WORD_GET = 64,     /* kind, namespace, name: object */
    KL_WORD_LIST,         /* kind, query: objects */
    KL_WORD_RESOURCE,     /* kind, cluster or none: {namespaced, plural, subresources} */
    KL_WORD_WALL,         /* nanoseconds */
    KL_WORD_BELIEVED,     /* kind, namespace, name: object */
    KL_WORD_SHARED_GET,   /* name: value */
    KL_WORD_SHARED_SET,   /* name, value */
    KL_WORD_SHARED_ADD,   /* name, number: sum */
    KL_WORD_SHARED_SWAP,  /* name, was, value: done, is */
    KL_WORD_SHARED_NAMES, /* prefix: names */
    KL_WORD_MEMO,         /* fields */
    KL_WORD_MEMO_SET,     /* field, value */
    /* tells */
    KL_WORD_EVENT = 128, /* {type, reason, note, action}, about, related */
    KL_WORD_LOG,         /* level, message, types, fields */
    KL_WORD_LINE,        /* level, message, fields: outside of a run */
    KL_WORD_DECIDED,     /* a webhook's decision */
    KL_WORD_ELIDED,
    KL_WORD_SPENT, /* kl_spent */
    KL_WORD_COUNT, /* kl_figure_act, name, labels, number */
} kl_word;

/* Maximum bytes of a message to an isolated process, and of one from it. */
#define KL_FAR_IN_MAX ((size_t)256 << 20)
#define KL_FAR_OUT_MAX ((size_t)64 << 20)
/* Maximum values of a message from one, and parts of such a value. A script passes a million parts at most
 * (bindings/values/convert.c); a webhook's patch turns them into a few times as many. */
#define KL_FAR_OUT_VALUES 16
#define KL_FAR_OUT_PARTS ((size_t)4 << 20)

/* --- in the isolated process; its one thread that talks ----------------------------------- */
typedef struct kl_far kl_far;
kl_far *kl_far_new(int fd); /* never freed: it ends with the process */
kl_wire *kl_far_wire(kl_far *f);
/* Sends an ask and waits. *out, when not NULL, are the values of the answer, the caller's. When the other
 * side is gone, the process exits. */
kl_status kl_far_ask(
    kl_far *f, kl_word what, const kl_value *const *v, size_t n, kl_message *out, kl_err *err);
/* Sends log records to the other side. */
void kl_far_log(kl_far *f, kl_log_level level);
/* Runs `controller` of a program until the other side is gone, on a state that its ops have opened. */
void kl_far_serve(kl_far *f, kl_program *p, size_t controller, void *state);

/* --- both --------------------------------------------------------------------------------- */
/* Encodes an error as a value (NULL for KL_OK), and decodes it. v may be any value; an unknown status becomes
 * KL_EINTERNAL. */
const kl_value *kl_far_error(kl_status st, const kl_err *err);
kl_status kl_far_error_read(const kl_value *v, kl_err *err);
/* Encodes a request (all fields that a script can set, except its body), and decodes it. False: v is not a
 * request. Texts are borrowed from v. */
const kl_value *kl_far_op(const kl_op *op);
bool kl_far_op_read(const kl_value *v, kl_op *op);

#endif
