/* documents.h - the objects of a file, each once, in their order. The text is YAML or JSON; it is read once
 * and piece by piece, so it may come out of a pipe, and takes no more memory than its objects. */
#ifndef KL_SERVER_DOCUMENTS_H
#define KL_SERVER_DOCUMENTS_H

#include "value/value.h"

/* Calls `take` for each object; an item of a list gets the type that the list tells. The callback owns the
 * reference. KL_ESYNTAX names the file and the place; what was read before has been taken then. Waits for a
 * pipe as kl_file_next does. */
KL_NODISCARD kl_status kl__documents_each(
    const char *path, void (*take)(void *arg, const kl_value *object), void *arg, kl_err *err);

#endif
