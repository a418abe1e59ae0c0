/* reloads.c - takes new logic again and again while objects change, and says what each part of that left
 * behind.
 *
 *   reloads --kubeconfig FILE NAMESPACE OBJECTS RELOADS
 *
 * OBJECTS ConfigMaps ask something (data.ask), and a script answers (data.answer). RELOADS times the
 * script is taken anew, with PER_RELOAD other questions asked around it. The last generation leaves a mark
 * of its own on every object. What is counted:
 *
 *   part N/PARTS generation=G threads=T fds=F bytes=B values=V     nothing is left to do after so many
 * reloads; B: in use, of malloc; V: of objects end lists=L lost=N unmarked=N double=N errors=N runs=N
 *
 * lost: answers that do not fit their question in the end; double: runs that began while one of the same
 * key was under way. */
#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "script/program.h"
#include "base/map.h"
#include "base/sync.h"
#include "kubelua.h"

#define PER_RELOAD 5
#define PARTS 20
#define AHEAD 32 /* requests of our own that are under way at most */
#define PATIENCE KL_SECONDS(120)

static const char SCRIPT[] =
    "local kube = require 'kubelua'\n"
    "local GENERATION, LAST, INDEXED = %d, %s, %s      -- another text each time\n"
    "return kube.controller {\n"
    "  name = 'answers', resource = 'v1/ConfigMap', workers = 2,\n"
    "  indexes = { ask = INDEXED and function(map) return map('data.ask') end or nil },\n"
    "  reconcile = function(map, ctx)\n"
    "    local ask, mark = map('data.ask'), LAST and 'yes' or map('data.mark')\n"
    "    if not ask or (map('data.answer') == ask and map('data.mark') == mark) then return end\n"
    "    ctx:patch(map, function(m) m.data.answer, m.data.mark = ask, mark end)\n"
    "  end,\n"
    "}\n";

typedef struct world {
    const char *ns;
    int objects;
    kl_client *client; /* of who asks */
    kl_mutex mu;
    kl_cond less;
    int under_way, failed;
    int *asks;       /* the present question of each object */
    kl_map *running; /* the keys that run */
    uint64_t doubles, runs;
    uint32_t dice;
} world;

/* --- requests of our own ------------------------------------------------------------------ */

static void answered(void *arg, kl_status st, int code, const kl_value *body, kl_err *err)
{
    world *w = arg;
    (void)code, (void)body;
    if (st)
        fprintf(stderr, "reloads: a request of our own: %s\n", kl_err_message(err));
    kl_lock(&w->mu);
    w->failed += st != KL_OK;
    w->under_way--;
    kl_cond_broadcast(&w->less);
    kl_unlock(&w->mu);
}

static void until_at_most(world *w, int n)
{
    kl_lock(&w->mu);
    while (w->under_way > n)
        kl_cond_wait(&w->less, &w->mu);
    kl_unlock(&w->mu);
}

static const kl_value *parsed(char *text)
{
    kl_err err = KL_ERR_INIT;
    const kl_value *v = NULL;
    if (kl_value_decode(text, strlen(text), &v, &err))
        abort();
    kl_free(text);
    return v;
}

static void send(world *w, kl_verb verb, int number, char *text)
{
    char name[32];
    kl_op op;
    snprintf(name, sizeof name, "map-%d", number);
    kl_op_init(&op, verb, "v1/ConfigMap");
    op.ns = w->ns;
    op.name = verb == KL_CREATE ? NULL : name;
    op.body = parsed(text);
    until_at_most(w, AHEAD - 1);
    kl_lock(&w->mu);
    w->under_way++;
    kl_unlock(&w->mu);
    kl_client_do(w->client, &op, answered, w);
    kl_value_unref(op.body);
}

static void create_all(world *w)
{
    for (int i = 0; i < w->objects; i++)
        send(w, KL_CREATE, i,
            kl_sprintf("{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": "
                       "\"map-%d\"}, \"data\": {\"ask\": \"0\"}}",
                i));
    until_at_most(w, 0);
}

/* Another question to somebody; those to one object are answered in their order, since none is sent while
 * one is under way. */
static void ask(world *w, int n)
{
    until_at_most(w, 0);
    int first = (int)((w->dice = w->dice * 1103515245u + 12345u) / 65536u % (unsigned)w->objects);
    for (int i = 0; i < n; i++) {
        int number = (first + i) % w->objects;
        send(w, KL_PATCH, number, kl_sprintf("{\"data\": {\"ask\": \"%d\"}}", ++w->asks[number]));
    }
}

