/* params.c - see params.h. Each source becomes an object of names; core/run/params.h knows what they mean. */
#include "cli/params.h"

#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/sync.h"
#include "cli/watched.h"
#include "run/params.h"
#include "yaml/yaml.h"

typedef struct source {
    const char *option, *word; /* as the command line has them */
    char *name;                /* of --param and --param-env; NULL: a whole source */
    const char *text;          /* after its "=" */
    bool env;                  /* the text is a variable's name */
    cli_watched watched;       /* kind NULL: no object of the cluster */
    const kl_value *now;       /* name -> value, as last read; NULL: not read yet */
} source;

struct cli_params {
    source *v;
    size_t n;
    kl_mutex mu;      /* guards `now` of each source */
    uint64_t changes; /* under mu, too */
};

void cli_params_options(cli_params_words *w, cli_option *out)
{
    const cli_option options[CLI_PARAMS_OPTIONS] = {
        {"--param", "NAME=VALUE",
            "set a param of the scripts, or of one as CONTROLLER.NAME=VALUE (may be repeated)", CLI_LIST,
            &w->texts},
        {"--params", "FILE|configmap/NS/NAME|secret/NS/NAME",
            "params from a YAML file, a ConfigMap or a Secret, which are watched (may be repeated)", CLI_LIST,
            &w->from},
        {"--param-env", "NAME=VARIABLE", "a param from an environment variable (may be repeated)", CLI_LIST,
            &w->env},
    };
    memcpy(out, options, sizeof options);
}

void cli_params_words_free(cli_params_words *w)
{
    kl_free(w->texts.v);
    kl_free(w->env.v);
    kl_free(w->from.v);
}

static kl_status add_single(cli_params *p, const char *word, const char *option, bool env, kl_err *err)
{
    const char *eq = strchr(word, '=');
    if (!eq || eq == word || (env && !eq[1]))
        return kl_fail(
            err, KL_EINVAL, "%s %s: write %s NAME=%s", option, word, option, env ? "VARIABLE" : "VALUE");
    p->v[p->n++] = (source){.word = word,
        .option = option,
        .name = kl_strndup(word, (size_t)(eq - word)),
        .text = eq + 1,
        .env = env};
    return KL_OK;
}

static kl_status add_from(cli_params *p, const char *word, kl_err *err)
{
    source *s = &p->v[p->n++];
    char *rest = NULL;
    *s = (source){.word = word, .option = "--params"};
    bool slip = cli_watched_meant(word) && (!cli_watched_read(word, &s->watched, &rest) || rest);
    kl_free(rest);
    return slip
        ? kl_fail(err, KL_EINVAL,
            "--params %s: write configmap/NAMESPACE/NAME, secret/NAMESPACE/NAME or the path of a YAML file",
            word)
        : KL_OK;
}

kl_status cli_params_new(const cli_params_words *w, cli_params **out, kl_err *err)
{
    kl_status st = KL_OK;
    cli_params *p = *out = kl_new(cli_params);
    kl_mutex_init(&p->mu);
    p->v = kl_new_array(source, w->from.n + w->env.n + w->texts.n);
    for (size_t i = 0; i < w->from.n && !st; i++)
        st = add_from(p, w->from.v[i], err);
    for (size_t i = 0; i < w->env.n && !st; i++)
        st = add_single(p, w->env.v[i], "--param-env", true, err);
    for (size_t i = 0; i < w->texts.n && !st; i++)
        st = add_single(p, w->texts.v[i], "--param", false, err);
    return st;
}

void cli_params_free(cli_params *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->n; i++) {
        kl_free(p->v[i].name);
        kl_value_unref(p->v[i].now);
        cli_watched_fini(&p->v[i].watched);
    }
    kl_free(p->v);
    kl_mutex_fini(&p->mu);
    kl_free(p);
}

bool cli_params_in_cluster(const cli_params *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->v[i].watched.kind)
            return true;
    return false;
}

kl_status cli_params_watch(cli_params *p, kl_informers *f, kl_err *err)
{
    kl_status st = KL_OK;
    for (size_t i = 0; i < p->n && !st; i++)
        if (p->v[i].watched.kind)
            st = cli_watched_begin(&p->v[i].watched, f, err);
    return st;
}

void cli_params_unwatch(cli_params *p)
{
    for (size_t i = 0; i < p->n; i++)
        cli_watched_end(&p->v[i].watched);
}

/* The source's name in messages. */
static const char *called(const source *s) { return s->name ? s->option : s->word; }

static bool is_secret(const source *s) { return s->watched.kind && !strcmp(s->watched.word, "secret"); }
static bool is_file(const source *s) { return !s->name && !s->watched.kind; }

size_t cli_params_files(const cli_params *p, const char **out)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++)
        if (is_file(&p->v[i])) {
            if (out)
                out[n] = p->v[i].word;
            n++;
        }
    return n;
}

/* --- reading ------------------------------------------------------------------------------ */

