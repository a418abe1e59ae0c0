/* hunt.c - runs seeded hostile programs, many a second, and says which of them hurt the process, somebody
 * else or the machine.
 *
 *   hunter [--seed S] [--programs N] [--batch N] [--generator FILE] [--keep DIR] [FILE.lua...]
 *                runs programs S, S+1, ...; or these files
 *   hunter --print --seed S
 *                prints the text of a program
 *   --staged N   of those that can, one in N runs on the stage, beside threads; 32 without it
 *   --verbose    says of each whether it loaded
 *   --overflow   an int overflows while the second program runs, for UBSan to find
 *   --stale      somebody reads a text that a Lua state has collected while it runs, for ASan to find
 *   --files      modules come from files and not from a ConfigMap: who requires one touches a file
 *
 * The parent forks a child for each batch. In it one thread runs the programs behind a filter of system
 * calls, beside a controller that means well. When a child dies, or does not get on, the page that both
 * share says which program it was; that one is run alone, made smaller line by line as long as it does the
 * same, and shown with its seed. A batch that fails in other ways (a leak) is halved until one program is
 * left. Exit status 1 when there was one. SIGTERM and ^C end the hunt after the batch. */
#include "hunt.h"

#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <limits.h>
#include <lualib.h>
#include <malloc.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/sync.h"
#include "base/watchdog.h"
#include "schema/known.h"
#include "script/isolate.h"
#include "state/budget.h"

/* To begin and to look for leaks takes as long as a hundred programs. */
#define BATCH 2000
#define STAGED 32
/* A child that shows no new phase for so long hangs. */
#define STUCK KL_SECONDS(60)
#define LOOK KL_SECONDS(1)  /* between two looks at that */
#define SHOWS KL_SECONDS(5) /* to write where it hangs */
/* What may be left of a program when it is gone; twice in a row, since some of it goes with the next one. */
#define LEFT_MOST ((size_t)48 << 20)
#define LOOK_MAX KL_MILLISECONDS(1) /* of the watchdog; else a budget of that is one of 50 */
#define WARM 16                     /* programs, before memory counts */
#define STATUS_WRONG 3
#define STATUS_SANITIZER 23
#define FAILURES_MAX 20
#define SHRINK_MAX KL_SECONDS(40)

hunt_page *the_page;

typedef struct job { /* what a child does */
    uint64_t seed, n;
    const char *text; /* in place of the generator's */
    size_t len;
    bool quiet;
} job;

typedef struct options {
    uint64_t seed, n, batch, staged;
    const char *generator, *keep;
    char **files;
    bool print, verbose, from_files, overflow, stale;
} options;

/* made before the first child: the function that makes programs, and below it the modules that they may
 * require */
static lua_State *the_generator;
static options the_options = {
    .seed = 1, .n = 1000, .batch = BATCH, .staged = STAGED, .generator = "spec/hunt/generate.lua"};

/* --- what everybody calls ----------------------------------------------------------------- */

/* Since the phase before this one, by the clock of this thread. */
static void add_up(const char *phase)
{
    static _Thread_local kl_time last;
    kl_time now = hunt_cpu();
    hunt_spent *s = the_page->spent;
    while (s < &the_page->spent[HUNT_PHASES - 1] && *s->phase && strcmp(s->phase, phase))
        s++;
    snprintf(s->phase, sizeof s->phase, "%s", phase);
    s->cpu += now > last ? (double)(now - last) / 1e9 : 0;
    last = now;
}

void hunt_phase(const char *phase)
{
    if (*the_page->phase)
        add_up(the_page->phase);
    snprintf(the_page->phase, sizeof the_page->phase, "%s", phase);
    atomic_fetch_add(&the_page->steps, 1);
}

static void show_stack(void)
{
    void *at[64];
    backtrace_symbols_fd(at, backtrace(at, 64), STDERR_FILENO);
}

