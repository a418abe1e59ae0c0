/* yaml_impl.h - between the files that read YAML (private to core/yaml). Owner thread. */
#ifndef KL_YAML_YAML_IMPL_H
#define KL_YAML_YAML_IMPL_H

#include "base/map.h"
#include "yaml/yaml.h"

typedef kl_status kl__yaml_fn(void *arg, const kl_value *v, kl_err *err);

/* A text for libyaml: lines that stand for what was read before, the text itself, and what follows. */
typedef struct kl__yaml_text {
    const char *text[2];
    size_t left[2];
    const kl_yaml_source *source; /* NULL: nothing follows */
    size_t line, byte;            /* are added to the places in messages */
    /* Part of a document: anchors of earlier parts hold, and those of this part stay */
    bool is_part;
    kl_map *anchors; /* name to anchor; NULL: none */
    size_t aliased;  /* for how many nodes aliases stood */
} kl__yaml_text;

/* Calls doc for each document, as kl_yaml_each does. */
KL_NODISCARD kl_status kl__yaml_libyaml(
    const char *name, kl__yaml_text *in, kl__yaml_fn *doc, void *arg, kl_err *err);
void kl__yaml_forget_anchors(kl__yaml_text *in);

/* Reads `text`, or else all that the source gives, part by part. */
KL_NODISCARD kl_status kl__yaml_parts(const char *name, const char *text, size_t n,
    const kl_yaml_source *source, kl__yaml_fn *doc, void *arg, kl_err *err);

#endif
