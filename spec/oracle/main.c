/* main.c - calls our functions with the inputs of the Go libraries, and compares the answers.
 *
 *   oracle DIR|FILE...
 *
 * DIR/TABLE.json holds an array of {"name", "op", "in", "want"} or {"name", "op", "in", "err": true}. Each
 * failure is printed with its name, what was wanted and what we answered; then the tables and ops that
 * nobody here knows yet; the last line is "N passed, N failed". Exits 0 when nothing failed, 1 when
 * something did, 2 when there was nothing to run. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/map.h"
#include "base/mem.h"
#include "oracle.h"

#define TABLES_MAX 64

static struct {
    const char *table;
    const oracle_op *ops;
} registered[TABLES_MAX];
static size_t nregistered;

typedef struct tally {
    size_t passed, failed, other;
    kl_buf unknown; /* lines about what nobody knows */
} tally;

void oracle_register(const char *table, const oracle_op *ops)
{
    if (nregistered == TABLES_MAX) {
        fprintf(stderr, "oracle: more than %d sets of ops; raise TABLES_MAX\n", TABLES_MAX);
        abort();
    }
    registered[nregistered].table = table;
    registered[nregistered++].ops = ops;
}

static bool knows_table(const char *table)
{
    size_t i;

    for (i = 0; i < nregistered; i++)
        if (!strcmp(registered[i].table, table))
            return true;
    return false;
}

static const oracle_op *find_op(const char *table, const char *name)
{
    const oracle_op *op;
    size_t i;

    for (i = 0; i < nregistered; i++)
        if (!strcmp(registered[i].table, table))
            for (op = registered[i].ops; op->name; op++)
                if (!strcmp(op->name, name))
                    return op;
    return NULL;
}

kl_status oracle_str(const kl_value *in, const char *key, const char **out, kl_err *err)
{
    *out = kl_value_str(kl_value_get(in, key));
    return *out ? KL_OK
                : kl_fail(err, ORACLE_BAD_CASE, "this case makes no sense: in.%s must be a string", key);
}

kl_status oracle_int(const kl_value *in, const char *key, int64_t *out, kl_err *err)
{
    const kl_value *v = kl_value_get(in, key);
    const char *s = kl_value_str(v);
    char *end;

    if (kl_value_int(v, out))
        return KL_OK;
    errno = 0;
    if (s && *s && (*out = strtoll(s, &end, 10), !*end && !errno))
        return KL_OK;
    return kl_fail(err, ORACLE_BAD_CASE,
        "this case makes no sense: in.%s must be a 64-bit integer or one in a string", key);
}

void oracle_build_int(kl_builder *b, const char *key, int64_t v)
{
    char text[24];

    snprintf(text, sizeof text, "%lld", (long long)v);
    kl_build_kstr(b, key, text);
}

void oracle_build_bool(kl_builder *b, const char *key, bool v)
{
    kl_build_key(b, key);
    kl_build_bool(b, v);
}

static void complain(
    tally *t, const char *table, const oracle_case *c, const kl_value *got, const char *story)
{
    char *in = kl_value_to_json(c->in), *want = c->want ? kl_value_to_json(c->want) : NULL,
         *have = got ? kl_value_to_json(got) : NULL;

    printf("FAIL %s: %s\n  op   %s\n  in   %s\n  want %s\n  got  %s%s\n", table, c->name, c->op, in,
        want ? want : "an error", have ? have : "error: ", have ? "" : story);
    kl_free(in);
    kl_free(want);
    kl_free(have);
    t->failed++;
}

static void run_case(tally *t, const char *table, const oracle_op *op, const oracle_case *c)
{
    kl_builder *b = kl_builder_new();
    const kl_value *got = NULL;
    kl_err err = KL_ERR_INIT;
    kl_status st;
    bool good;

    kl_build_object(b);
    st = op->run(c, b, &err);
    if (st) {
        kl_builder_free(b);
    } else {
        kl_build_end(b);
        got = kl_builder_done(b);
    }
    if (st || !c->want)
        good = st && !c->want && st != ORACLE_BAD_CASE;
    else
        good = op->same ? op->same(c, got) : kl_value_equal(c->want, got);
    if (st == ORACLE_ON_PURPOSE)
        t->other++;
    else if (good)
        t->passed++;
    else
        complain(t, table, c, got, kl_err_message(&err));
    kl_value_unref(got);
    kl_err_fini(&err);
}

static void malformed(tally *t, const char *file, const char *what)
{
    printf("FAIL %s: %s\n", file, what);
    t->failed++;
}

static void count_unknown(kl_map *ops, const char *op)
{
    kl_map_set(ops, op, (void *)((uintptr_t)kl_map_get(ops, op) + 1));
}

static void name_unknown(tally *t, const char *table, kl_map *ops)
{
    char **names = kl_map_sorted_keys(ops);
    size_t i;

    if (kl_map_len(ops)) {
        kl_buf_printf(&t->unknown, "not known yet: %s:", table);
        for (i = 0; names[i]; i++)
            kl_buf_printf(&t->unknown, " %s (%zu)", names[i], (size_t)(uintptr_t)kl_map_get(ops, names[i]));
        kl_buf_putc(&t->unknown, '\n');
    }
    kl_free(names);
}

