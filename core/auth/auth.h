/* auth.h - header lines that authenticate us, made of tokens, passwords and a configuration. Pure except for
 * token files. Any thread. */
#ifndef KL_AUTH_AUTH_H
#define KL_AUTH_AUTH_H

#include "auth/config.h"

/* "Authorization: Bearer ..."; caller frees */
char *kl__auth_bearer(const char *token);
char *kl__auth_basic(const char *user, const char *password); /* NULL reads as "" */
/* The token in a file, without surrounding blanks. KL_EAUTH names the file and never shows its contents. */
KL_NODISCARD kl_status kl__auth_token_file(const char *path, char **out, kl_err *err);
/* NULL-terminated "Impersonate-..." lines; kl__auth_lines_free. */
char **kl__auth_impersonation(const kl_config *config);
void kl__auth_lines_free(char **lines);
/* "the token in /path", "client certificate /path", "no credentials": for messages. Caller frees. */
char *kl__auth_describe(const kl_config *config);
/* Whether a token may be put into a header: no control characters. */
bool kl__auth_is_token(const char *token);

#endif
