/* commands.c - the commands of kubelua, as one table: help, man pages and completion of words are made of it
 * and of the tables of options. */
#include <string.h>

#include "cli/cli.h"

#define CONTROLLERS "Controllers"
#define LOOK "A cluster, by hand"
#define OTHER "Other"

const cli_command cli_commands[] = {
    {
        .name = "run",
        .usage = "SCRIPT.lua... [options]",
        .summary = "Run controllers against a cluster.",
        .more = "The cluster is found as kubectl finds it: --kubeconfig, KUBECONFIG, the pod's "
                "service account, ~/.kube/config.\n"
                "A script is a file, a directory (its main.lua, init.lua or only script), or "
                "configmap/NAMESPACE/NAME in the cluster.\n"
                "A saved script, or SIGHUP, loads the next generation; one that fails to load "
                "leaves the old one running.\n"
                "SIGTERM finishes running reconciles within the grace period; a second signal "
                "exits at once.",
        .examples = "kubelua run controllers/hello.lua\n"
                    "kubelua run hello.lua --leader-elect --metrics-bind-address :8080\n"
                    "kubelua run hello.lua --dry-run --param greeting=Hi",
        .exits = "0 after SIGTERM or SIGINT, 1 when it could not start or a controller could not "
                 "continue, 2 for a mistake on the command line.",
        .words = "scripts",
        .run = cli_run,
        .group = CONTROLLERS,
    },
    {
        .name = "dev",
        .usage = "SCRIPT.lua... [options]",
        .summary = "Run controllers against an API server embedded in this process.",
        .more = "Nothing outside is touched. The server's address is printed, so that kubectl "
                "can be pointed at it.",
        .examples = "kubelua dev controllers/hello.lua\n"
                    "kubelua dev site.lua --crds crds --load objects.yaml --write-kubeconfig kc",
        .exits =
            "0 after SIGTERM or SIGINT, or when --play ended well (a number that it returns is the status), "
            "1 when it could not start or the play failed, 2 for a mistake on the command line.",
        .words = "scripts",
        .run = cli_dev,
        .group = CONTROLLERS,
    },
    {
        .name = "reload",
        .usage = "[SCRIPT] [options]",
        .summary = "Make a running kubelua reload its scripts, and report the outcome.",
        .more = "It returns when the new logic runs, or reports why it was refused. The process is your "
                "only kubelua on this machine, or the one that --pid or --socket names.",
        .examples = "kubelua reload\n"
                    "kubelua reload hello.lua --timeout 10s",
        .exits = "0 when the new logic runs or nothing has changed, 1 when it was refused or does "
                 "not take over in time, 2 for a mistake on the command line.",
        .words = "scripts",
        .run = cli_lua,
        .group = CONTROLLERS,
    },
    {
        .name = "shadow",
        .usage = "[CANDIDATE.lua] [options]",
        .summary = "Run a candidate beside the logic of a running kubelua: on its keys, without "
                   "writing, and compare.",
        .more = "Without a candidate it prints the results of the current one. The candidate runs each "
                "key again, on the state that the live run saw.",
        .examples = "kubelua shadow quota-next.lua\n"
                    "kubelua shadow\n"
                    "kubelua shadow --promote",
        .exits = "0 when no key has differed so far, 1 when one has, or the candidate was refused, 2 for a "
                 "mistake on the command line.",
        .words = "scripts",
        .run = cli_lua,
        .group = CONTROLLERS,
    },
    {
        .name = "check",
        .usage = "SCRIPT.lua... [options]",
        .summary = "Load scripts without running them, and report mistakes.",
        .more = "Reports what would fail at run time as errors, and unused declarations as warnings. Does "
                "not contact a cluster.",
        .examples = "kubelua check controllers/*.lua\n"
                    "kubelua check dns.lua --params prod.yaml -o sarif",
        .exits = "0 when there is no error, 1 when there is one, 2 for a mistake on the command line.",
        .words = "scripts",
        .run = cli_lua,
        .group = CONTROLLERS,
    },
    {
        .name = "replay",
        .usage = "FILE SCRIPT.lua... [options]",
        .summary = "Replay a recording (run --record FILE), and report which writes would differ.",
        .more = "Does not contact a cluster. Reads FILE.1 and so on, the older files, too. The scripts "
                "may be the recorded ones, or others whose controllers have the same names.",
        .examples = "kubelua run quota.lua --record quota.tape\n"
                    "kubelua replay quota.tape quota-next.lua",
        .exits = "0 when all is the same, 1 when something differs or fails, 2 for a mistake: on "
                 "the command line, in the recording, in a script.",
        .words = "files",
        .run = cli_replay,
        .group = CONTROLLERS,
    },
    {
        .name = "why",
        .usage = "KIND NAMESPACE/NAME [options]",
        .summary = "Explain why a key ran in a running process, or why it does not run.",
        .more = "Shows what woke it, what it read and wrote, how it ended and what comes next; or what "
                "holds it back: no controller, a predicate, leadership, backoff, its own writes.\n"
                "The process is found by its control socket: the only one of yours, or --pid, or "
                "--socket.",
        .examples = "kubelua why v1/ConfigMap team/a\n"
                    "kubelua why configmap a -n team -o json",
        .exits = "0 when the process has answered, 1 when it could not be asked or knows no such kind, 2 for "
                 "a mistake on the command line.",
        .words = "kinds",
        .run = cli_lua,
        .group = CONTROLLERS,
    },
    {
        .name = "attach",
        .usage = "[options]",
        .summary = "A Lua prompt in a running process: its caches, its controllers, one key.",
        .more = "get, list and each read its caches and indexes; why, controllers and informers report; "
                "reconcile, pause, resume and set_params act; help() lists them all.\n"
                "The process logs each command. Without a terminal, attach runs the Lua code from "
                "standard input, and exits with 1 when some of it failed.",
        .examples = "kubelua attach -e 'list(\"v1/Pod\", { index = \"node\", value = \"n1\" })'",
        .exits = "0 at the end, 1 when the process could not be asked or some of what was run without a "
                 "terminal failed, 2 for a mistake on the command line.",
        .run = cli_lua,
        .group = CONTROLLERS,
    },
    {
        .name = "release-finalizers",
        .usage = "SCRIPT.lua... | --finalizer NAME [KIND...] [options]",
        .summary = "Take a controller's finalizer from all objects that still carry it.",
        .more = "For a controller that is gone or no longer has finalize: without this its objects could "
                "not be deleted. The work of its finalize is not done.\n"
                "In all namespaces, unless -n names one. Without a kind it searches every kind of the "
                "server.",
        .examples = "kubelua release-finalizers buckets.lua --dry-run\n"
                    "kubelua release-finalizers --finalizer example.com/bucket --yes "
                    "buckets.example.com",
        .exits = "0 when all are released, 1 when some could not be looked at or released, 2 for a mistake "
                 "on the command line.",
        .words = "scripts",
        .run = cli_lua,
        .group = CONTROLLERS,
    },
    {
        .name = "uninstall",
        .usage = "SCRIPT.lua... [options]",
        .summary = "Delete the webhook configurations that scripts leave in a cluster.",
        .more =
            "Use it when their process is gone for good: the API server still calls its webhooks, and "
            "with failure_policy = \"Fail\" rejects the requests. A process that still runs recreates "
            "them. Only configurations that kubelua made are deleted. Definitions that the scripts convert "
            "stay, without the webhook.",
        .examples = "kubelua uninstall pods.lua --dry-run\n"
                    "kubelua uninstall pods.lua --yes",
        .exits = "0 when all are deleted, ended or absent, 1 when one stays, 2 for a mistake on the "
                 "command line.",
        .words = "scripts",
        .run = cli_lua,
        .group = CONTROLLERS,
    },
    {
        .name = "test",
        .usage = "[PATH...] [options]",
        .summary = "Run the tests beside scripts (*_test.lua), against their own API server and in "
                   "virtual time.",
        .more =
            "PATH is a test file, a script with a test beside it, or a directory (the "
            "current one). A test is in busted's syntax, and has the clock and the API server in its "
            "hands: `local t = kube.testing.start { script = \"hello.lua\" }`, then t:create, t:get, "
            "t:patch, t:as, t:advance \"10m\", t:runs, t:writes, t:events, t:logs, t:fail_next. `kubelua "
            "annotations DIR` writes all of them with their words (testing.lua, testing_meta.lua); `kubelua "
            "init NAME` makes a project with a test; the page Testing of the site has the rest.",
        .examples = "kubelua test\n"
                    "kubelua test hello.lua --filter greets -v\n"
                    "kubelua test -o junit > junit.xml",
        .exits = "0 when all passed, 1 when some failed or none was found by --filter, 2 for a "
                 "mistake on the command line.",
        .words = "scripts",
        .run = cli_lua,
        .group = CONTROLLERS,
    },
    {
        .name = "sim",
        .usage = "SCRIPT.lua... [options]",
        .summary = "What if: simulate a day of a cluster with the scripts, in seconds, and report the "
                   "result.",
        .more = "The scripts are those of `run`, unchanged; the clock jumps. The cluster is "
                "generated, or a snapshot. The page \"What if\" of the site goes from a snapshot to a "
                "decision.",
        .examples = "kubelua sim noderesource.lua --generate nodes=50 --for 24h --out whatif\n"
                    "kubelua sim noderesource.lua --set "
                    "colocation.cpuReclaimThresholdPercent=50..80/10 --seeds 3",
        .exits = "0 when it ran, 1 when it failed or no setting keeps the budget, 2 for a mistake on the "
                 "command line.",
        .words = "scripts",
        .run = cli_lua,
        .group = CONTROLLERS,
    },
    {
        .name = "rbac",
        .usage = "SCRIPT.lua... [options]",
        .summary = "Print the smallest role that scripts need.",
        .more = "Derives it from the tables and source of the scripts, and with --record from the "
                "requests of their tests.",
        .examples = "kubelua rbac hello.lua --record --bind -n system | kubectl apply -f -",
        .exits = "0 when the role is printed, 1 when a script does not load or a test of --record fails, 2 "
                 "for a mistake on the command line.",
        .words = "scripts",
        .run = cli_lua,
        .group = CONTROLLERS,
    },
    {
        .name = "init",
        .usage = "NAME [options]",
        .summary = "Create a new project: a controller, its tests, its CRD, its RBAC rules and its "
                   "Deployment.",
        .examples = "kubelua init greeter --kind example.com/v1/Greeting && cd greeter && kubelua "
                    "test",
        .exits = "0 when the project is written, 1 when a file is there already or cannot be written, 2 for "
                 "a mistake on the command line.",
        .run = cli_lua,
        .group = CONTROLLERS,
    },
    {
        .name = "annotations",
        .usage = "DIR",
        .summary = "Write kubelua's annotations for the Lua language server: every function, with its types.",
        .more = "For use with a binary that was not installed. .luarc.json names the directory in "
                "workspace.library; kubelua init writes both.",
        .examples = "kubelua annotations .annotations",
        .exits = "0 when they are written, 1 when they cannot be, 2 for a mistake on the command line.",
        .run = cli_lua,
        .group = CONTROLLERS,
    },
    {
        .name = "explain",
        .usage = "SCRIPT.lua... [options]",
        .summary = "Report the contents and memory of scripts' caches on a cluster, and how to shrink "
                   "them.",
        .more = "It lists and watches what the scripts would list and watch, for ten seconds, and writes "
                "nothing.",
        .examples = "kubelua explain hello.lua\n"
                    "kubelua explain hello.lua --for 1m -o json",
        .exits = "0 when all caches filled, 1 when something cannot be listed or a script does not load, 2 "
                 "for a mistake on the command line.",
        .words = "scripts",
        .run = cli_lua,
        .group = CONTROLLERS,
    },
    {
        .name = "get",
        .usage = "KIND [NAME...] | KIND/NAME... [options]",
        .summary = "Show objects: as a table, as YAML or JSON, or one field of each.",
        .more = "KIND is po, pods, Pod, deployments.apps, apps/v1/Deployment, or several with "
                "commas between.",
        .examples = "kubelua get po -A -o wide\n"
                    "kubelua get deploy/web -o yaml\n"
                    "kubelua get nodes -o path=status.allocatable.cpu",
        .exits = "0 when all was found, 1 when something was not or the server refused, 2 for a mistake on "
                 "the command line.",
        .words = "kinds",
        .run = cli_lua,
        .group = LOOK,
    },
    {
        .name = "apply",
        .usage = "-f FILE|DIR|- [options]",
        .summary = "Apply the objects in files (server-side apply).",
        .more = "Prints created, configured or unchanged for each. Fields that another manager "
                "owns are not taken from it without --force.",
        .examples = "kubelua apply -f deploy\n"
                    "kubelua apply -f crd.yaml --diff --dry-run",
        .exits = "0 when everything was applied, 1 when something was not (the rest is still applied), 2 for "
                 "a mistake "
                 "on the command line.",
        .run = cli_lua,
        .group = LOOK,
    },
    {
        .name = "delete",
        .usage = "KIND NAME... | KIND/NAME... | KIND -l SELECTOR | -f FILE [options]",
        .summary = "Delete objects, and wait until they are gone.",
        .examples = "kubelua delete pod web\n"
                    "kubelua delete cm -l app=web --wait=false\n"
                    "kubelua delete -f deploy",
        .exits = "0 when all are gone, 1 when something was absent (see --ignore-not-found) or not deleted "
                 "in time, 2 for a mistake on the command line.",
        .words = "kinds",
        .run = cli_lua,
        .group = LOOK,
    },
    {
        .name = "dump",
        .usage = "[options]",
        .summary = "Print every object of a server as one list, which `kubelua apiserver --load` takes.",
        .more = "Definitions and namespaces come first; uids, versions and managedFields are unchanged. "
                "With --server, or the configured cluster.",
        .examples = "kubelua dump --redact-secrets > cluster.json\n"
                    "kubelua apiserver --load cluster.json",
        .exits = "0 when all is printed, 1 when a part could not be read or written, 2 for a mistake on the "
                 "command line.",
        .run = cli_lua,
        .group = LOOK,
    },
    {
        .name = "watch",
        .usage = "KIND [NAME] [options]",
        .summary = "Print changes of objects as they happen: one line each, with old and new values.",
        .examples = "kubelua watch pods -l app=web\n"
                    "kubelua watch cm -A --initial",
        .exits = "0 when --events lines were printed, 1 when the server refused, 2 for a mistake on the "
                 "command line.",
        .words = "kinds",
        .run = cli_lua,
        .group = LOOK,
    },
    {
        .name = "logs",
        .usage = "POD [options]",
        .summary = "Print the logs of a pod's container; -f follows them.",
        .examples = "kubelua logs web -c app --tail 100 -f\n"
                    "kubelua logs pod/web --previous",
        .exits = "0 at the end of the log, 1 when it could not be read, 2 for a mistake on the command line.",
        .run = cli_lua,
        .group = LOOK,
    },
    {
        .name = "exec",
        .usage = "POD [-c CONTAINER] [-i] [-t] -- COMMAND...",
        .summary = "Run a command in a container; exits with the command's status.",
        .examples = "kubelua exec web -- ls -l /\n"
                    "kubelua exec web -it -- sh\n"
                    "tar c . | kubelua exec web -i -- tar x -C /tmp",
        .exits = "the command's; 1 when it could not be run or the connection broke, 2 for a "
                 "mistake on the command line.",
        .run = cli_lua,
        .group = LOOK,
    },
    {
        .name = "shell",
        .usage = "[options]",
        .summary = "A Lua prompt on a cluster: completion, history, objects as YAML, lists as "
                   "tables.",
        .more = "c is the client, kube the library, _ the last result, and get, list, watch, apply and "
                "the other verbs are globals; help() lists them.\n"
                "^C ends what runs, ^D the shell. Without a terminal, the shell runs the Lua code from "
                "standard input, and exits with 1 when some of it failed.",
        .examples = "kubelua shell\n"
                    "kubelua shell -e 'get(\"pods\")'",
        .exits = "0 at the end, 1 when the server could not be asked or some of what was run without a "
                 "terminal failed, 2 for a mistake on the command line.",
        .run = cli_lua,
        .group = LOOK,
    },
    {
        .name = "gen",
        .usage = "--crds DIR --out DIR [--name MODULE] | --from-cluster [--groups A,B] --out DIR | crds "
                 "SCRIPT.lua...",
        .summary = "Generate typed clientsets from CRDs or a cluster, or the CRDs of scripts.",
        .more = "Then, in Lua: require "
                "\"mycrds\".clientset(c).example_v1.widgets(\"default\"):get(\"a\"). Fields are "
                "annotated for the Lua language server.\n"
                "Generating twice changes nothing; a file that kubelua gen did not write is "
                "never overwritten.",
        .examples = "kubelua gen --crds config/crd --out lua/mycrds --name mycrds\n"
                    "kubelua gen --from-cluster --groups apps,batch --out lua/k8s\n"
                    "kubelua gen crds sites.lua > crd.yaml",
        .exits = "0 when all is written, 1 when a definition, a script or a file could not be read or "
                 "written, 2 for a mistake on the command line.",
        .run = cli_lua,
        .group = OTHER,
    },
    {
        .name = "apiserver",
        .usage = "[options]",
        .summary = "Serve the embedded API server alone, over plain HTTP.",
        .examples = "kubelua apiserver --listen 127.0.0.1:8080 --crds crds --write-kubeconfig kc",
        .exits = "0 after SIGTERM or SIGINT, 1 when it could not start, 2 for a mistake on the command line.",
        .run = cli_apiserver,
        .group = OTHER,
    },
    {
        .name = "version",
        .usage = "[--server] [--bugs] [-o json]",
        .summary = "Print the versions of kubelua and Lua, and with --server that of the server.",
        .more = "--bugs lists the published bugs of that Lua version that scripts could reach, and what "
                "protects against them.",
        .examples = "kubelua version\n"
                    "kubelua version --server -o json",
        .exits = "0, 1 when --server could not be asked, 2 for a mistake on the command line.",
        .run = cli_lua,
        .group = OTHER,
    },
    {
        .name = "completion",
        .usage = "bash|zsh|fish",
        .summary = "Print a completion script for a shell: commands, options and values.",
        .more = "bash: source it in ~/.bashrc, or write it to "
                "~/.local/share/bash-completion/completions/kubelua.\n"
                "zsh: write it to a file _kubelua in a directory of $fpath. fish: write it to "
                "~/.config/fish/completions/kubelua.fish.\n"
                "make install and the Debian package set this up for all users.",
        .examples = "kubelua completion bash > ~/.local/share/bash-completion/completions/kubelua\n"
                    "kubelua completion fish > ~/.config/fish/completions/kubelua.fish",
        .exits = "0, 2 for a mistake on the command line.",
        .words = "=bash zsh fish",
        .run = cli_completion,
        .group = OTHER,
    },
    {
        .name = "help",
        .usage = "[COMMAND] [-o plain|man|json]",
        .summary = "Print help on kubelua or on a command: as text, a man page, or JSON.",
        .examples = "kubelua help run\nkubelua help run -o man | man -l -\nkubelua help -o json",
        .exits = "0, 2 for a mistake on the command line.",
        .words = "commands",
        .run = cli_help_command,
        .group = OTHER,
    },
    {.name = NULL},
};

const cli_command *cli_command_named(const char *name)
{
    const cli_command *c = cli_commands;
    while (c->name && strcmp(c->name, name))
        c++;
    return c;
}
