/* cmd_replay.c - kubelua replay: runs a recording again with scripts, and reports what differs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "script/program.h"
#include "base/map.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/params.h"
#include "lab/differences.h"
#include "model/time.h"
#include "lab/replay.h"

/* Differing writes that are reported per run; further ones are only counted. */
#define CHANGES_MAX 20

typedef struct replay {
    const char *command;
    const char *show, *until, *level;
    bool json;
    cli_list words;
    cli_params_words param_words;
    kl_past *past;
    kl_program **programs;
    size_t n_programs, told;
    kl_builder *out;       /* -o json: the list of runs */
    kl_differences *kinds; /* without --show: printed at the end */
} replay;

/* --- for people --------------------------------------------------------------------------- */

static const char *verdict_word(kl_replay_verdict v)
{
    static const char *const words[] = {"same", "differs", "fails", "cut"};
    return words[v];
}

static const char *word(const kl_value *op, const char *key)
{
    const char *s = kl_value_str_at(op, key, NULL);
    return s ? s : "";
}

/* "patch v1/ConfigMap default/a", or "POST https://dns.example.com/records" */
static void say_call(kl_buf *out, const kl_value *op)
{
    const char *ns = word(op, "ns"), *sub = word(op, "sub");
    if (!strcmp(word(op, "verb"), "http")) {
        kl_buf_printf(out, "%s %s", sub, word(op, "name"));
        return;
    }
    kl_buf_printf(out, "%s %s%s%s %s%s%s", word(op, "verb"), word(op, "kind"), *sub ? "/" : "", sub, ns,
        *ns ? "/" : "", word(op, "name"));
}

static void say_change(kl_buf *out, const kl_replay_change *c)
{
    kl_buf_printf(out, "  %s",
        c->how == KL_REPLAY_NEW           ? "only now: "
            : c->how == KL_REPLAY_MISSING ? "not any more: "
                                          : "");
    say_call(out, c->now ? c->now : c->then);
    kl_buf_printf(out, "%s%s\n", *c->text ? ": " : "", c->text);
}

static void say_result(kl_buf *out, const char *result, kl_time after)
{
    char text[KL_DURATION_MAX];
    kl_buf_printf(out, "%s", result);
    if (after >= 0)
        kl_buf_printf(out, " %s", kl_duration_format(after, text));
}

/* What became of a run, in some lines. */
static void say_run(kl_buf *out, const kl_replayed *x, bool same)
{
    for (size_t i = 0; i < x->n_changes && i < CHANGES_MAX; i++)
        say_change(out, &x->changes[i]);
    if (x->n_changes > CHANGES_MAX)
        kl_buf_printf(out, "  and %zu more writes\n", x->n_changes - CHANGES_MAX);
    if (x->result_differs) {
        kl_buf_printf(out, "  result: ");
        say_result(out, x->run->result, x->run->after);
        kl_buf_printf(out, " -> ");
        say_result(out, x->result, x->after);
        kl_buf_putc(out, '\n');
        if (x->run->message)
            kl_buf_printf(out, "  recorded: %s\n", x->run->message);
        if (x->message)
            kl_buf_printf(out, "  %s\n", x->message);
    }
    if (same) {
        kl_buf_printf(out, "  %zu %s, result: ", x->writes, x->writes == 1 ? "write" : "writes");
        say_result(out, x->result, x->after);
        kl_buf_putc(out, '\n');
    }
}

/* "limits team-a at 2026-...: differs", and what became of it. */
static char *story(const replay *r, const kl_replayed *x)
{
    char at[KL_TIME_MAX];
    kl_buf out = KL_BUF_INIT;
    kl_buf_printf(&out, "%s %s at %s: %s\n", x->run->controller, x->run->key,
        kl_time_format_micro(x->run->at / KL_SECONDS(1), (int32_t)(x->run->at % KL_SECONDS(1)), at),
        verdict_word(x->verdict));
    say_run(&out, x, r->show && x->verdict == KL_REPLAY_SAME);
    return kl_buf_take(&out);
}