void hunt_wrong(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(the_page->wrong, sizeof the_page->wrong, fmt, ap);
    va_end(ap);
    show_stack();
    _exit(STATUS_WRONG);
}

kl_time hunt_cpu(void) { return kl_clock_thread_cpu(); }

int hunt_bucket(kl_time t)
{
    int n = t < 1000 ? 0 : (int)(log2((double)t / 1000) * 10);
    return n < HUNT_BUCKETS ? n : HUNT_BUCKETS - 1;
}

static double bucket_ms(int n) { return exp2((n + 1) / 10.0) / 1000; }

void hunt_took(const char *what, kl_time took, kl_time most)
{
    hunt_slow *s = the_page->slow;
    double seconds = (double)took / 1e9;
    if (took > most)
        hunt_wrong("%s took %.2f s of the processor, beyond its budget", what, seconds);
    if (seconds <= s[HUNT_SLOW_MAX - 1].seconds)
        return;
    int i = HUNT_SLOW_MAX - 1;
    for (; i > 0 && s[i - 1].seconds < seconds; i--)
        s[i] = s[i - 1];
    s[i] = (hunt_slow){.seed = atomic_load(&the_page->seed), .seconds = seconds};
    snprintf(s[i].what, sizeof s[i].what, "%s", what);
}

/* --- the child ---------------------------------------------------------------------------- */

static void crashed(int signo)
{
    snprintf(the_page->wrong, sizeof the_page->wrong, "signal %d (%s)", signo, strsignal(signo));
    show_stack();
    _exit(STATUS_WRONG);
}

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SAYS_MORE 1 /* the sanitizer, of a crash */
#else
#define SAYS_MORE 0
#endif

static void catch_crashes(void)
{
    static const int SIGNALS[] = {SIGABRT, SIGSYS, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    static char stack[1 << 16];
    size_t ours = SAYS_MORE ? 1 : sizeof SIGNALS / sizeof *SIGNALS;
    sigset_t all;
    if (!SAYS_MORE)
        sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
    sigemptyset(&all);
    for (size_t i = 0; i < sizeof SIGNALS / sizeof *SIGNALS; i++)
        sigaddset(&all, SIGNALS[i]);
    for (size_t i = 0; i < ours; i++)
        sigaction(SIGNALS[i],
            &(struct sigaction){.sa_handler = crashed, .sa_flags = SA_ONSTACK | SA_RESETHAND}, NULL);
    sigprocmask(SIG_UNBLOCK, &all, NULL); /* threads of ours block them */
    show_stack();                         /* its library is loaded before the fence is closed */
}

static void open_generator(void)
{
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    if (luaL_dofile(L, the_options.generator)) {
        fprintf(stderr, "hunt: %s\n", lua_tostring(L, -1));
        exit(2);
    }
    lua_settop(L, 2);
    the_generator = L;
}

static const kl_value *modules(void)
{
    lua_State *L = the_generator;
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    for (lua_pushnil(L); lua_next(L, 2); lua_pop(L, 1))
        kl_build_kstr(b, lua_tostring(L, -2), lua_tostring(L, -1));
    kl_build_end(b);
    return kl_builder_done(b);
}

/* kind: of its controller, mostly; NULL: whatever. Borrowed until the next one. */
static const char *generate(uint64_t seed, const char *kind, size_t *len)
{
    lua_State *L = the_generator;
    lua_settop(L, 2);
    lua_pushvalue(L, 1);
    lua_pushinteger(L, (lua_Integer)seed);
    lua_pushstring(L, kind);
    if (lua_pcall(L, 2, 1, 0))
        hunt_wrong("the generator failed: %s", lua_tostring(L, -1));
    return lua_tolstring(L, -1, len);
}

size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));
/* What the parent holds is not a leak of a child. */
void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));

/* Reports are read by the parent, and no file can be opened behind the fence. */
void __sanitizer_set_report_path(const char *path) __attribute__((weak));

