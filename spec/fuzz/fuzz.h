/* fuzz.h - what every fuzz target includes: libFuzzer's entry point, and a claim that must hold for any
 * input. */
#ifndef KL_SPEC_FUZZ_H
#define KL_SPEC_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CLAIM(what)                                                                                          \
    do {                                                                                                     \
        if (!(what)) {                                                                                       \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #what);                        \
            abort();                                                                                         \
        }                                                                                                    \
    } while (0)

/* A call that answers NULL, or the law that was broken. */
#define KEEP(laws)                                                                                           \
    do {                                                                                                     \
        const char *broken_ = (laws);                                                                        \
        if (broken_) {                                                                                       \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, broken_);                      \
            abort();                                                                                         \
        }                                                                                                    \
    } while (0)

#endif