/* The kind of difference of a run: its writes, in any order, and how it ended. */
static char *kind_of(const kl_replayed *x)
{
    kl_map *kinds = kl_map_new();
    kl_buf out = KL_BUF_INIT;
    for (size_t i = 0; i < x->n_changes; i++)
        kl_map_set(kinds, x->changes[i].kind, NULL);
    char **sorted = kl_map_sorted_keys(kinds);
    for (char **k = sorted; *k; k++)
        kl_buf_printf(&out, "%s%s", out.len ? "; " : "", *k);
    kl_free(sorted);
    kl_map_free(kinds, NULL);
    if (x->result_differs) {
        char *what = kl_sprintf("result: %s -> %s", x->run->result, x->result);
        const char *message = x->message ? x->message : x->run->message;
        kl_kind_text(&out, x->run->key, what, message ? message : "");
        kl_free(what);
    }
    return kl_buf_take(&out);
}

static void take_in(replay *r, const kl_replayed *x)
{
    if (x->verdict == KL_REPLAY_SAME || x->verdict == KL_REPLAY_CUT)
        return;
    char *text = story(r, x), *kind = kind_of(x);
    kl_differences_add(r->kinds,
        &(kl_likes){(char *)x->run->controller, (char *)x->run->key, kind, text, (int)x->verdict, 0});
    kl_free(text);
    kl_free(kind);
}

static void print_kinds(const replay *r)
{
    kl_likes **all = kl_differences_sorted(r->kinds);
    for (size_t i = 0; all[i]; i++) {
        cli_print(stdout, all[i]->text);
        if (all[i]->n > 1)
            printf("  %zu more %s like this\n", all[i]->n - 1, all[i]->n == 2 ? "run" : "runs");
    }
    kl_free(all);
}

/* --- for programs ------------------------------------------------------------------------- */

static void build_change(kl_builder *b, const kl_replay_change *c)
{
    kl_build_object(b);
    kl_build_kstr(b, "how",
        c->how == KL_REPLAY_NEW           ? "new"
            : c->how == KL_REPLAY_MISSING ? "missing"
                                          : "other");
    kl_build_kvalue(b, "then", c->then);
    kl_build_kvalue(b, "now", c->now);
    kl_build_kstr(b, "text", c->text);
    kl_build_end(b);
}

static void build_result(
    kl_builder *b, const char *key, const char *result, kl_time after, const char *message)
{
    kl_build_key(b, key);
    kl_build_object(b);
    kl_build_kstr(b, "result", result);
    if (after >= 0) {
        kl_build_key(b, "after");
        kl_build_double(b, (double)after / 1e9);
    }
    kl_build_kstr(b, "message", message);
    kl_build_end(b);
}

static void build_run(replay *r, const kl_replayed *x)
{
    char at[KL_TIME_MAX];
    kl_builder *b = r->out;
    if (x->verdict == KL_REPLAY_SAME && !r->show)
        return;
    kl_build_object(b);
    kl_build_kstr(b, "controller", x->run->controller);
    kl_build_kstr(b, "key", x->run->key);
    kl_build_kstr(b, "reconcileID", x->run->id);
    kl_build_kstr(
        b, "at", kl_time_format_micro(x->run->at / KL_SECONDS(1), (int32_t)(x->run->at % KL_SECONDS(1)), at));
    kl_build_kstr(b, "verdict", verdict_word(x->verdict));
    build_result(b, "then", x->run->result, x->run->after, x->run->message);
    build_result(b, "now", x->result, x->after, x->message);
    kl_build_key(b, "changes");
    kl_build_array(b);
    for (size_t i = 0; i < x->n_changes; i++)
        build_change(b, &x->changes[i]);
    kl_build_end(b);
    kl_build_end(b);
}

static void on_told(void *arg, const kl_replayed *x)
{
    replay *r = arg;
    r->told++;
    if (r->out)
        build_run(r, x);
    if (!r->show) {
        take_in(r, x);
    } else if (!r->out) {
        char *text = story(r, x);
        cli_print(stdout, text);
        kl_free(text);
    }
}

/* --- the end ------------------------------------------------------------------------------ */