/* How many values somebody holds. They lie in an arena, where no sanitizer looks for leaks. */
static size_t live_values(void)
{
    size_t nodes, bytes;
    kl_value_memory(&nodes, &bytes);
    return nodes;
}

static size_t live_bytes(void)
{
    size_t nodes, values;
    kl_value_memory(&nodes, &values);
    return values
        + (__sanitizer_get_current_allocated_bytes ? __sanitizer_get_current_allocated_bytes()
                                                   : mallinfo2().uordblks);
}

static void watch_memory(uint64_t n)
{
    static size_t base, above;
    size_t live = live_bytes();
    if (n <= WARM && live > base)
        base = live;
    above = live > base + LEFT_MOST ? above + 1 : 0;
    if (live > the_page->live_bytes_peak)
        the_page->live_bytes_peak = live;
    if (n > WARM && above > 1)
        hunt_wrong("memory does not come back: %zu KiB live, at first %zu KiB", live >> 10, base >> 10);
}

/* Nobody reads the log. But an isolated process dies of its memory alone, or with its worker. */
static void hear(void *arg, kl_log_level level, const char *message, const char *fields)
{
    (void)arg, (void)level;
    if (!strcmp(message, "an isolated Lua process ended") && !strstr(fields, "exceeded its memory limit")
        && !strstr(fields, "its worker ends"))
        hunt_wrong("%s", fields);
}

/* On a busy machine the watchdog would see late that a budget is spent, and most of the time would go there:
 * what runs programs makes way for all threads that are there by now. */
static void let_others_go_first(void) { (void)setpriority(PRIO_PROCESS, 0, 19); }

static void overflow(void)
{
    volatile int most = INT_MAX;
    most = most + 1;
}

static void stale(void)
{
    lua_State *L = luaL_newstate();
    const volatile char *text = lua_pushstring(L, "a text that nobody anchors");
    lua_pop(L, 1);
    lua_gc(L, LUA_GCCOLLECT);
    if (*text == 'a')
        lua_gc(L, LUA_GCCOLLECT);
    lua_close(L);
}

static void hunter(void *arg)
{
    const job *j = arg;
    atomic_store(&the_page->thread, (int)syscall(SYS_gettid));
    *the_page->phase = '\0';
    hunt_phase("begin");
    catch_crashes();
    lkl_budget_choose(LKL_BUDGET_SIGNALS);
    kl_watchdog_set_look_max(LOOK_MAX);
    (void)kl__schema_known("", "v1", "ConfigMap"); /* read once, and kept by the process */
    size_t before = live_values();
    const kl_value *beside_it = modules();
    world *w = world_new();
    neighbour *beside = neighbour_new(w);
    trial t = {.world = w,
        .stage = stage_new(w),
        .outside = outside_new(),
        .generate = generate,
        .staged = the_options.staged,
        .modules = the_options.from_files ? NULL : beside_it};
    let_others_go_first();
    fence_close();
    for (uint64_t i = 0; i < j->n; i++) {
        size_t len = j->len;
        atomic_store(&the_page->seed, j->seed + i);
        hunt_phase("generate");
        if (the_options.overflow && i == 1)
            overflow();
        if (the_options.stale && i == 1)
            stale();
        const char *text = j->text;
        char *made = NULL; /* a successor is generated while it is there */
        if (!text) {
            text = generate(j->seed + i, NULL, &len);
            text = made = kl_strndup(text, len);
        }
        the_page->loaded += trial_run(&t, j->seed + i, text, len);
        kl_free(made);
        the_page->programs++;
        if (the_options.verbose)
            printf("%llu %s\n", (unsigned long long)(j->seed + i),
                *the_page->refused ? the_page->refused : "ran");
        watch_memory(i);
    }
    hunt_phase("leave");
    outside_free(t.outside);
    stage_free(t.stage);
    neighbour_free(beside, w);
    world_free(w);
    kl_value_unref(beside_it);
    lua_close(the_generator);
    heap_end();
    size_t left = live_values() - before;
    if (left)
        hunt_wrong("%zu values are left of programs that are gone", left);
}

