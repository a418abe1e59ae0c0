/* dashboard.c - --dashboard and --dashboard-token-file. */
#include "cli/dashboard.h"

#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "cli/cli.h"

#define TOKEN_MAX 4096
/* A shorter token can be guessed. */
#define TOKEN_MIN 16

/* Reads the first line of the file, which the caller frees. NULL after a message. */
static char *read_token(const char *command, const char *path)
{
    kl_buf text;
    kl_err err = KL_ERR_INIT;
    kl_buf_init(&text, TOKEN_MAX);
    if (kl_file_read_given(path, "a token", &text, &err)) {
        cli_fail(1, command, "--dashboard-token-file %s", kl_err_message(&err));
        kl_err_fini(&err);
        kl_buf_fini(&text);
        return NULL;
    }
    size_t n = strcspn(kl_buf_str(&text), "\r\n");
    char *token = kl_strndup(kl_buf_str(&text), n);
    kl_buf_fini(&text);
    if (n < TOKEN_MIN)
        cli_fail(1, command,
            "--dashboard-token-file %s: the token has %zu characters; it needs at least %d (openssl rand "
            "-hex 32 makes a good one)",
            path, n, TOKEN_MIN);
    if (n >= TOKEN_MIN)
        return token;
    kl_free(token);
    return NULL;
}

int cli_dashboard_start(const char *command, const char *listen, const char *token_file, kl_control *c,
    kl_manager *m, kl_dashboard **out)
{
    kl_err err = KL_ERR_INIT;
    *out = NULL;
    if (!listen)
        return token_file ? cli_fail(2, command, "--dashboard-token-file needs --dashboard ADDR:PORT") : 0;
    char *token = token_file ? read_token(command, token_file) : NULL;
    if (token_file && !token)
        return 1;
    kl_status st = kl_dashboard_start(
        &(kl_dashboard_options){
            .listen = listen, .token = token, .files = cli_dashboard_files, .control = c, .manager = m},
        out, &err);
    kl_free(token);
    return st ? cli_fail_err(1, command, &err) : 0;
}
