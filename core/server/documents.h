/* documents.h - the objects of a file, each once, in their order. The text is YAML or JSON; it is read once
 * and piece by piece, so it may come out of a pipe, and takes no more memory than its objects. */
#ifndef KL_SERVER_DOCUMENTS_H
#define KL_SERVER_DOCUMENTS_H

#include "value/value.h"

/* Calls `take` for each object; an item of a list gets the type that the list tells. The callback owns the
 * reference. Items of lists that `wanted` refuses, as they are in the text, are dropped at once; NULL: none.
 * KL_ESYNTAX names the file and the place; what was read before has been taken then. Waits for a pipe as
 * kl_file_next does. Any thread. */
KL_NODISCARD kl_status kl_documents_each(const char *path, bool (*wanted)(void *arg, const kl_value *item),
    void (*take)(void *arg, const kl_value *object), void *arg, kl_err *err);

#endif