static kl_status read_file(const source *s, const kl_value **out, kl_err *err)
{
    kl_buf text = KL_BUF_INIT;
    kl_status st = kl_file_read(s->word, "params", &text, err);
    if (!st)
        st = kl_yaml_decode(s->word, kl_buf_str(&text), text.len, out, err);
    kl_buf_fini(&text);
    if (!st && kl_value_type(*out) != KL_OBJECT) {
        st = kl_fail(err, KL_EINVAL, "%s: params are names and values, such as \"region: eu\"; this is %s %s",
            s->word, kl_value_type(*out) == KL_ARRAY ? "an" : "a", kl_value_type_name(*out));
        kl_value_unref(*out);
        *out = NULL;
    }
    return st;
}

static kl_status put_decoded(
    const source *s, kl_builder *b, const char *key, const kl_value *text, kl_err *err)
{
    kl_buf bytes = KL_BUF_INIT;
    kl_status st = kl_base64_decode(kl_value_str(text), kl_value_len(text), &bytes, err);
    if (st)
        st = kl_err_prefix(err, "%s: %s", s->word, key);
    else if (!kl_utf8_valid(kl_buf_str(&bytes), bytes.len) || memchr(kl_buf_str(&bytes), 0, bytes.len))
        st = kl_fail(err, KL_EINVAL, "%s: %s is not text: it has to be UTF-8, without NUL", s->word, key);
    else {
        kl_build_key(b, key);
        kl_build_strn(b, kl_buf_str(&bytes), bytes.len);
    }
    kl_buf_fini(&bytes);
    return st;
}

static kl_status read_object(const source *s, const kl_value **out, kl_err *err)
{
    const kl_value *o = NULL, *data;
    kl_status st = cli_watched_get(&s->watched, &o, err);
    if (st)
        return st;
    data = kl_value_get(o, "data");
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    for (size_t i = 0; i < kl_value_len(data) && !st; i++) {
        const char *key;
        const kl_value *text = kl_value_member(data, i, &key, NULL);
        if (kl_value_type(text) != KL_STRING)
            st = kl_fail(err, KL_EINVAL, "%s: %s is %s; values of a ConfigMap or a Secret must be strings",
                s->word, key, kl_value_type_name(text));
        else if (is_secret(s))
            st = put_decoded(s, b, key, text, err);
        else
            kl_build_kvalue(b, key, text);
    }
    kl_value_unref(o);
    if (st) {
        kl_builder_free(b);
        return st;
    }
    kl_build_end(b);
    *out = kl_builder_done(b);
    return KL_OK;
}

static kl_status read_single(const source *s, const kl_value **out, kl_err *err)
{
    const char *text = s->env ? getenv(s->text) : s->text;
    if (!text)
        return kl_fail(
            err, KL_EINVAL, "--param-env %s: there is no environment variable %s", s->word, s->text);
    if (!kl_utf8_valid(text, strlen(text)))
        return kl_fail(err, KL_EINVAL, "%s %s: the value is not UTF-8", s->option, s->name);
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, s->name, text);
    kl_build_end(b);
    *out = kl_builder_done(b);
    return KL_OK;
}

kl_status cli_params_read(cli_params *p, bool local, kl_err *err)
{
    kl_status st = KL_OK;
    for (size_t i = 0; i < p->n && !st; i++) {
        source *s = &p->v[i];
        const kl_value *now = NULL;
        if (s->watched.kind && local)
            continue;
        st = s->watched.kind ? read_object(s, &now, err)
            : s->name        ? read_single(s, &now, err)
                             : read_file(s, &now, err);
        if (st)
            continue;
        kl_lock(&p->mu);
        p->changes += !kl_value_equal(s->now, now);
        kl_value_unref(s->now);
        s->now = now;
        kl_unlock(&p->mu);
    }
    return st;
}

uint64_t cli_params_changes(cli_params *p)
{
    kl_lock(&p->mu);
    uint64_t n = p->changes;
    kl_unlock(&p->mu);
    return n;
}

kl_status cli_params_set(cli_params *p, kl_program *program, bool all, kl_err *err)
{
    kl_status st = KL_OK;
    kl_lock(&p->mu);
    for (size_t i = 0; i < p->n && !st; i++) {
        const source *s = &p->v[i];
        st = kl_program_set_params(program, s->now,
            is_file(s)         ? KL_PARAMS_VALUES
                : is_secret(s) ? KL_PARAMS_HIDDEN
                               : KL_PARAMS_TEXTS,
            err);
        if (st)
            (void)kl_err_prefix(err, "%s", called(s));
    }
    kl_unlock(&p->mu);
    return st || !all ? st : kl_program_params_there(program, err);
}

kl_status cli_params_known(const cli_params *p, kl_program *const *programs, size_t n, kl_err *err)
{
    for (size_t i = 0; i < p->n; i++) {
        char *near = NULL;
        const char *unknown = kl_programs_unknown_param(programs, n, p->v[i].now, &near);
        /* a bare y, n, yes, no, on or off is a boolean of YAML, also as a key */
        bool bare = unknown && is_file(&p->v[i]) && (!strcmp(unknown, "true") || !strcmp(unknown, "false"));
        if (unknown)
            (void)kl_fail(err, KL_EINVAL, "%s: no controller here has a param %.200s%s%s", called(&p->v[i]),
                unknown, near,
                bare ? "; YAML reads a name such as n, y or on as this: put it in quotes" : "");
        kl_free(near);
        if (unknown)
            return KL_EINVAL;
    }
    return KL_OK;
}
