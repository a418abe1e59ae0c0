/* main.c - kubelua: finds the command and runs it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/suggest.h"
#include "base/version.h"
#include "state/budget.h"
#include "cli/cli.h"
#include "cli/envtest.h"
#include "cli/help.h"
#include "script/isolate.h"

int cli_unknown_command(const char *name)
{
    const char *names[48];
    size_t n = 0;
    for (const cli_command *c = cli_commands; c->name; c++)
        names[n++] = c->name;
    const char *near = kl_suggest(name, names, n);
    char *text = kl_sprintf("kubelua: unknown command %s%s%s%s\n(kubelua --help lists the commands)\n", name,
        near ? ", did you mean " : "", near ? near : "", near ? "?" : "");
    cli_print(stderr, text);
    kl_free(text);
    return 2;
}

/* kubelua __complete WORD...: for the scripts of `kubelua completion`; the last word is the one at the
 * cursor. kubelua __parse COMMAND...: whether that is a command line. */
static bool asked(int argc, char **argv)
{
    if (!strcmp(argv[1], "__parse") && argc > 2) {
        cli_purpose_now = CLI_LOOK_AT;
        return true;
    }
    if (strcmp(argv[1], "__complete"))
        return false;
    cli_purpose_now = CLI_COMPLETE;
    if (argc <= 3) {
        cli_complete_commands(argc == 3 ? argv[2] : "");
        exit(0);
    }
    return true;
}

int main(int argc, char **argv)
{
    int code;
    if (argc > 0 && cli_envtest(argc, argv, &code))
        return code;
    if (argc < 2) {
        cli_help_all(stderr, "plain");
        return 2;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
        cli_help_all(stdout, "plain");
        return 0;
    }
    if (!strcmp(argv[1], "--version")) {
        printf("kubelua %s\n", KL_VERSION);
        return 0;
    }
    if (!strcmp(argv[1], LKL_ISOLATE_WORD))
        return lkl_isolate_child();
    if (asked(argc, argv)) {
        argc--;
        argv++;
    } else {
        lkl_isolate_offer();
    }
    lkl_budget_choose(LKL_BUDGET_SIGNALS);
    const cli_command *c = cli_command_named(argv[1]);
    if (!c->name)
        return cli_unknown_command(argv[1]);
    return c->run(argc - 1, argv + 1);
}
