/* complete.c - completes a word on the command line, for bash, zsh and fish.
 *
 * `kubelua completion SHELL` prints a short script, which calls `kubelua __complete WORD...`; the last
 * word is the one at the cursor. The answer's first line says what else fits: "files", "dirs" or "words"
 * (nothing). Then comes one candidate per line, with a tab and a description. The candidates come from the
 * tables that the command line is parsed with, so they are what it accepts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/cli.h"
#include "cli/help.h"

/* Built-in kinds; completion does not ask a server. */
#define KINDS                                                                                                \
    "pods deployments services configmaps secrets nodes namespaces jobs cronjobs statefulsets daemonsets "   \
    "replicasets ingresses events persistentvolumeclaims serviceaccounts leases crd"

static bool begins(const char *text, const char *with) { return !strncmp(text, with, strlen(with)); }

/* Prints the words of `list`, separated by blanks, that begin with the typed one. */
static void put_words(const char *before, const char *list, const char *typed)
{
    for (const char *p = list; *p;) {
        size_t n = strcspn(p, " ");
        if (n >= strlen(typed) && begins(p, typed))
            printf("%s%.*s\n", before, (int)n, p);
        p += n + (p[n] == ' ');
    }
}

void cli_complete_commands(const char *typed)
{
    printf("words\n");
    for (const cli_command *c = cli_commands; c->name; c++)
        if (begins(c->name, typed))
            printf("%s\t%s\n", c->name, c->summary);
}

static const char *kind_of_value(const cli_option *o)
{
    if (o->arg && strstr(o->arg, "DIR") && !strstr(o->arg, "FILE"))
        return "dirs";
    return o->arg && (strstr(o->arg, "FILE") || strstr(o->arg, ".lua") || strstr(o->arg, "PATH")) ? "files"
                                                                                                  : "words";
}

static void put_value(const cli_option *o, const char *before, const char *typed)
{
    printf("%s\n", o->values ? "words" : kind_of_value(o));
    if (o->values)
        put_words(before, o->values, typed);
    else if (o->type == CLI_FLAG)
        put_words(before, "true false", typed);
}

static void put_options(const cli_option *options, const char *typed)
{
    printf("words\n");
    for (const cli_option *o = options; o->name; o++)
        if (*o->name && begins(o->name, typed) && !cli_option_hidden(options, o))
            printf("%s\t%s\n", o->name, o->help);
    if (begins("--help", typed))
        printf("--help\tthis text\n");
}

static const cli_option *option_of(const cli_option *options, const char *word, size_t n)
{
    for (const cli_option *o = options; o->name; o++)
        if ((*o->name && strlen(o->name) == n && !strncmp(o->name, word, n))
            || (o->brief && strlen(o->brief) == n && !strncmp(o->brief, word, n)))
            return o;
    return NULL;
}

static bool takes_next(const cli_option *o) { return o && o->type != CLI_FLAG && o->type != CLI_MAYBE; }

static void put_word(const cli_command *c, size_t place, const char *typed)
{
    const char *what = c->words ? c->words : "";
    if (!strcmp(what, "commands") && !place) {
        cli_complete_commands(typed);
        return;
    }
    bool files = !strcmp(what, "scripts") || !strcmp(what, "files");
    printf("%s\n", files ? "files" : "words");
    if (!strcmp(what, "kinds") && !place)
        put_words("", KINDS, typed);
    else if (*what == '=' && !place)
        put_words("", what + 1, typed);
}

void cli_complete(const cli_command *c, const cli_option *options, int argc, char **argv)
{
    const char *typed = argc > 1 ? argv[argc - 1] : "";
    const cli_option *waiting = NULL;
    bool only_words = false;
    size_t words = 0;
    for (int i = 1; i < argc - 1; i++) {
        if (waiting || only_words) {
            words += !waiting;
            waiting = NULL;
        } else if (!strcmp(argv[i], "--")) {
            only_words = true;
        } else if (argv[i][0] == '-' && argv[i][1]) {
            const cli_option *o = option_of(options, argv[i], strlen(argv[i]));
            waiting = takes_next(o) ? o : NULL;
        } else {
            words++;
        }
    }
    const char *eq = strchr(typed, '=');
    const cli_option *o = eq && *typed == '-' ? option_of(options, typed, (size_t)(eq - typed)) : NULL;
    if (waiting) {
        put_value(waiting, "", typed);
    } else if (o && !only_words) {
        char *before = kl_strndup(typed, (size_t)(eq - typed) + 1);
        put_value(o, before, eq + 1);
        kl_free(before);
    } else if (*typed == '-' && !only_words) {
        put_options(options, typed);
    } else {
        put_word(c, words, typed);
    }
}

