/* webhook_keeper.c - a round: is there a good certificate (else make or read one); does every
 * configuration say what it should (else apply it); show the certificate. What fails is tried again, and
 * said once. */
#include "webhook/webhook_keeper.h"

#include <stdatomic.h>
#include <string.h>

#include "base/fswatch.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/sync.h"
#include "base/x509.h"
#include "model/object.h"
#include "auth/kubeconfig.h"
#include "webhook/conversion.h"
#include "webhook/webhook_certs.h"

/* The time between two looks: others may have renewed the Secret, or changed our objects. */
#define LOOK_EVERY KL_MINUTES(1)
#define FILES_EVERY KL_SECONDS(10)
#define LOOKS_PER_LIFE 10
#define RETRY_MIN KL_SECONDS(1)
#define RETRY_MAX KL_SECONDS(30)
#define CALL_MAX KL_SECONDS(10)
#define TRIES 5 /* attempts against other replicas */
#define MANAGER "kubelua-webhooks"

typedef struct want {
    kl_program *program;
    const kl_webhook_spec *spec;
    bool applied; /* once */
    char *problem;
} want;

typedef struct gone {
    struct gone *next;
    char *name;
    bool mutating, converts;
} gone;

struct kl_webhook_keeper {
    kl_webhook_keeper_env env;
    char *url; /* NULL: by service, or another party tells the API server */
    kl_webhook_service service;
    kl_webhook_service secret; /* ns NULL: none */
    bool configures;
    kl_webhook_names names;
    kl_fswatch *files;
    kl_thread *thread;
    kl_bell bell;
    atomic_bool stopping;
    kl_mutex mu;
    kl_map *wants KL_GUARDED_BY(mu); /* by name */
    gone *dropped KL_GUARDED_BY(mu);
    char *problem KL_GUARDED_BY(mu); /* of the certificate */
    /* used only on the thread: */
    kl_webhook_certs certs; /* our own, or those of the files (ca_key NULL) */
    char *shown, *shown_ca; /* the certificate that the keyring has, and who signed it */
};

/* --- calls -------------------------------------------------------------------------------- */

typedef struct request {
    kl_verb verb;
    const char *kind, *ns, *name;
    const kl_value *body;
} request;

/* out NULL: the answer does not matter. */
static kl_status call(kl_webhook_keeper *k, const request *r, const kl_value **out, kl_err *err)
{
    kl_op op;
    kl_op_init(&op, r->verb, r->kind);
    op.ns = r->ns;
    op.name = r->name;
    op.body = r->body;
    op.field_manager = MANAGER;
    op.force = r->verb == KL_APPLY;
    op.timeout = CALL_MAX;
    const kl_value *answer = NULL;
    kl_status st = kl_client_wait(k->env.client, &op, &answer, err);
    if (out && !st)
        *out = answer;
    else
        kl_value_unref(answer);
    return st;
}

/* --- the certificate ---------------------------------------------------------------------- */

static char *read_file(const char *dir, const char *name, kl_status *st, kl_err *err)
{
    kl_buf b = KL_BUF_INIT;
    char *path = kl_sprintf("%s/%s", dir, name), *text = NULL;
    *st = kl__file_read(path, &b, err);
    if (!*st)
        text = kl_buf_take(&b);
    kl_buf_fini(&b);
    kl_free(path);
    return text;
}

static kl_status from_files(kl_webhook_keeper *k, kl_err *err)
{
    kl_webhook_certs c = {0};
    kl_status st, none;
    c.cert = read_file(k->env.o->cert_dir, "tls.crt", &st, err);
    if (!st)
        c.key = read_file(k->env.o->cert_dir, "tls.key", &st, err);
    if (!st) {
        c.ca = read_file(k->env.o->cert_dir, "ca.crt", &none, NULL);
        /* a half-written pair fails here; writing the other half is news again */
        if ((st = kl_x509_check_pair(c.cert, c.key, err)))
            kl_err_prefix(err, "%s/tls.crt, tls.key", k->env.o->cert_dir);
    }
    kl_webhook_metrics_certificate(k->env.metrics, !st);
    if (st) {
        kl_webhook_certs_fini(&c);
        return st;
    }
    kl_webhook_certs_fini(&k->certs);
    k->certs = c;
    return KL_OK;
}

