/* tape.h - lines in files of bounded size: FILE is being written, FILE.1 is the one before it, and so on;
 * together they stay below a bound.
 *
 * Owner thread, or the owner's lock. A permanent failure (a full disk) ends the tape: the log says so once,
 * and later lines are dropped. */
#ifndef KL_BASE_TAPE_H
#define KL_BASE_TAPE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"

typedef struct kl_tape kl_tape;

/* The maximum number of files. */
#define KL_TAPE_FILES 4

/* Begins a file, readable by its owner alone (0600); an existing file becomes FILE.1. `max` is the bytes of
 * all files together. KL_EIO names the file and why. It never moves or removes a foreign file: KL_EEXISTS
 * when FILE, FILE.1, ... is not a plain file, or does not begin with `begins` (NULL: no check). */
KL_NODISCARD kl_status kl_tape_new(
    const char *path, size_t max, const char *begins, kl_tape **out, kl_err *err);
void kl_tape_free(kl_tape *t); /* writes what is pending first */
/* A whole line, its end included. */
void kl_tape_add(kl_tape *t, const char *line, size_t n);
bool kl_tape_full(const kl_tape *t); /* the next line belongs in another file */
void kl_tape_next(kl_tape *t);       /* begins that file */
void kl_tape_flush(kl_tape *t);
void kl_tape_end(kl_tape *t, const char *why); /* no more lines; logs why */
bool kl_tape_ended(const kl_tape *t);
size_t kl_tape_here(const kl_tape *t); /* bytes in the present file */
size_t kl_tape_room(const kl_tape *t); /* maximum bytes of one file */

#endif
