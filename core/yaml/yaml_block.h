/* yaml_block.h - the YAML that kubectl prints, as JSON text (private to core/yaml). Pure; any thread. */
#ifndef KL_YAML_YAML_BLOCK_H
#define KL_YAML_YAML_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include "base/buf.h"

/* Appends one document, without the lines that separate documents, as JSON text to `json`. False: it has
 * something that this reader does not know, a mistake perhaps, and libyaml decides; `json` is then of no
 * use. */
bool kl__yaml_block(const char *text, size_t n, kl_buf *json);

#endif