static kl_status renew(kl_webhook_keeper *k, kl_webhook_certs *c, kl_err *err)
{
    return kl_webhook_certs_renew(c, &k->names, k->env.o->life, kl_clock_wall(k->env.clock), err);
}

static void made(kl_webhook_keeper *k)
{
    kl_info("created a new certificate for webhooks", "name=%s",
        k->names.dns[0]       ? k->names.dns[0]
            : k->names.ips[0] ? k->names.ips[0]
                              : "");
}

static bool good(kl_webhook_keeper *k, const kl_webhook_certs *c)
{
    return kl_webhook_certs_good(c, &k->names, k->env.o->life, kl_clock_wall(k->env.clock));
}

/* The first replica makes the Secret. Others find it, by EEXISTS or a conflict. */
static kl_status from_secret(kl_webhook_keeper *k, kl_err *err)
{
    kl_status st = KL_OK;
    for (int i = 0; i < TRIES; i++) {
        const kl_value *secret = NULL;
        kl_webhook_certs c = {0};
        kl_err_fini(err);
        request r = {KL_GET, "v1/Secret", k->secret.ns, k->secret.name, NULL};
        st = call(k, &r, &secret, err);
        if (st && st != KL_ENOTFOUND)
            return st;
        kl_webhook_certs_read(secret, &c);
        if (st || !good(k, &c)) {
            bool is_new = st;
            kl_err_fini(err);
            st = renew(k, &c, err);
            if (!st) {
                r.verb = is_new ? KL_CREATE : KL_UPDATE;
                r.body = kl_webhook_certs_secret(&c, r.ns, r.name, kl_object_rv(secret));
                st = call(k, &r, NULL, err);
                if (!st)
                    made(k);
                kl_value_unref(r.body);
            }
        }
        kl_value_unref(secret);
        if (!st) {
            kl_webhook_certs_fini(&k->certs);
            k->certs = c;
            return KL_OK;
        }
        kl_webhook_certs_fini(&c);
        if (st != KL_EEXISTS && st != KL_ECONFLICT)
            break;
    }
    return st;
}

static kl_status certificate(kl_webhook_keeper *k, kl_err *err)
{
    if (k->env.o->cert_dir)
        return from_files(k, err);
    kl_status st = KL_OK;
    if (k->secret.ns)
        st = from_secret(k, err);
    else if (!good(k, &k->certs) && !(st = renew(k, &k->certs, err)))
        made(k);
    kl_webhook_metrics_certificate(k->env.metrics, !st);
    return st;
}

static kl_status show(kl_webhook_keeper *k, kl_err *err)
{
    if (k->shown && !strcmp(k->shown, k->certs.cert))
        return KL_OK;
    kl_status st = kl_keyring_set(k->env.ring, k->certs.cert, k->certs.key, err);
    if (st)
        return st;
    if (k->shown)
        kl_info("webhooks use a new certificate", "source=%s",
            k->env.o->cert_dir ? k->env.o->cert_dir
                : k->secret.ns ? k->secret.name
                               : "memory");
    kl_free(k->shown);
    kl_free(k->shown_ca);
    k->shown = kl_strdup(k->certs.cert);
    k->shown_ca = kl_strdup(k->certs.ca ? k->certs.ca : "");
    return KL_OK;
}

/* --- configurations ----------------------------------------------------------------------- */

static kl_status resolve(void *arg, const char *kind, const kl_resource **out, kl_err *err)
{
    return kl_client_resolve_wait(arg, kind, out, err);
}