static int child(job *j, int output)
{
    if (__lsan_enable)
        __lsan_enable();
    dup2(output, STDERR_FILENO);
    if (__sanitizer_set_report_path)
        __sanitizer_set_report_path("stderr");
    mallopt(M_ARENA_MAX, 1); /* one that shrinks reads a file of /proc */
    kl_log_set_level(KL_LOG_INFO);
    kl_log_set_sink(hear, NULL);
    lkl_isolate_offer();
    kl_thread_join(kl_thread_start("hunter", hunter, j));
    atomic_store(&the_page->seed, 0);
    return 0;
}

/* --- the parent --------------------------------------------------------------------------- */

typedef struct outcome {
    bool good, whole; /* whole: no program was under way when it failed */
    char what[1200], phase[32];
    uint64_t seed;
    char *said; /* what the child wrote; caller frees */
} outcome;

static char *contents(int fd)
{
    off_t size = lseek(fd, 0, SEEK_END), most = 12000;
    off_t from = size > most ? 0 : 0, n = size > most ? most : size;
    char *text = kl_zalloc((size_t)n + 1);
    if (pread(fd, text, (size_t)n, from) < 0)
        *text = '\0';
    return text;
}

/* Whether it ended within that time. */
static bool ends(int child, kl_time within)
{
    struct pollfd p = {.fd = child, .events = POLLIN};
    return poll(&p, 1, (int)(within / KL_MILLISECONDS(1))) > 0;
}

/* The child's end, or that it does not get on any more. */
static int wait_for(pid_t pid)
{
    int status = 0, child = (int)syscall(SYS_pidfd_open, pid, 0);
    kl_clock *clock = kl_clock_real();
    uint64_t steps = 0;
    kl_time since = kl_clock_now(clock);
    while (!ends(child, LOOK)) {
        uint64_t now = atomic_load(&the_page->steps);
        if (now != steps) {
            steps = now;
            since = kl_clock_now(clock);
        } else if (kl_clock_now(clock) - since > STUCK) {
            syscall(SYS_tgkill, pid, atomic_load(&the_page->thread), SIGABRT); /* which shows where */
            (void)ends(child, SHOWS);
            kill(pid, SIGKILL);
            snprintf(the_page->wrong, sizeof the_page->wrong, "it hangs");
            break;
        }
    }
    close(child);
    waitpid(pid, &status, 0);
    return status;
}

static void run_child(job *j, outcome *out)
{
    int output = memfd_create("hunt", 0);
    *out = (outcome){0};
    *the_page->wrong = '\0';
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        (void)signal(SIGINT, SIG_IGN);
        exit(child(j, output));
    }
    int status = wait_for(pid);
    out->seed = atomic_load(&the_page->seed);
    snprintf(out->phase, sizeof out->phase, "%s", the_page->phase);
    out->whole = !out->seed;
    out->good = WIFEXITED(status) && !WEXITSTATUS(status) && !*the_page->wrong && !out->seed;
    out->said = contents(output);
    close(output);
    const char *report = strstr(out->said, "ERROR: "), *ub = strstr(out->said, "runtime error: ");
    while (ub && ub > out->said && ub[-1] != '\n') /* where it was stands before it */
        ub--;
    const char *line = report ? report : ub;
    if (*the_page->wrong)
        snprintf(out->what, sizeof out->what, "%s", the_page->wrong);
    else if (line)
        snprintf(out->what, sizeof out->what, "%.*s", (int)strcspn(line, "\n"), line);
    else if (WIFSIGNALED(status))
        snprintf(
            out->what, sizeof out->what, "signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(out->what, sizeof out->what, "exit status %d", WEXITSTATUS(status));
}