/* Whether a script is one of those that were running when the recording began. */
static bool is_recorded(const replay *r)
{
    bool all = r->n_programs > 0;
    for (size_t i = 0; i < r->n_programs; i++) {
        char digest[24];
        bool is = false;
        snprintf(digest, sizeof digest, "%016llx", (unsigned long long)lkl_program_digest(r->programs[i]));
        for (size_t k = 0; k < kl_value_len(r->past->scripts); k++)
            is = is || !strcmp(word(kl_value_item(r->past->scripts, k), "digest"), digest);
        all = all && is;
    }
    return all;
}

static void print_sum(const replay *r, const kl_replay_sum *s)
{
    char span[KL_DURATION_MAX], took[KL_DURATION_MAX];
    for (size_t i = 0; i < s->n_notes; i++) {
        fprintf(stderr, "note: ");
        cli_print(stderr, s->notes[i]);
        fprintf(stderr, "\n");
    }
    fflush(stderr);
    printf("%zu same, %zu differ%s, %zu fail%s", s->same, s->differ, s->differ == 1 ? "s" : "", s->fail,
        s->fail == 1 ? "s" : "");
    if (s->cut)
        printf(", %zu cut short when recorded", s->cut);
    printf(" (%s script; %s in %s)\n", is_recorded(r) ? "the recorded" : "another",
        kl_duration_format(s->span / KL_MILLISECONDS(1) * KL_MILLISECONDS(1), span),
        kl_duration_format(s->took / KL_MILLISECONDS(1) * KL_MILLISECONDS(1), took));
}

static void build_kinds(replay *r)
{
    kl_likes **all = kl_differences_sorted(r->kinds);
    kl_build_key(r->out, "kinds");
    kl_build_array(r->out);
    for (size_t i = 0; all[i]; i++) {
        kl_build_object(r->out);
        kl_build_kstr(r->out, "kind", all[i]->kind);
        kl_build_kstr(r->out, "verdict", verdict_word((kl_replay_verdict)all[i]->verdict));
        kl_build_kint(r->out, "runs", (int64_t)all[i]->n);
        kl_build_kstr(r->out, "controller", all[i]->controller);
        kl_build_kstr(r->out, "key", all[i]->key);
        kl_build_end(r->out);
    }
    kl_build_end(r->out);
    kl_free(all);
}

static void print_json(replay *r, const kl_replay_sum *s)
{
    kl_build_end(r->out);
    build_kinds(r);
    kl_build_kint(r->out, "same", (int64_t)s->same);
    kl_build_kint(r->out, "differ", (int64_t)s->differ);
    kl_build_kint(r->out, "fail", (int64_t)s->fail);
    kl_build_kint(r->out, "cut", (int64_t)s->cut);
    kl_build_key(r->out, "recordedScript");
    kl_build_bool(r->out, is_recorded(r));
    kl_build_key(r->out, "notes");
    kl_build_array(r->out);
    for (size_t i = 0; i < s->n_notes; i++)
        kl_build_str(r->out, s->notes[i]);
    kl_build_end(r->out);
    kl_build_end(r->out);
    const kl_value *v = kl_builder_done(r->out);
    r->out = NULL;
    kl_buf text = KL_BUF_INIT;
    kl_value_encode_pretty(v, &text);
    kl_buf_putc(&text, '\n');
    cli_print(stdout, kl_buf_str(&text));
    kl_buf_fini(&text);
    kl_value_unref(v);
}

/* A time, or a duration after the start of the recording; 0 after a message. */
static kl_time until_of(const replay *r, int *code)
{
    int64_t seconds;
    int32_t nanos;
    kl_time d;
    kl_err err = KL_ERR_INIT;
    if (!r->until)
        return 0;
    kl_time t = 0;
    if (!kl_duration_parse(r->until, &d, NULL))
        t = r->past->began + d;
    else if (!kl_time_parse(r->until, &seconds, &nanos, &err))
        t = seconds * KL_SECONDS(1) + nanos;
    else
        *code = cli_fail(2, r->command,
            "--until must be a time (2026-01-31T12:00:00Z) or a duration after the start of the recording "
            "(10m), not "
            "\"%s\"",
            r->until);
    kl_err_fini(&err);
    return t;
}

