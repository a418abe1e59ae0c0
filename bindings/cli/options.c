/* options.c - reads the command line against a table. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/escape.h"
#include "base/mem.h"
#include "base/suggest.h"
#include "cli/cli.h"
#include "model/quantity.h"
#include "model/time.h"

static void put_safely(FILE *to, const char *text)
{
    kl_buf safe = KL_BUF_INIT;
    kl_visible_escape(&safe, text, strlen(text), false);
    fwrite(kl_buf_str(&safe), 1, safe.len, to);
    kl_buf_fini(&safe);
}

void cli_print(FILE *to, const char *text)
{
    if (isatty(fileno(to)))
        put_safely(to, text);
    else
        fputs(text, to);
}

int cli_fail(int code, const char *command, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *text = kl_vsprintf(fmt, ap);
    va_end(ap);
    fflush(stdout);
    fprintf(stderr, "kubelua %s: ", command);
    put_safely(stderr, text);
    fputc('\n', stderr);
    kl_free(text);
    return code;
}

int cli_fail_err(int code, const char *command, kl_err *err)
{
    cli_fail(code, command, "%s", kl_err_message(err));
    kl_err_fini(err);
    return code;
}

cli_purpose cli_purpose_now;

static const cli_option *find(const cli_option *options, const char *name, size_t n)
{
    for (const cli_option *o = options; o->name; o++)
        if (strlen(o->name) == n && !strncmp(o->name, name, n))
            return o;
    return NULL;
}

static void list_add(cli_list *l, const char *s)
{
    l->v = kl_realloc(l->v, (l->n + 1) * sizeof *l->v);
    l->v[l->n++] = s;
}

static void usage_exit(const cli_command *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *text = kl_vsprintf(fmt, ap);
    va_end(ap);
    cli_fail(2, c->name, "%s", text);
    kl_free(text);
    fprintf(stderr, "(kubelua %s --help lists the options)\n", c->name);
    exit(2);
}

/* Refuses a value that is not among `values`; there "path=" stands for every value that begins with it. */
static void check_word(const cli_command *c, const cli_option *o, const char *value)
{
    const char *known[16];
    size_t n = 0;
    char *all = kl_strdup(o->values), *save = NULL;
    bool good = false;
    for (char *w = strtok_r(all, " ", &save); w && n < 16; w = strtok_r(NULL, " ", &save)) {
        size_t len = strlen(w);
        known[n++] = w;
        good = good || !strcmp(w, value) || (w[len - 1] == '=' && !strncmp(w, value, len));
    }
    if (!good) {
        kl_buf list = KL_BUF_INIT;
        for (size_t i = 0; i < n; i++)
            kl_buf_printf(&list, "%s%s%s",
                !i              ? ""
                    : i + 1 < n ? ", "
                                : " or ",
                known[i], known[i][strlen(known[i]) - 1] == '=' ? "..." : "");
        const char *near = kl_suggest(value, known, n);
        usage_exit(c, "%s must be %s, not \"%s\"%s%s%s", o->name, kl_buf_str(&list), value,
            near ? ", did you mean " : "", near ? near : "", near ? "?" : "");
    }
    kl_free(all);
}

static void take(const cli_command *c, const cli_option *o, const char *value)
{
    if (value && *value && o->values)
        check_word(c, o, value);
    kl_err err = KL_ERR_INIT;
    char *end;
    switch (o->type) {
    case CLI_FLAG:
        if (value && strcmp(value, "true") && strcmp(value, "false"))
            usage_exit(c, "%s is a switch: it takes true or false, not %s", o->name, value);
        *(bool *)o->out = !value || !strcmp(value, "true");
        break;
    case CLI_STRING: *(const char **)o->out = value; break;
    case CLI_INT:
        errno = 0;
        *(long *)o->out = strtol(value, &end, 10);
        if (errno || !*value || *end || *(long *)o->out < 1 || *(long *)o->out > 10000)
            usage_exit(c, "%s must be a number from 1 to 10000, not %s", o->name, *value ? value : "empty");
        break;
    case CLI_COUNT:
        errno = 0;
        *(long *)o->out = strtol(value, &end, 10);
        if (errno || !isdigit((unsigned char)*value) || *end)
            usage_exit(c, "%s must be a whole number, 0 or more, not %s", o->name, *value ? value : "empty");
        break;
    case CLI_MAYBE: *(const char **)o->out = value ? value : ""; break;
    case CLI_DURATION:
    case CLI_PERIOD:
        if (kl_duration_parse(value, o->out, &err))
            usage_exit(c, "%s: %s", o->name, kl_err_message(&err));
        if (*(kl_time *)o->out < 0)
            usage_exit(c, "%s must not be negative, got %s", o->name, value);
        if (o->type == CLI_PERIOD && !*(kl_time *)o->out)
            usage_exit(c, "%s must be above zero, got %s", o->name, value);
        break;
    case CLI_SIZE: {
        kl_quantity *q = NULL;
        int64_t n = 0;
        if (kl_quantity_parse(value, &q, &err) || !kl_quantity_value(q, &n) || n < 1)
            usage_exit(c, "%s must be a number of bytes such as 16777216 or 16Mi, not %s", o->name, value);
        *(size_t *)o->out = (size_t)n;
        kl_quantity_free(q);
        break;
    }
    case CLI_LIST: list_add(o->out, value); break;
    }
}