static const kl_value *where(kl_webhook_keeper *k, const char *name)
{
    kl_builder *b = kl_builder_new();
    char *path = kl_sprintf("/%s", name);
    kl_build_object(b);
    if (k->url) {
        char *url = kl_sprintf("%s%s", k->url, path);
        kl_build_kstr(b, "url", url);
        kl_free(url);
    } else {
        kl_build_key(b, "service");
        kl_build_object(b);
        kl_build_kstr(b, "namespace", k->service.ns);
        kl_build_kstr(b, "name", k->service.name);
        kl_build_kint(b, "port", k->service.port);
        kl_build_kstr(b, "path", path);
        kl_build_end(b);
    }
    kl_build_end(b);
    kl_free(path);
    return kl_builder_done(b);
}

/* The kind of object that tells the address of a webhook. */
static const char *kind_of(bool mutating, bool converts)
{
    return converts ? KL_CRD_KIND : kl_webhook_config_kind(mutating);
}

static kl_status configure(kl_webhook_keeper *k, const kl_webhook_spec *s, kl_err *err)
{
    const kl_value *place = where(k, s->as.name), *body = NULL;
    kl_status st = KL_OK;
    if (s->converts)
        body = kl_conversion_config(s->as.name, place, k->certs.ca);
    else
        st = kl_webhook_config(s, place, k->certs.ca, resolve, k->env.client, &body, err);
    if (!st)
        st = call(k,
            &(request){.verb = KL_APPLY,
                .kind = kind_of(s->mutating, s->converts),
                .name = s->as.name,
                .body = body},
            NULL, err);
    kl_value_unref(place);
    kl_value_unref(body);
    return st;
}

static void say(const char *what, const char *name, char **told, const char *problem)
{
    if (problem && (!*told || strcmp(*told, problem)))
        kl_warn(what, "webhook=%s error=%s", name, kl_log_quoted(problem));
    kl_free(*told);
    *told = kl_strdup(problem);
}

/* Applies each configuration, without the lock during calls. False: one failed. */
static bool configure_all(kl_webhook_keeper *k)
{
    bool all = true;
    kl_lock(&k->mu);
    char **names = kl_map_sorted_keys(k->wants);
    for (size_t i = 0; names[i]; i++)
        names[i] = kl_strdup(names[i]);
    kl_unlock(&k->mu);
    for (size_t i = 0; names[i]; i++) {
        kl_lock(&k->mu);
        want *w = kl_map_get(k->wants, names[i]);
        kl_program *p = w ? kl_program_ref(w->program) : NULL;
        const kl_webhook_spec *s = w ? w->spec : NULL;
        kl_unlock(&k->mu);
        if (s && !atomic_load(&k->stopping)) {
            kl_err err = KL_ERR_INIT;
            kl_status st = configure(k, s, &err);
            kl_lock(&k->mu);
            if ((w = kl_map_get(k->wants, names[i])) && w->spec == s) {
                if (!st && !w->applied)
                    kl_info("the webhook is registered with the API server", "webhook=%s configuration=%s",
                        names[i], kind_of(s->mutating, s->converts));
                w->applied |= !st;
                say("cannot register a webhook with the API server; trying again", names[i], &w->problem,
                    st ? kl_err_message(&err) : NULL);
            }
            kl_unlock(&k->mu);
            all &= !st;
            kl_err_fini(&err);
        }
        kl_program_unref(p);
        kl_free(names[i]);
    }
    kl_free(names);
    return all;
}

/* Removes a configuration. A definition stays, without a conversion. */
static kl_status forget(kl_webhook_keeper *k, const gone *g, kl_err *err)
{
    request r = {.verb = KL_DELETE, .kind = kl_webhook_config_kind(g->mutating), .name = g->name};
    if (!g->converts)
        return call(k, &r, NULL, err);
    r.verb = KL_GET;
    r.kind = KL_CRD_KIND;
    kl_status st = call(k, &r, NULL, err);
    if (st)
        return st;
    r.verb = KL_APPLY;
    r.body = kl_conversion_config(g->name, NULL, NULL);
    st = call(k, &r, NULL, err);
    kl_value_unref(r.body);
    return st;
}