static int play(replay *r, kl_time until)
{
    kl_err err = KL_ERR_INIT;
    kl_replay_sum sum;
    if (r->json) {
        r->out = kl_builder_new();
        kl_build_object(r->out);
        kl_build_key(r->out, "runs");
        kl_build_array(r->out);
    }
    if (kl_replay(&(kl_replay_options){.past = r->past,
                      .programs = r->programs,
                      .n_programs = r->n_programs,
                      .until = until,
                      .key = r->show,
                      .told = on_told,
                      .arg = r},
            &sum, &err)) {
        if (r->out)
            kl_builder_free(r->out);
        return cli_fail_err(2, r->command, &err);
    }
    if (!r->out)
        print_kinds(r);
    int code = sum.differ || sum.fail ? 1 : 0;
    if (r->show && !r->told)
        code = cli_fail(2, r->command,
            "the recording has no run of %s: --show takes a key as it stands in reports, NAMESPACE/NAME or "
            "NAME",
            r->show);
    if (r->json)
        print_json(r, &sum);
    else if (code != 2)
        print_sum(r, &sum);
    kl_replay_sum_fini(&sum);
    return code;
}

/* Sets params over the recorded ones. */
static kl_status set_params(replay *r, kl_err *err)
{
    cli_params *p = NULL;
    kl_status st = cli_params_new(&r->param_words, &p, err);
    if (!st && cli_params_in_cluster(p))
        st = kl_fail(
            err, KL_EINVAL, "--params: a replay does not contact a cluster; give the values in a file");
    if (!st)
        st = cli_params_read(p, true, err);
    if (!st)
        st = cli_params_known(p, r->programs, r->n_programs, err);
    for (size_t i = 0; i < r->n_programs && !st; i++)
        st = cli_params_set(p, r->programs[i], false, err);
    cli_params_free(p);
    return st;
}

static int load(replay *r)
{
    kl_err err = KL_ERR_INIT;
    if (kl_past_read(r->words.v[0], &r->past, &err))
        return cli_fail_err(2, r->command, &err);
    for (; r->n_programs < r->words.n - 1; r->n_programs++)
        if (lkl_program_load(r->words.v[r->n_programs + 1], &r->programs[r->n_programs], &err))
            return cli_fail_err(2, r->command, &err);
    return set_params(r, &err) ? cli_fail_err(2, r->command, &err) : 0;
}

int cli_replay(int argc, char **argv)
{
    const cli_command *self = cli_command_named("replay");
    replay r = {.command = "replay", .level = "off"};
    const char *format = "plain";
    cli_option options[5 + CLI_PARAMS_OPTIONS] = {
        {"--show", "KEY", "report only this key, with every run, also the runs that match", CLI_STRING,
            &r.show},
        {"--until", "TIME|DURATION", "stop there: a time, or a duration after the start of the recording",
            CLI_STRING, &r.until},
        {"--output", "FORMAT", "plain, or json: one document, with the calls themselves (plain)", CLI_STRING,
            &format, "-o", "plain json"},
        {"--log-level", "LEVEL",
            "what scripts log while they run again: debug, info, warn, error or off (off)", CLI_STRING,
            &r.level, NULL, CLI_LEVELS},
    };
    cli_params_options(&r.param_words, options + 4);
    cli_parse(self, options, argc, argv, &r.words);
    int code = 0;
    if (r.words.n < 2)
        code = cli_fail(2, r.command, "%s: kubelua replay %s",
            r.words.n ? "name the script, too" : "name the recording and the script", self->usage);
    else if (!cli_log(r.command, r.level, NULL))
        code = 2;
    r.json = !strcmp(format, "json");
    r.programs = kl_new_array(kl_program *, r.words.n + 1);
    r.kinds = kl_differences_new();
    if (!code)
        code = load(&r);
    kl_time until = code ? 0 : until_of(&r, &code);
    if (!code)
        code = play(&r, until);
    for (size_t i = 0; i < r.n_programs; i++)
        kl_program_unref(r.programs[i]);
    kl_free(r.programs);
    kl_past_free(r.past);
    kl_differences_free(r.kinds);
    kl_free(r.words.v);
    cli_params_words_free(&r.param_words);
    return code;
}