/* ------------------------------------------------------------------------------------------------ the shells */

/* bash splits words at = and :, so that --output=json is three words; this joins them again. */
static const char bash[] =
    "# completion of kubelua for bash; kubelua completion bash prints it\n"
    "_kubelua() {\n"
    "    local -a words=() lines=()\n"
    "    local i w join=0 line\n"
    "    for ((i = 1; i <= COMP_CWORD; i++)); do\n"
    "        w=${COMP_WORDS[i]}\n"
    "        if ((join)) || [[ $w == [=:] ]] && ((${#words[@]})); then\n"
    "            words[${#words[@]} - 1]+=$w\n"
    "        else\n"
    "            words+=(\"$w\")\n"
    "        fi\n"
    "        [[ $w == [=:] ]] && join=1 || join=0\n"
    "    done\n"
    "    local cur=${words[${#words[@]} - 1]} own=${COMP_WORDS[COMP_CWORD]}\n"
    "    [[ $own == [=:] ]] && own=\n"
    "    local before=${cur%\"$own\"}\n"
    "    mapfile -t lines < <(\"${COMP_WORDS[0]}\" __complete \"${words[@]}\" 2>/dev/null)\n"
    "    COMPREPLY=()\n"
    "    for line in \"${lines[@]:1}\"; do\n"
    "        line=${line%%$'\\t'*}\n"
    "        COMPREPLY+=(\"${line#\"$before\"}\")\n"
    "    done\n"
    "    case ${lines[0]} in\n"
    "    files) compopt -o filenames 2>/dev/null\n"
    "        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- \"$own\") ;;\n"
    "\"$own\") ;;\n"
    "    dirs) compopt -o filenames 2>/dev/null\n"
    "        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -d -- \"$own\") ;;\n"
    "\"$own\") ;;\n"
    "    esac\n"
    "}\n"
    "complete -F _kubelua kubelua\n";

static const char zsh[] =
    "#compdef kubelua\n"
    "# completion of kubelua for zsh; kubelua completion zsh prints it\n"
    "_kubelua() {\n"
    "    local -a lines items\n"
    "    local line\n"
    "    lines=(\"${(@f)$(\"${words[1]}\" __complete \"${(@)words[2,CURRENT]}\" 2>/dev/null)}\")\n"
    "    for line in \"${(@)lines[2,-1]}\"; do\n"
    "        if [[ $line == *$'\\t'* ]]; then\n"
    "            items+=(\"${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}\")\n"
    "        else\n"
    "            items+=(\"${line//:/\\\\:}\")\n"
    "        fi\n"
    "    done\n"
    "    (($#items)) && _describe kubelua items\n"
    "    case $lines[1] in\n"
    "    files) _files ;;\n"
    "    dirs) _files -/ ;;\n"
    "    esac\n"
    "}\n"
    "if [ \"$funcstack[1]\" = _kubelua ]; then\n"
    "    _kubelua \"$@\"\n"
    "else\n"
    "    compdef _kubelua kubelua\n"
    "fi\n";

static const char fish[] = "# completion of kubelua for fish; kubelua completion fish prints it\n"
                           "function __kubelua_complete\n"
                           "    set -l typed (commandline -ct)\n"
                           "    set -l words (commandline -opc)\n"
                           "    set -l lines ($words[1] __complete $words[2..-1] \"$typed\" 2>/dev/null)\n"
                           "    printf '%s\\n' $lines[2..-1]\n"
                           "    switch $lines[1]\n"
                           "        case files\n"
                           "            __fish_complete_path $typed\n"
                           "        case dirs\n"
                           "            __fish_complete_directories $typed\n"
                           "    end\n"
                           "end\n"
                           "complete -c kubelua -f -a '(__kubelua_complete)'\n";

int cli_completion(int argc, char **argv)
{
    cli_list words = {0};
    cli_parse(cli_command_named("completion"), (const cli_option[]){{0}}, argc, argv, &words);
    static const char *const shells[][2] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    const char *script = NULL;
    for (size_t i = 0; words.n == 1 && i < sizeof shells / sizeof *shells; i++)
        if (!strcmp(words.v[0], shells[i][0]))
            script = shells[i][1];
    if (script)
        fputs(script, stdout);
    int code = script ? 0 : cli_fail(2, "completion", "for which shell? kubelua completion bash|zsh|fish");
    kl_free(words.v);
    return code;
}