/* The same finding, but for numbers in it. */
static bool is_same(const outcome *a, const outcome *b)
{
    const char *x = a->what, *y = b->what;
    if (b->good)
        return false;
    for (int i = 0; i < 24 && *x && *y; i++, x++, y++)
        if (*x != *y && !(strchr("0123456789abcdefx", *x) && strchr("0123456789abcdefx", *y)))
            return false;
    return true;
}

typedef struct lines {
    char **v;
    size_t n;
} lines;

static lines lines_of(char *text)
{
    lines l = {0};
    for (char *at = text, *end; *at; at = end) {
        end = strchr(at, '\n');
        end = end ? end + 1 : at + strlen(at);
        l.v = kl_realloc(l.v, (l.n + 1) * sizeof *l.v);
        l.v[l.n++] = kl_strndup(at, (size_t)(end - at));
    }
    return l;
}

static char *joined(const lines *l, size_t without, size_t n)
{
    kl_buf b = KL_BUF_INIT;
    for (size_t i = 0; i < l->n; i++)
        if (i < without || i >= without + n)
            kl_buf_printf(&b, "%s", l->v[i]);
    char *text = kl_strdup(kl_buf_str(&b));
    kl_buf_fini(&b);
    return text;
}

/* Lines are left out, many and then few, while it goes on to do the same. Takes the text, which has no
 * NUL. */
static char *shrink(char *text, uint64_t seed, const outcome *was)
{
    lines l = lines_of(text);
    kl_time until = kl_clock_now(kl_clock_real()) + SHRINK_MAX;
    for (size_t size = l.n / 2; size > 0; size /= 2)
        for (size_t at = 0; at < l.n && kl_clock_now(kl_clock_real()) < until;) {
            char *less = joined(&l, at, size);
            outcome o;
            run_child(&(job){.seed = seed, .n = 1, .text = less, .len = strlen(less), .quiet = true}, &o);
            kl_free(o.said);
            kl_free(less);
            if (!is_same(was, &o)) {
                at += size;
                continue;
            }
            size_t n = size < l.n - at ? size : l.n - at;
            memmove(&l.v[at], &l.v[at + n], (l.n - at - n) * sizeof *l.v);
            l.n -= n;
        }
    kl_free(text);
    return joined(&l, 0, 0);
}

static void keep(uint64_t seed, const char *text)
{
    if (!the_options.keep)
        return;
    char *path = kl_sprintf("%s/seed-%llu.lua", the_options.keep, (unsigned long long)seed);
    FILE *f = fopen(path, "w");
    if (f) {
        fprintf(f, "%s", text);
        fclose(f);
        printf("hunt: kept in %s\n", path);
    }
    kl_free(path);
}

/* n: programs from there on that it takes to see it again. */
static void report(const outcome *o, uint64_t seed, uint64_t n, const char *name, const char *text)
{
    if (name)
        printf("hunt: %s: %s (%s)\n%s\n", name, o->what, o->phase, o->said);
    else
        printf("hunt: seed %llu: %s (%s)\n%s\n", (unsigned long long)(o->seed ? o->seed : seed), o->what,
            o->phase, o->said);
    if (text)
        printf("--- the program%s\n%s\n", n == 1 ? ", made smaller" : "", text);
    if (!name)
        printf("--- again: hunter --seed %llu --programs %llu --batch %llu\n", (unsigned long long)seed,
            (unsigned long long)n, (unsigned long long)n);
    fflush(stdout);
}

static char *text_of(uint64_t seed)
{
    size_t len;
    const char *text = generate(seed, NULL, &len);
    return kl_strndup(text, len);
}

/* Of a batch that failed: the program under way, made smaller if it fails alone. If not, it takes those of
 * the batch before it, too. */