static void run_cases(tally *t, const char *file, const char *table, const kl_value *cases)
{
    kl_map *unknown = kl_map_new();
    size_t i;

    for (i = 0; i < kl_value_len(cases); i++) {
        const kl_value *v = kl_value_item(cases, i);
        oracle_case c = {kl_value_str_at(v, "name", NULL), kl_value_str_at(v, "op", NULL),
            kl_value_get(v, "in"), kl_value_get(v, "want")};
        bool fails = kl_value_bool(kl_value_get(v, "err"), false);
        const oracle_op *op;

        if (!c.name || !c.op || !c.in || (c.want != NULL) == fails) {
            char *what = kl_sprintf("case %zu (%s) must have name, op, in, and either want or \"err\": true",
                i + 1, c.name ? c.name : "no name");

            malformed(t, file, what);
            kl_free(what);
            continue;
        }
        op = find_op(table, c.op);
        if (op)
            run_case(t, table, op, &c);
        else
            count_unknown(unknown, c.op);
    }
    name_unknown(t, table, unknown);
    kl_map_free(unknown, NULL);
}

static kl_status read_file(const char *path, kl_buf *out, kl_err *err)
{
    FILE *f = fopen(path, "rb");
    char chunk[1 << 16];
    size_t n;
    bool broken;

    if (!f)
        return kl_fail(err, KL_EIO, "cannot be opened: %s", strerror(errno));
    while ((n = fread(chunk, 1, sizeof chunk, f)) > 0)
        kl_buf_add(out, chunk, n);
    broken = ferror(f) != 0;
    fclose(f);
    return broken ? kl_fail(err, KL_EIO, "cannot be read: %s", strerror(errno)) : kl_buf_status(out);
}

static const char *table_path; /* of the table that runs */
static struct {
    char *path;
    const kl_value *json;
} schemas[4];

kl_status oracle_schemas(const char *file, const kl_value **out, kl_err *err)
{
    const char *slash = strrchr(table_path, '/');
    char *path = kl_sprintf("%.*sschemas/%s", slash ? (int)(slash + 1 - table_path) : 0, table_path, file);
    size_t i = 0;
    kl_buf text = KL_BUF_INIT;
    kl_status st = KL_OK;

    while (schemas[i].path && strcmp(schemas[i].path, path))
        i++;
    if (!schemas[i].path) {
        st = read_file(path, &text, err);
        if (!st)
            st = kl_value_decode(kl_buf_str(&text), text.len, &schemas[i].json, err);
        if (!st)
            schemas[i].path = kl_strdup(path);
    }
    *out = schemas[i].json;
    kl_buf_fini(&text);
    kl_free(path);
    return st;
}

static void schemas_free(void)
{
    for (size_t i = 0; schemas[i].path; i++) {
        kl_value_unref(schemas[i].json);
        kl_free(schemas[i].path);
    }
}

static void run_file(tally *t, const char *path)
{
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    size_t stem = strlen(file), passed = t->passed, failed = t->failed, other = t->other;
    char *table = kl_strndup(file, stem > 5 ? stem - 5 : stem);
    const kl_value *cases = NULL;
    kl_buf text = KL_BUF_INIT;
    kl_err err = KL_ERR_INIT;
    kl_status st = read_file(path, &text, &err);

    table_path = path;
    if (!st)
        st = kl_value_decode(kl_buf_str(&text), text.len, &cases, &err);
    if (st) {
        malformed(t, path, kl_err_message(&err));
    } else if (kl_value_type(cases) != KL_ARRAY) {
        malformed(t, path, "is not an array of cases");
    } else if (!knows_table(table)) {
        kl_buf_printf(&t->unknown, "not known yet: %s: all %zu cases\n", table, kl_value_len(cases));
    } else {
        run_cases(t, path, table, cases);
        printf("%s: %zu passed, %zu failed", table, t->passed - passed, t->failed - failed);
        if (t->other > other)
            printf(", %zu other on purpose", t->other - other);
        putchar('\n');
    }
    kl_value_unref(cases);
    kl_err_fini(&err);
    kl_buf_fini(&text);
    kl_free(table);
}

static bool is_json(const char *name)
{
    size_t n = strlen(name);

    return n > 5 && !strcmp(name + n - 5, ".json");
}

static int wants_json(const struct dirent *e) { return *e->d_name != '.' && is_json(e->d_name); }

/* How many files there were; -1 when `path` is not a directory. */
static int run_directory(tally *t, const char *path)
{
    struct dirent **entry;
    int n = scandir(path, &entry, wants_json, alphasort), i;

    for (i = 0; i < n; i++) {
        char *file = kl_sprintf("%s/%s", path, entry[i]->d_name);

        run_file(t, file);
        kl_free(file);
        free(entry[i]);
    }
    if (n >= 0)
        free(entry);
    return n;
}

int main(int argc, char **argv)
{
    tally t = {0};
    int i, files = 0;

    for (i = 1; i < argc; i++) {
        int n = run_directory(&t, argv[i]);

        if (n < 0 && is_json(argv[i])) {
            run_file(&t, argv[i]);
            n = 1;
        }
        if (n <= 0)
            fprintf(stderr, "oracle: %s: %s\n", argv[i],
                n < 0 ? "no directory, and no file that ends in .json" : "no file in it ends in .json");
        files += n > 0 ? n : 0;
    }
    if (!files) {
        fprintf(stderr,
            "usage: oracle DIR|FILE...   (files are named after their table: quantity.json, "
            "label_selector.json, ...)\n");
        kl_buf_fini(&t.unknown);
        return 2;
    }
    fputs(kl_buf_str(&t.unknown), stdout);
    printf("%zu passed, %zu failed\n", t.passed, t.failed);
    schemas_free();
    kl_buf_fini(&t.unknown);
    return t.failed ? 1 : 0;
}
