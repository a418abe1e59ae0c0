/* yaml_block.h - YAML as Kubernetes' tools print it, read without libyaml (private to core/value): block
 * mappings and lists, one scalar a line, `|` texts. Any thread. */
#ifndef KL_VALUE_YAML_BLOCK_H
#define KL_VALUE_YAML_BLOCK_H

#include "value/intern.h"

/* Adds the documents of a text that has nothing else to `out`, which owns them; empty ones are left out.
 * False: the text has something else (comments, blank lines, flow style, anchors, tags, long scalars,
 * mistakes): libyaml must read it, and `out` is as it was. */
KL_NODISCARD bool kl__yaml_block(const char *text, size_t n, kl__stack *out);

#endif