static void alone(uint64_t first, const outcome *was)
{
    outcome o;
    uint64_t seed = was->seed;
    run_child(&(job){.seed = seed, .n = 1}, &o);
    char *text = text_of(seed);
    if (o.good) {
        printf("hunt: seed %llu fails in its batch and not alone\n", (unsigned long long)seed);
        report(was, first, seed - first + 1, NULL, text);
    } else {
        printf("hunt: seed %llu: %s; it is made smaller now\n", (unsigned long long)seed, o.what);
        text = shrink(text, seed, &o);
        report(&o, seed, 1, NULL, text);
    }
    keep(seed, text);
    kl_free(text);
    kl_free(o.said);
}

/* A batch that only fails as a whole: halves, while one of them does so, too. */
static void halve(uint64_t seed, uint64_t n, outcome *was)
{
    while (n > 1) {
        outcome o;
        run_child(&(job){.seed = seed, .n = n / 2}, &o);
        if (o.good) {
            kl_free(o.said);
            seed += n / 2;
            n -= n / 2;
            run_child(&(job){.seed = seed, .n = n}, &o);
            if (o.good) {
                kl_free(o.said);
                break;
            }
        } else {
            n /= 2;
        }
        kl_free(was->said);
        *was = o;
    }
    printf("hunt: from seed %llu, %llu programs\n", (unsigned long long)seed, (unsigned long long)n);
    char *text = n == 1 ? shrink(text_of(seed), seed, was) : NULL;
    report(was, seed, n, NULL, text);
    if (text)
        keep(seed, text);
    kl_free(text);
}

static volatile sig_atomic_t enough;
static void had_enough(int signo) { enough = signo; }

static int hunt_all(void)
{
    int failures = 0;
    uint64_t end = the_options.seed + the_options.n;
    for (uint64_t seed = the_options.seed; seed < end && failures < FAILURES_MAX && !enough;) {
        uint64_t n = end - seed < the_options.batch ? end - seed : the_options.batch;
        outcome o;
        run_child(&(job){.seed = seed, .n = n}, &o);
        uint64_t next = seed + n;
        failures += !o.good;
        if (!o.good && o.whole) {
            halve(seed, n, &o);
        } else if (!o.good) {
            next = o.seed + 1;
            alone(seed, &o);
        }
        kl_free(o.said);
        seed = next;
        if (seed < end) { /* for who waits */
            printf("hunt: on at seed %llu, failures=%d\n", (unsigned long long)seed, failures);
            fflush(stdout);
        }
    }
    return failures;
}

static char *file_text(const char *path, size_t *len)
{
    kl_buf b = KL_BUF_INIT;
    FILE *f = fopen(path, "r");
    int c;
    if (!f) {
        fprintf(stderr, "hunt: %s: %s\n", path, strerror(errno));
        exit(2);
    }
    while ((c = fgetc(f)) != EOF)
        kl_buf_putc(&b, (char)c);
    fclose(f);
    *len = b.len;
    char *text = kl_strndup(kl_buf_str(&b), b.len);
    kl_buf_fini(&b);
    return text;
}

/* Files, under a few seeds each: these say what the world does meanwhile. */
static int hunt_files(void)
{
    int failures = 0;
    for (char **path = the_options.files; *path; path++) {
        size_t len;
        char *text = file_text(*path, &len);
        outcome o;
        run_child(&(job){.seed = the_options.seed, .n = the_options.n, .text = text, .len = len}, &o);
        if (!o.good) {
            failures++;
            report(&o, o.seed, 1, *path, NULL);
        }
        kl_free(o.said);
        kl_free(text);
    }
    return failures;
}

static double percentile(double part)
{
    uint64_t all = 0, seen = 0;
    for (int i = 0; i < HUNT_BUCKETS; i++)
        all += the_page->latency[i];
    for (int i = 0; i < HUNT_BUCKETS; i++)
        if ((double)(seen += the_page->latency[i]) >= part * (double)all)
            return bucket_ms(i);
    return 0;
}