/* --- who runs: the script's program behind a door of ours --------------------------------- */

static world *the_world;
static const kl_program_ops *behind;

static void begins(kl_run *run)
{
    world *w = the_world;
    kl_lock(&w->mu);
    w->doubles += kl_map_has(w->running, kl_run_key(run));
    kl_map_set(w->running, kl_run_key(run), w);
    w->runs++;
    kl_unlock(&w->mu);
}

static void ends(kl_run *run)
{
    kl_lock(&the_world->mu);
    kl_map_take(the_world->running, kl_run_key(run));
    kl_unlock(&the_world->mu);
}

static kl_run_state told(kl_run *run, kl_run_state state)
{
    if (state == KL_RUN_DONE)
        ends(run);
    return state;
}

static kl_run_state start(void *state, kl_run *run)
{
    begins(run);
    return told(run, behind->start(state, run));
}

static kl_run_state resume(void *state, kl_run *run) { return told(run, behind->resume(state, run)); }

static void abandon(void *state, kl_run *run)
{
    behind->abandon(state, run);
    ends(run);
}

static void watch_runs(kl_program *p)
{
    static kl_program_ops ours;
    if (!behind) {
        behind = p->ops;
        ours = *p->ops;
        ours.start = start;
        ours.resume = resume;
        ours.abandon = abandon;
    }
    p->ops = &ours;
}

/* --- measuring ---------------------------------------------------------------------------- */