static const char *nearest(const cli_option *options, const char *name)
{
    const char *names[96];
    size_t n = 0;
    for (const cli_option *o = options; o->name && n < sizeof names / sizeof *names; o++)
        if (*o->name)
            names[n++] = o->name;
    return kl_suggest(name, names, n);
}

static const cli_option *find_brief(const cli_option *options, char letter)
{
    for (const cli_option *o = options; o->name; o++)
        if (o->brief && o->brief[1] == letter)
            return o;
    return NULL;
}

/* The value of an option that stands in the next word. */
static const char *next_word(const cli_command *c, const cli_option *o, int argc, char **argv, int *i)
{
    if (*i + 1 >= argc)
        usage_exit(c, "%s needs a value: %s %s", o->name, o->name, o->arg);
    return argv[++*i];
}

/* -n NAME, -nNAME, -n=NAME, -it */
static void take_brief(const cli_command *c, const cli_option *options, int argc, char **argv, int *i)
{
    for (const char *p = argv[*i] + 1; *p; p++) {
        const cli_option *o = find_brief(options, *p);
        if (!o) {
            /* A missing dash is the commoner mistake. */
            char *name = kl_sprintf("-%s", argv[*i]);
            const char *near = p == argv[*i] + 1 && p[1] ? nearest(options, name) : NULL;
            kl_free(name);
            if (near)
                usage_exit(c, "unknown option -%c in %s, did you mean %s?", *p, argv[*i], near);
            usage_exit(c, "unknown option -%c%s%s", *p, p[1] || p > argv[*i] + 1 ? " in " : "",
                p[1] || p > argv[*i] + 1 ? argv[*i] : "");
        }
        if (o->type == CLI_FLAG || o->type == CLI_MAYBE) {
            take(c, o, NULL);
            continue;
        }
        take(c, o, p[1] == '=' ? p + 2 : p[1] ? p + 1 : next_word(c, o, argc, argv, i));
        return;
    }
}

static void parse(const cli_command *c, const cli_option *options, int argc, char **argv, cli_list *words)
{
    bool only_words = false;
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];
        if (only_words || a[0] != '-' || !a[1]) {
            list_add(words, a);
            continue;
        }
        if (!strcmp(a, "--")) {
            only_words = true;
            continue;
        }
        if (!strcmp(a, "--help") || !strcmp(a, "-h") || !strncmp(a, "--help=", 7)) {
            cli_help(c, options, a[1] == '-' && a[6] ? a + 7 : "plain");
            exit(0);
        }
        if (a[1] != '-') {
            take_brief(c, options, argc, argv, &i);
            continue;
        }
        const char *eq = strchr(a, '=');
        size_t n = eq ? (size_t)(eq - a) : strlen(a);
        const cli_option *o = find(options, a, n);
        if (!o) {
            char *name = kl_strndup(a, n);
            const char *near = nearest(options, name);
            if (near)
                usage_exit(c, "unknown option %s, did you mean %s?", name, near);
            usage_exit(c, "unknown option %s", name);
        }
        const char *value = eq ? eq + 1 : NULL;
        if (!value && o->type != CLI_FLAG && o->type != CLI_MAYBE)
            value = next_word(c, o, argc, argv, &i);
        take(c, o, value);
    }
}

void cli_parse(const cli_command *c, const cli_option *options, int argc, char **argv, cli_list *words)
{
    if (cli_purpose_now == CLI_COMPLETE) {
        cli_complete(c, options, argc, argv);
        exit(0);
    }
    parse(c, options, argc, argv, words);
    if (cli_purpose_now == CLI_LOOK_AT)
        exit(0);
}
