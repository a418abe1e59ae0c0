/* main.c - kubelua: finds the command and hands over. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"
#include "base/version.h"
#include "cli/cli.h"

const cli_command cli_commands[] = {
    {"run", "SCRIPT.lua... [options]", "Run controllers against a cluster.",
        "The cluster is found as kubectl finds it: --kubeconfig, KUBECONFIG, the pod's service account, ~/.kube/config.\n"
        "A saved script, or SIGHUP, loads the next generation; one that fails to load leaves the old one running.\n"
        "SIGTERM finishes running reconciles within the grace period; a second signal exits at once.", cli_run},
    {"dev", "SCRIPT.lua... [options]", "Run controllers against an API server embedded in this process.",
        "Nothing outside is touched. The server's address is printed, so that kubectl can be pointed at it.", cli_dev},
    {"apiserver", "[options]", "Serve the embedded API server alone, over plain HTTP.", NULL, cli_apiserver},
    {"check", "SCRIPT.lua...", "Load and validate scripts without running them.", NULL, cli_check},
    {NULL, NULL, NULL, NULL, NULL},
};

static void help(FILE *to)
{
    fprintf(to, "kubelua - Kubernetes controllers in Lua\n\nusage: kubelua COMMAND [arguments]\n\n");
    for (const cli_command *c = cli_commands; c->name; c++)
        fprintf(to, "  %-10s %s\n", c->name, c->summary);
    fprintf(to, "\nkubelua COMMAND --help tells more; kubelua --version says which one this is.\n");
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        help(stderr);
        return 2;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        help(stdout);
        return 0;
    }
    if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "version")) {
        printf("kubelua %s\n", KL_VERSION);
        return 0;
    }
    const char *names[16];
    size_t n = 0;
    for (const cli_command *c = cli_commands; c->name; c++) {
        if (!strcmp(argv[1], c->name))
            return c->run(argc - 1, argv + 1);
        names[n++] = c->name;
    }
    const char *near = kl_suggest(argv[1], names, n);
    fprintf(stderr, "kubelua: unknown command %s%s%s%s\n\n", argv[1], near ? ", did you mean " : "", near ? near : "", near ? "?" : "");
    help(stderr);
    return 2;
}