static void sum_up(int failures, double seconds)
{
    const hunt_page *p = the_page;
    printf("programs=%llu loaded=%llu replayed=%llu turns=%llu attached=%llu shadowed=%llu bodies=%llu "
           "calls=%llu "
           "writes=%llu web=%llu isolated=%llu succeeded=%llu reviews=%llu errors=%llu seconds=%.1f "
           "rate=%.0f/s peak=%lluKiB\n",
        (unsigned long long)p->programs, (unsigned long long)p->loaded, (unsigned long long)p->replayed,
        (unsigned long long)p->stage_turns, (unsigned long long)p->attached, (unsigned long long)p->shadowed,
        (unsigned long long)p->bodies, (unsigned long long)p->calls, (unsigned long long)p->writes,
        (unsigned long long)p->web, (unsigned long long)p->isolated, (unsigned long long)p->succeeded,
        (unsigned long long)p->reviews, (unsigned long long)p->failed_runs, seconds,
        (double)p->programs / seconds, (unsigned long long)p->live_bytes_peak >> 10);
    printf("neighbour p50=%.2fms p99=%.2fms p99.9=%.2fms max=%.2fms\n", percentile(0.5), percentile(0.99),
        percentile(0.999), percentile(1));
    for (int i = 0; i < HUNT_SLOW_MAX && p->slow[i].seconds > 0; i++)
        printf("slow %s %.3fs seed=%llu\n", p->slow[i].what, p->slow[i].seconds,
            (unsigned long long)p->slow[i].seed);
    printf("spent");
    for (int i = 0; i < HUNT_PHASES && *p->spent[i].phase; i++)
        printf(" %s=%.1fs", p->spent[i].phase, p->spent[i].cpu);
    printf("\nfailures=%d\n", failures);
}

static bool parse(int argc, char **argv, options *o)
{
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        if (!strcmp(argv[i], "--print"))
            o->print = true;
        else if (!strcmp(argv[i], "--files"))
            o->from_files = true;
        else if (!strcmp(argv[i], "--verbose"))
            o->verbose = true;
        else if (!strcmp(argv[i], "--overflow"))
            o->overflow = true;
        else if (!strcmp(argv[i], "--stale"))
            o->stale = true;
        else if (i + 1 == argc)
            return false;
        else if (!strcmp(argv[i], "--seed"))
            o->seed = strtoull(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--programs"))
            o->n = strtoull(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--batch"))
            o->batch = strtoull(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--staged"))
            o->staged = strtoull(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--generator"))
            o->generator = argv[++i];
        else if (!strcmp(argv[i], "--keep"))
            o->keep = argv[++i];
        else
            return false;
    }
    o->files = argv + i;
    return o->seed && o->n && o->batch && o->staged;
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], LKL_ISOLATE_WORD)) {
        kl_watchdog_set_look_max(LOOK_MAX);
        return lkl_isolate_child();
    }
    if (!parse(argc, argv, &the_options)) {
        fprintf(stderr,
            "usage: hunter [--seed S] [--programs N] [--batch N] [--staged N] [--generator FILE] [--keep "
            "DIR] "
            "[--print] [--verbose] [--overflow] [--stale] [--files] [FILE.lua...]\n");
        return 2;
    }
    the_page = mmap(NULL, sizeof *the_page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (the_page == MAP_FAILED)
        return 2;
    /* the C library reads a file when it first tells the time, or looks whether it changed */
    setenv("TZ", "UTC0", 1);
    tzset();
    if (__lsan_disable)
        __lsan_disable();
    open_generator();
    if (the_options.print) {
        printf("%s", text_of(the_options.seed));
        return 0;
    }
    (void)signal(SIGTERM, had_enough);
    (void)signal(SIGINT, had_enough);
    kl_time began = kl_clock_now(kl_clock_real());
    int failures = *the_options.files ? hunt_files() : hunt_all();
    sum_up(failures, (double)(kl_clock_now(kl_clock_real()) - began) / 1e9);
    fflush(stdout);
    _exit(failures > 0); /* children are looked at for leaks, this process is not */
}