static int entries(const char *path)
{
    DIR *d = opendir(path);
    int n = 0;
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

static bool until(kl_manager *m, bool (*fn)(kl_manager *m, void *arg), void *arg)
{
    kl_time end = kl_clock_now(kl_clock_real()) + PATIENCE;
    while (kl_clock_now(kl_clock_real()) < end) {
        if (fn(m, arg))
            return true;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return false;
}

static bool is_published(kl_manager *m, void *generation)
{
    kl_controller_state *v;
    size_t n = kl_manager_controllers(m, &v);
    bool yes = n == 1 && v[0].generation >= *(int *)generation && !strcmp(v[0].state, "running");
    kl_controller_states_free(v, n);
    return yes;
}

static bool is_idle(kl_manager *m, void *arg)
{
    (void)arg;
    return kl_manager_idle(m);
}

static double metric(kl_manager *m, const char *series)
{
    char *text = kl_manager_metrics(m), *at = strstr(text, series);
    double v = at ? strtod(at + strlen(series), NULL) : -1;
    kl_free(text);
    return v;
}

static void tell_part(int part, int generation)
{
    size_t nodes, values;
    kl_mem_settle();
    kl_value_memory(&nodes, &values);
    printf("part %d/%d generation=%d threads=%d fds=%d bytes=%zu values=%zu\n", part, PARTS, generation,
        entries("/proc/self/task") - 2, entries("/proc/self/fd") - 3, mallinfo2().uordblks, values);
    fflush(stdout);
}

/* --- the course of it --------------------------------------------------------------------- */

static int fail(const char *what, kl_err *err)
{
    fprintf(stderr, "reloads: %s: %s\n", what, kl_err_message(err));
    kl_err_fini(err);
    return 1;
}

static kl_program *load(int generation, bool last, kl_err *err)
{
    kl_program *p = NULL;
    char *text = kl_sprintf(
        SCRIPT, generation, last ? "true" : "false", generation % 10 == 5 ? "true" : "false");
    if (lkl_program_load_text("answers.lua", text, strlen(text), &p, err))
        p = NULL;
    else
        watch_runs(p);
    kl_free(text);
    return p;
}

static int reload(world *w, kl_manager *m, int slot, int generation, bool last)
{
    kl_err err = KL_ERR_INIT;
    kl_program *p = load(generation, last, &err);
    ask(w, PER_RELOAD);
    kl_status st = p ? kl_manager_replace(m, slot, p, &err) : KL_EINVAL;
    if (p)
        kl_program_unref(p);
    if (st)
        return fail("not taken", &err);
    if (generation % 10 == 0) /* the next one comes before this one has taken over */
        return 0;
    if (until(m, is_published, &generation))
        return 0;
    fprintf(stderr, "reloads: generation %d does not take over\n", generation);
    return 1;
}

static int quiet(world *w, kl_manager *m)
{
    until_at_most(w, 0);
    if (w->failed || !until(m, is_idle, NULL)) {
        fprintf(stderr, "reloads: the controller does not come to rest, or %d requests failed\n", w->failed);
        return 1;
    }
    return 0;
}

typedef struct tally {
    world *w;
    int lost, unmarked;
} tally;

/* True when there is nothing to complain of. */
static bool count(kl_manager *m, void *arg)
{
    tally *t = arg;
    world *w = t->w;
    const kl_value *list = NULL;
    kl_op op;
    (void)m;
    kl_op_init(&op, KL_LIST, "v1/ConfigMap");
    op.ns = w->ns;
    t->lost = t->unmarked = w->objects;
    if (kl_client_wait(w->client, &op, &list, NULL))
        return false;
    const kl_value *items = kl_value_get(list, "items");
    for (size_t i = 0; i < kl_value_len(items); i++) {
        const kl_value *map = kl_value_item(items, i);
        const char *name = kl_value_str_at(map, "metadata", "name", NULL),
                   *answer = kl_value_str_at(map, "data", "answer", NULL);
        if (strncmp(name, "map-", 4)) /* kube-root-ca.crt */
            continue;
        t->lost -= answer && atoi(answer) == w->asks[atoi(name + 4)];
        t->unmarked -= kl_value_str_at(map, "data", "mark", NULL) != NULL;
    }
    kl_value_unref(list);
    return !t->lost && !t->unmarked;
}

/* Our last questions may be on their way to the cache while the manager is idle; so what is lost is lost
 * when patience is over. */
static int check(world *w, kl_manager *m)
{
    tally t = {.w = w};
    (void)until(m, count, &t);
    kl_lock(&w->mu); /* the last answers may be on their way back as events */
    unsigned long long doubles = w->doubles, runs = w->runs;
    kl_unlock(&w->mu);
    printf("end lists=%g lost=%d unmarked=%d double=%llu errors=%g runs=%llu\n",
        metric(m, "\nkubelua_informer_lists_total{kind=\"v1/ConfigMap\"} "), t.lost, t.unmarked, doubles,
        metric(m, "\ncontroller_runtime_reconcile_errors_total{controller=\"answers\"} "), runs);
    return 0;
}

static int run_all(world *w, kl_manager *m, int slot, int reloads)
{
    int generation = 1, code = 0;
    if (!until(m, is_published, &generation))
        return 1;
    for (int i = 1; i <= reloads && !code; i++) {
        code = reload(w, m, slot, ++generation, i == reloads);
        if (!code && i % (reloads / PARTS) == 0 && !(code = quiet(w, m)))
            tell_part(i / (reloads / PARTS), generation);
    }
    return code ? code : check(w, m);
}

static kl_client *connect(const char *kubeconfig, kl_err *err)
{
    kl_config_sources sources;
    kl_config_sources_default(&sources);
    sources.explicit_file = kubeconfig;
    kl_client_options options = {.user_agent = "reloads"};
    kl_client *client = NULL;
    if (kl_config_load(&sources, &options.config, err) || kl_client_new(&options, &client, err))
        return NULL;
    return client;
}

int main(int argc, char **argv)
{
    if (argc != 6 || strcmp(argv[1], "--kubeconfig") || atoi(argv[4]) < 1 || atoi(argv[5]) < PARTS) {
        fprintf(stderr,
            "usage: reloads --kubeconfig FILE NAMESPACE OBJECTS RELOADS, of which there are %d at least\n",
            PARTS);
        return 2;
    }
    kl_log_set_level(KL_LOG_WARN);
    kl_log_set_sink(kl_log_file_sink, NULL);
    kl_err err = KL_ERR_INIT;
    world w = {.ns = argv[3], .objects = atoi(argv[4]), .running = kl_map_new(), .dice = 42};
    the_world = &w;
    kl_mutex_init(&w.mu);
    kl_cond_init(&w.less);
    w.asks = kl_new_array(int, w.objects);
    w.client = connect(argv[2], &err);
    kl_client *client = connect(argv[2], &err);
    if (!w.client || !client)
        return fail("no client", &err);
    create_all(&w);
    kl_manager *m = NULL;
    int slot, code = 1;
    kl_program *p = load(1, false, &err);
    kl_status st = p ? kl_manager_new(&(kl_manager_options){.client = client, .ns = w.ns}, &m, &err)
                     : KL_EINVAL;
    if (!st)
        st = kl_manager_add(m, p, &slot, &err);
    if (p)
        kl_program_unref(p);
    if (!st)
        st = kl_manager_start(m, &err);
    code = st ? fail("no manager", &err) : run_all(&w, m, slot, atoi(argv[5]));
    kl_manager_free(m);
    kl_client_free(client);
    kl_client_free(w.client);
    kl_map_free(w.running, NULL);
    kl_mutex_fini(&w.mu);
    kl_free(w.asks);
    return code;
}