static bool unconfigure(kl_webhook_keeper *k)
{
    for (;;) {
        kl_lock(&k->mu);
        gone *g = k->dropped;
        if (g)
            k->dropped = g->next;
        kl_unlock(&k->mu);
        if (!g)
            return true;
        kl_err err = KL_ERR_INIT;
        kl_status st = k->configures ? forget(k, g, &err) : KL_OK;
        bool again = st && st != KL_ENOTFOUND;
        if (again) {
            kl_warn("cannot delete a webhook's configuration; trying again", "webhook=%s error=%s", g->name,
                kl_log_quoted(kl_err_message(&err)));
            kl_lock(&k->mu);
            g->next = k->dropped;
            k->dropped = g;
            kl_unlock(&k->mu);
        } else {
            kl_free(g->name);
            kl_free(g);
        }
        kl_err_fini(&err);
        if (again)
            return false;
    }
}

/* --- rounds ------------------------------------------------------------------------------- */

static bool round_of(kl_webhook_keeper *k)
{
    kl_err err = KL_ERR_INIT;
    kl_status st = certificate(k, &err);
    /* A first certificate and one of the same CA need not wait. One of another CA waits until the
     * configurations have it. */
    bool trusted = !st && (!k->shown || !strcmp(k->shown_ca, k->certs.ca ? k->certs.ca : ""));
    if (trusted)
        st = show(k, &err);
    bool all = unconfigure(k); /* before a configuration of the same name is wanted again */
    if (!st && k->configures)
        all &= configure_all(k);
    if (!st && !trusted && all)
        st = show(k, &err);
    kl_lock(&k->mu);
    char *told = k->problem;
    k->problem = NULL;
    say("webhooks have no certificate; trying again", "all", &told, st ? kl_err_message(&err) : NULL);
    k->problem = told;
    kl_unlock(&k->mu);
    kl_err_fini(&err);
    all &= !st;
    if (k->env.changed)
        k->env.changed(k->env.changed_arg);
    return all;
}

static void run(void *arg)
{
    kl_webhook_keeper *k = arg;
    kl_time retry = RETRY_MIN, every = k->env.o->cert_dir ? FILES_EVERY : LOOK_EVERY;
    if (k->env.o->life > 0 && k->env.o->life / LOOKS_PER_LIFE < every)
        every = k->env.o->life / LOOKS_PER_LIFE;
    while (!atomic_load(&k->stopping)) {
        unsigned look = kl_bell_look(&k->bell);
        bool all = round_of(k);
        kl_time wait = all ? every : retry;
        retry = all ? RETRY_MIN : retry * 2 < RETRY_MAX ? retry * 2 : RETRY_MAX;
        if (!atomic_load(&k->stopping))
            kl_bell_wait(&k->bell, look, kl_clock_now(kl_clock_real()) + wait);
    }
}

static void ring(void *arg) { kl_bell_ring(&((kl_webhook_keeper *)arg)->bell); }

static char *url_of(const kl_webhook_keeper_env *env)
{
    if (!env->o->url)
        return NULL;
    if (!strcmp(env->o->url, "auto")) {
        const char *port = strrchr(env->address, ':');
        bool any = !strncmp(env->address, "0.0.0.0:", 8) || !strncmp(env->address, "[::]:", 5);
        return any ? kl_sprintf("https://127.0.0.1%s", port) : kl_sprintf("https://%s", env->address);
    }
    size_t n = strlen(env->o->url);
    while (env->o->url[n - 1] == '/')
        n--;
    return kl_strndup(env->o->url, n);
}

static void watch_files(kl_webhook_keeper *k)
{
    kl_err err = KL_ERR_INIT;
    char *cert = kl_sprintf("%s/tls.crt", k->env.o->cert_dir),
         *key = kl_sprintf("%s/tls.key", k->env.o->cert_dir);
    const char *const paths[] = {cert, key};
    if (kl_fswatch_start(paths, 2, NULL, ring, k, &k->files, &err)) {
        kl_warn("the webhooks' certificate cannot be watched and is read every 10 s", "error=%s",
            kl_log_quoted(kl_err_message(&err)));
        kl_err_fini(&err);
    }
    kl_free(cert);
    kl_free(key);
}

