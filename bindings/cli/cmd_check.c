/* cmd_check.c - kubelua check: loads scripts as `run` would, and says what they are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "script/program.h"
#include "base/mem.h"
#include "cli/cli.h"

#define TESTS "_test.lua"

static bool is_test(const char *path)
{
    size_t n = strlen(path), end = strlen(TESTS);
    return n > end && !strcmp(path + n - end, TESTS);
}

int cli_check(int argc, char **argv)
{
    const cli_command *self = cli_command_named("check");
    cli_list scripts = {0};
    cli_parse(self, (const cli_option[]){{NULL, NULL, NULL, 0, NULL}}, argc, argv, &scripts);
    if (!scripts.n)
        return cli_fail(2, "check", "name at least one script: kubelua check %s", self->usage);
    int code = 0;
    size_t checked = 0;
    for (size_t i = 0; i < scripts.n; i++) {
        kl_program *p = NULL;
        kl_err err = KL_ERR_INIT;
        if (is_test(scripts.v[i])) /* a pattern of the shell finds them, too */
            continue;
        checked++;
        if (lkl_program_load(scripts.v[i], &p, &err)) {
            code = cli_fail_err(1, "check", &err);
            continue;
        }
        char *text = lkl_program_describe(p);
        printf("%s", text);
        kl_free(text);
        kl_program_unref(p);
    }
    if (!checked)
        code = cli_fail(1, "check", "%s: files named *" TESTS " are tests of scripts: kubelua test %s",
            scripts.v[0], scripts.v[0]);
    kl_free(scripts.v);
    return code;
}
