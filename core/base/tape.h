/* tape.h - lines in files of bounded size: FILE is being written, FILE.1 is the one before it, and so on;
 * together they stay below a bound.
 *
 * Owner thread, or the owner's lock. What fails for good (a full disk) ends the tape: it says so in the
 * log once, and takes no more. */
#ifndef KL_BASE_TAPE_H
#define KL_BASE_TAPE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"

typedef struct kl_tape kl_tape;

/* The maximum number of files. */
#define KL_TAPE_FILES 4

/* Begins a file, for the owner alone (0600); what was there becomes FILE.1. `max` bytes for all files.
 * KL_EIO names the file and why. What is not a tape is neither moved nor removed: KL_EEXISTS when FILE or one
 * of the others is there and no plain file, or does not begin with `begins` (NULL: anything may be there). */
KL_NODISCARD kl_status kl_tape_new(
    const char *path, size_t max, const char *begins, kl_tape **out, kl_err *err);
void kl_tape_free(kl_tape *t); /* with what is not written yet */
/* A whole line, its end included. */
void kl_tape_add(kl_tape *t, const char *line, size_t n);
bool kl_tape_full(const kl_tape *t); /* the next line belongs into another file */
void kl_tape_next(kl_tape *t);       /* begins it */
void kl_tape_flush(kl_tape *t);
void kl_tape_end(kl_tape *t, const char *why); /* for good, and says why */
bool kl_tape_ended(const kl_tape *t);
size_t kl_tape_here(const kl_tape *t); /* bytes in the present file */
size_t kl_tape_room(const kl_tape *t); /* that a file may have */

#endif