kl_webhook_keeper *kl_webhook_keeper_start(const kl_webhook_keeper_env *env)
{
    kl_webhook_keeper *k = kl_new(kl_webhook_keeper);
    const kl_webhook_options *o = env->o;
    k->env = *env;
    k->url = url_of(env);
    k->configures = o->url || o->service;
    if (o->service)
        (void)!kl_webhook_service_parse(o->service, &k->service, NULL); /* checked */
    if (!o->cert_dir && o->secret)
        (void)!kl_webhook_service_parse(o->secret, &k->secret, NULL);
    else if (!o->cert_dir && o->service)
        k->secret = (kl_webhook_service){
            kl_strdup(k->service.ns), kl_sprintf("%s-webhook-tls", k->service.name), 0};
    kl_webhook_names_of(o, k->url, &k->names);
    kl_mutex_init(&k->mu);
    kl_bell_init(&k->bell);
    k->wants = kl_map_new();
    if (o->cert_dir)
        watch_files(k);
    k->problem = kl_strdup("there is no certificate yet");
    k->thread = kl_thread_start("kl-webhooks", run, k);
    return k;
}

static void want_free(void *arg)
{
    want *w = arg;
    kl_program_unref(w->program);
    kl_free(w->problem);
    kl_free(w);
}

void kl_webhook_keeper_stop(kl_webhook_keeper *k)
{
    if (!k)
        return;
    atomic_store(&k->stopping, true);
    kl_bell_ring(&k->bell);
    kl_thread_join(k->thread);
    kl_fswatch_stop(k->files);
    kl_map_free(k->wants, want_free);
    for (gone *g; (g = k->dropped); kl_free(g)) {
        k->dropped = g->next;
        kl_free(g->name);
    }
    kl_mutex_fini(&k->mu);
    kl_webhook_certs_fini(&k->certs);
    kl_webhook_names_fini(&k->names);
    kl_webhook_service_fini(&k->service);
    kl_webhook_service_fini(&k->secret);
    kl_free(k->problem);
    kl_free(k->shown);
    kl_free(k->shown_ca);
    kl_free(k->url);
    kl_free(k);
}

static void drop_locked(kl_webhook_keeper *k, const kl_webhook_spec *s) KL_REQUIRES(k->mu)
{
    gone *g = kl_new(gone);
    *g = (gone){k->dropped, kl_strdup(s->as.name), s->mutating, s->converts};
    k->dropped = g;
}

void kl_webhook_keeper_want(kl_webhook_keeper *k, kl_program *p, size_t i)
{
    const kl_webhook_spec *s = &p->hooks[i];
    want *w = kl_new(want);
    *w = (want){.program = kl_program_ref(p), .spec = s};
    kl_lock(&k->mu);
    want *old = kl_map_set(k->wants, s->as.name, w);
    if (old && (old->spec->mutating != s->mutating || old->spec->converts != s->converts))
        drop_locked(k, old->spec);
    else if (old)
        w->applied = old->applied;
    kl_unlock(&k->mu);
    if (old)
        want_free(old);
    kl_bell_ring(&k->bell);
}

void kl_webhook_keeper_drop(kl_webhook_keeper *k, const char *name)
{
    kl_lock(&k->mu);
    want *w = kl_map_take(k->wants, name);
    if (w)
        drop_locked(k, w->spec);
    kl_unlock(&k->mu);
    if (w)
        want_free(w);
    kl_bell_ring(&k->bell);
}

char *kl_webhook_keeper_why(kl_webhook_keeper *k, const char *name)
{
    kl_lock(&k->mu);
    want *w = kl_map_get(k->wants, name);
    char *why = NULL;
    if (k->problem)
        why = kl_strdup(k->problem);
    else if (w && w->problem)
        why = kl_strdup(w->problem);
    else if (k->configures && w && !w->applied)
        why = kl_strdup("it is being registered with the API server");
    kl_unlock(&k->mu);
    return why;
}
