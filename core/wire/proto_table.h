/* proto_table.h - how a message becomes JSON (private to core/wire): the shape of proto_data.c, which is
 * generated.
 *
 * A message has one slot for each member its JSON may have, in the order in which Go writes them; members of
 * inlined structs have theirs among them. `wire` says where a field number goes: into a slot, or into the
 * slots of an inlined message, which begin at `base`. The slot's flags decide whether absent and zero values
 * are written. */
#ifndef KL_WIRE_PROTO_TABLE_H
#define KL_WIRE_PROTO_TABLE_H

#include <stdint.h>

typedef enum kl__proto_what {
    KL__PROTO_STRING,
    KL__PROTO_BOOL,
    KL__PROTO_INT,
    KL__PROTO_BYTES,
    KL__PROTO_STRINGS, /* a message that holds a list of strings as its field 1 */
    KL__PROTO_MESSAGE,
    KL__PROTO_TIME,
    KL__PROTO_MICROTIME,
    KL__PROTO_DURATION,
    KL__PROTO_QUANTITY,
    KL__PROTO_INTORSTR,
    KL__PROTO_RAW,   /* a message that holds JSON text as its field 1 */
    KL__PROTO_CONST, /* not on the wire: always the text names[msg] */
} kl__proto_what;

#define KL__PROTO_OMIT 1    /* nothing is written for zero or none */
#define KL__PROTO_POINTER 2 /* a present value is written even when it is zero */
#define KL__PROTO_REPEATED 4
#define KL__PROTO_MAP 8 /* by strings; `what` is about its values */

typedef struct kl__proto_slot {
    uint16_t name, msg;
    uint8_t what, flags;
} kl__proto_slot;
typedef struct kl__proto_inline {
    uint16_t msg;
    uint8_t base;
} kl__proto_inline;
typedef struct kl__proto_msg {
    uint16_t slots, wire, inlines; /* where this message's entries begin */
    uint8_t n, wires;              /* slots, and the highest field number */
} kl__proto_msg;
/* in the order of both */
typedef struct kl__proto_kind {
    const char *api_version, *kind;
    uint16_t msg;
} kl__proto_kind;
typedef struct kl__proto_counts {
    uint16_t names, kinds, list_meta;
} kl__proto_counts;

/* values in wire: 0 nothing, 1 + a slot's place, or 200 + an inline's place */
#define KL__PROTO_INLINES 200

extern const kl__proto_counts kl__proto_count;
extern const char *const kl__proto_names[];
extern const kl__proto_kind kl__proto_kinds[];
extern const kl__proto_msg kl__proto_msgs[];
extern const kl__proto_slot kl__proto_slots[];
extern const uint8_t kl__proto_wire[];
extern const kl__proto_inline kl__proto_inlines[];

#endif
