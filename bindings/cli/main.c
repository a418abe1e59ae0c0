/* main.c - kubelua: finds the command and hands over. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"
#include "base/version.h"
#include "state/budget.h"
#include "cli/cli.h"
#include "script/isolate.h"

#define CONTROLLERS "Controllers"
#define LOOK "A cluster, by hand"
#define ELSE "Else"
const cli_command cli_commands[] = {
    {"run", "SCRIPT.lua... [options]", "Run controllers against a cluster.",
        "The cluster is found as kubectl finds it: --kubeconfig, KUBECONFIG, the pod's service account, "
        "~/.kube/config.\n"
        "A script is a file, a directory (its main.lua, init.lua or only script), or "
        "configmap/NAMESPACE/NAME in the cluster.\n"
        "A saved script, or SIGHUP, loads the next generation; one that fails to load leaves the old one "
        "running.\n"
        "SIGTERM finishes running reconciles within the grace period; a second signal exits at once.",
        cli_run, CONTROLLERS},
    {"dev", "SCRIPT.lua... [options]", "Run controllers against an API server embedded in this process.",
        "Nothing outside is touched. The server's address is printed, so that kubectl can be pointed at it.",
        cli_dev, CONTROLLERS},
    {"reload", "[SCRIPT] [options]",
        "Have a running kubelua load its scripts again, and say what came of it.",
        "It answers when the new logic runs, or says why it was refused. The process is the only one of "
        "yours here, or the one that --pid or --socket names.\n"
        "Exit status: 0 when the new logic runs or nothing has changed, 1 when it was refused or does not "
        "take over in time, 2 for a mistake on the command line.",
        cli_lua, CONTROLLERS},
    {"shadow", "[CANDIDATE.lua] [options]",
        "Run a candidate beside the logic of a running kubelua: on its keys, without writing, and compare.",
        "Without a candidate it says what the present one came to. Each key is run again by the candidate, "
        "in the world as the live run found it.\n"
        "  kubelua shadow quota-next.lua\n  kubelua shadow\n  kubelua shadow --promote\n"
        "Exit status: 0 when no key came to anything else so far, 1 when one did, or the candidate was "
        "refused, 2 for a mistake on the command line.",
        cli_lua, CONTROLLERS},
    {"check", "SCRIPT.lua...", "Load and validate scripts without running them.", NULL, cli_check,
        CONTROLLERS},
    {"replay", "FILE SCRIPT.lua... [options]",
        "Run a recording (run --record FILE) again, and say what the scripts would write otherwise.",
        "Nothing is contacted. FILE.1 and so on, the files before FILE, are read with it. Scripts may be "
        "those that ran then, or others with controllers of the same names.\n"
        "  kubelua run quota.lua --record quota.tape\n  kubelua replay quota.tape quota-next.lua\n"
        "Exit status: 0 when all is the same, 1 when something differs or fails, 2 for a mistake: on the "
        "command line, in the recording, in a script.",
        cli_replay, CONTROLLERS},
    {"why", "KIND NAMESPACE/NAME [options]", "Say why a key ran in a running process, or why it does not.",
        "What woke it, what it read and wrote, how it ended and what comes next; or what keeps it: no "
        "controller, a predicate, leadership, backoff, its own writes.\n"
        "  kubelua why v1/ConfigMap team/a\n  kubelua why configmap a -n team --json\n"
        "The process is found by its control socket: the only one of yours, or --pid, or --socket.",
        cli_lua, CONTROLLERS},
    {"attach", "[options]", "A Lua prompt in a running process: its caches, its controllers, one key.",
        "get, list and each read its caches and indexes; why, controllers, informers tell; reconcile, pause, "
        "resume and set_params act: help() tells.\n"
        "Each command is in the process's log. Without a terminal it runs the Lua that it reads, and its "
        "status is 1 when some of that failed.\n"
        "  kubelua attach -e 'list(\"v1/Pod\", { index = \"node\", value = \"n1\" })'",
        cli_lua, CONTROLLERS},
    {"release-finalizers", "SCRIPT.lua... | --finalizer NAME [KIND...] [options]",
        "Take a controller's finalizer from all objects that still carry it.",
        "For a controller that is gone, or has no finalize any more: its objects could not be deleted else. "
        "What its finalize would have done is not done.\n"
        "  kubelua release-finalizers buckets.lua --dry-run\n"
        "  kubelua release-finalizers --finalizer example.com/bucket --yes buckets.example.com\n"
        "In all namespaces, unless -n names one. Without a kind every kind of the server is looked through.\n"
        "Exit status: 0, 1 when some could not be looked at or released, 2 for a mistake on the command "
        "line.",
        cli_lua, CONTROLLERS},
    {"test", "[PATH...] [options]",
        "Run the tests beside scripts: *_test.lua, against an API server of their own and in virtual time.",
        "PATH is a test file, a script with a test beside it, or a directory (the current one). "
        "docs/testing.md tells what tests can do.\n"
        "Exit status: 0 when all passed, 1 when some failed or none was found by --filter, 2 for a mistake "
        "on the command line.",
        cli_lua, CONTROLLERS},
    {"sim", "SCRIPT.lua... [options]",
        "What if: run scripts on a simulated cluster for a day, in seconds, and say what it would come to.",
        "The scripts are those of `run`, unchanged; the clock jumps. The cluster is generated, or a "
        "snapshot. "
        "docs/whatif.md goes from a snapshot to a decision.\n"
        "  kubelua sim noderesource.lua --generate nodes=50 --for 24h --out whatif\n"
        "  kubelua sim noderesource.lua --set colocation.cpuReclaimThresholdPercent=50..80/10 --seeds 3\n"
        "Exit status: 0, 1 when it failed or nothing keeps the budget, 2 for a mistake on the command line.",
        cli_lua, CONTROLLERS},
    {"rbac", "SCRIPT.lua... [options]", "Print the smallest role with which scripts can do what they do.",
        "What they do is read from their tables and their source, and with --record from the requests of the "
        "tests beside them.\n"
        "  kubelua rbac hello.lua --record --bind -n system | kubectl apply -f -",
        cli_lua, CONTROLLERS},
    {"init", "NAME [options]",
        "Write a project to begin with: a controller, its tests, its definition, its rights and its "
        "Deployment.",
        "  kubelua init greeter --kind example.com/v1/Greeting && cd greeter && kubelua test", cli_lua,
        CONTROLLERS},
    {"explain", "SCRIPT.lua... [options]",
        "Say what the caches of scripts hold on a cluster, what they cost, and what would make them smaller.",
        "It lists and watches what the scripts would, for ten seconds, and writes nothing.", cli_lua,
        CONTROLLERS},
    {"get", "KIND [NAME...] | KIND/NAME... [options]",
        "Show objects: as a table, as YAML or JSON, or one field of each.",
        "KIND is po, pods, Pod, deployments.apps, apps/v1/Deployment, or several with commas between.\n"
        "  kubelua get po -A -o wide\n  kubelua get deploy/web -o yaml\n  kubelua get nodes -o "
        "path=status.allocatable.cpu\n"
        "Exit status: 0, 1 when something was not found or the server refused, 2 for a mistake on the "
        "command line.",
        cli_lua, LOOK},
    {"apply", "-f FILE|DIR|- [options]", "Make objects be as files say (server-side apply).",
        "Prints created, configured or unchanged for each. Fields that another manager owns are not taken "
        "from it without --force.\n"
        "Exit status: 0 when all was applied, 1 when something was not (the rest is), 2 for a mistake on the "
        "command line.",
        cli_lua, LOOK},
    {"delete", "KIND NAME... | KIND/NAME... | KIND -l SELECTOR | -f FILE [options]",
        "Delete objects, and wait until they are gone.",
        "Exit status: 0, 1 when something was not there (see --ignore-not-found) or not gone in time, 2 for "
        "a mistake on the command line.",
        cli_lua, LOOK},
    {"watch", "KIND [NAME] [options]",
        "Tell what happens to objects: one line each, with what changed from what to what.", NULL, cli_lua,
        LOOK},
    {"logs", "POD [options]", "Print what a pod's container wrote; -f goes on.",
        "  kubelua logs web -c app --tail 100 -f\n  kubelua logs pod/web --previous", cli_lua, LOOK},
    {"exec", "POD [-c CONTAINER] [-i] [-t] -- COMMAND...",
        "Run a command in a container; its exit status is ours.",
        "  kubelua exec web -- ls -l /\n  kubelua exec web -it -- sh\n  tar c . | kubelua exec web -i -- tar "
        "x -C /tmp\n"
        "Exit status: the command's; 1 when it could not be run or the connection broke, 2 for a mistake on "
        "the command line.",
        cli_lua, LOOK},
    {"gen", "--crds DIR --out DIR [--name MODULE] | --from-cluster [--groups A,B] --out DIR",
        "Write typed clientsets: Lua modules out of CRDs or of a cluster.",
        "  kubelua gen --crds config/crd --out lua/mycrds --name mycrds\n"
        "and then, in Lua: require \"mycrds\".clientset(c).example_v1.widgets(\"default\"):get(\"a\"). "
        "Fields are annotated for the Lua language server.\n"
        "Generating twice changes nothing; a file that kubelua gen did not write is never overwritten.",
        cli_lua, ELSE},
    {"shell", "[options]",
        "A Lua prompt on a cluster: completion, history, objects as YAML, lists as tables.",
        "c is the client, kube the library, _ the last result, and get, list, watch, apply and the other "
        "verbs are there by themselves: help() tells.\n"
        "^C ends what runs, ^D the shell. Without a terminal it runs the Lua that it reads, and its status "
        "is 1 when some of that failed.",
        cli_lua, LOOK},
    {"apiserver", "[options]", "Serve the embedded API server alone, over plain HTTP.", NULL, cli_apiserver,
        ELSE},
    {"version", "[--server] [-o json]",
        "Say which kubelua and which Lua this is, and with --server which server answers.",
        "Names the published bugs of that Lua which scripts could reach, and what keeps scripts from them.",
        cli_lua, ELSE},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};

const cli_command *cli_command_named(const char *name)
{
    const cli_command *c = cli_commands;
    while (c->name && strcmp(c->name, name))
        c++;
    return c;
}

static void help(FILE *to)
{
    fprintf(to, "kubelua - Kubernetes controllers in Lua\n\nusage: kubelua COMMAND [arguments]\n");
    static const char *const groups[] = {CONTROLLERS, LOOK, ELSE};
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
        fprintf(to, "\n%s:\n", groups[g]);
        for (const cli_command *c = cli_commands; c->name; c++)
            if (!strcmp(c->group, groups[g]))
                fprintf(to, "  %-18s %s\n", c->name, c->summary);
    }
    fprintf(to, "\nkubelua help COMMAND tells more; kubelua --version says which one this is.\n");
}

static int unknown(const char *name)
{
    const char *names[32];
    size_t n = 0;
    for (const cli_command *c = cli_commands; c->name; c++)
        names[n++] = c->name;
    const char *near = kl_suggest(name, names, n);
    fprintf(stderr, "kubelua: unknown command %s%s%s%s\n(kubelua --help lists the commands)\n", name,
        near ? ", did you mean " : "", near ? near : "", near ? "?" : "");
    return 2;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        help(stderr);
        return 2;
    }
    bool asks = !strcmp(argv[1], "help");
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || (asks && argc == 2)) {
        help(stdout);
        return 0;
    }
    if (!strcmp(argv[1], "--version")) {
        printf("kubelua %s\n", KL_VERSION);
        return 0;
    }
    if (!strcmp(argv[1], LKL_ISOLATE_WORD))
        return lkl_isolate_child();
    lkl_isolate_offer();
    lkl_budget_choose(LKL_BUDGET_SIGNALS);
    const cli_command *c = cli_command_named(argv[1 + asks]);
    if (!c->name)
        return unknown(argv[1 + asks]);
    return asks ? c->run(2, (char *[]){argv[2], "--help", NULL}) : c->run(argc - 1, argv + 1);
}
