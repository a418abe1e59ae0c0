/* ownership.c - merges what is applied into an object, takes away what its manager no longer says, and
 * asks whose the rest is.
 *
 * A tree of owned fields is a value as the server writes it: {"f:spec": {"f:replicas": {}},
 * "k:{\"name\":\"a\"}": {...}, "v:\"x\"": {}}. */
#include "model/ownership.h"

#include <string.h>

#include "base/mem.h"
#include "model/mergelist.h"
#include "model/object.h"

typedef struct job {
    const kl_application *a;
    const kl_value **others; /* trees of the other managers, borrowed */
    const char **names;
    size_t n_others;
    kl_buf path, conflicts;
    size_t n_conflicts;
} job;

/* --- trees of owned fields ---------------------------------------------------------------- */

static char *field_step(const char *key) { return kl_sprintf("f:%s", key); }

/* "k:{"name":"a"}" of an element, keys in the order of bytes, as the server writes them; "v:..." in sets.
 * Caller frees. */
static char *element_step(const kl_merge_keys *k, const kl_value *x)
{
    if (k->set) {
        char *json = kl_value_to_json(x), *step = kl_sprintf("v:%s", json);
        kl_free(json);
        return step;
    }
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    for (size_t i = 0; i < KL_MERGE_KEYS_MAX && k->keys[i]; i++) {
        const kl_value *v = kl_value_get(x, k->keys[i]);
        if (v)
            kl_build_kvalue(b, k->keys[i], v);
        else if (!strcmp(k->keys[i], "protocol"))
            kl_build_kstr(b, "protocol", "TCP");
    }
    kl_build_end(b);
    const kl_value *keys = kl_builder_done(b);
    char *json = kl_value_to_json(keys), *step = kl_sprintf("k:%s", json);
    kl_free(json);
    kl_value_unref(keys);
    return step;
}

static void build_tree(kl_builder *b, const char *field, const kl_value *v, bool builtin);

static void build_fields(kl_builder *b, const kl_value *o, bool builtin)
{
    for (size_t i = 0; i < kl_value_len(o); i++) {
        const char *key;
        const kl_value *v = kl_value_member(o, i, &key, NULL);
        char *step = field_step(key);
        kl_build_key(b, step);
        build_tree(b, key, v, builtin);
        kl_free(step);
    }
}

/* What a manager owns who applies v. */
static void build_tree(kl_builder *b, const char *field, const kl_value *v, bool builtin)
{
    kl_merge_keys k;
    kl_build_object(b);
    if (kl_value_type(v) == KL_OBJECT) {
        build_fields(b, v, builtin);
    } else if (kl_value_type(v) == KL_ARRAY && kl_merge_keys_of(field, builtin, v, NULL, &k)) {
        for (size_t i = 0; i < kl_value_len(v); i++) {
            char *step = element_step(&k, kl_value_item(v, i));
            kl_build_key(b, step);
            build_tree(b, "", kl_value_item(v, i), builtin);
            kl_free(step);
        }
    }
    kl_build_end(b);
}

/* What says which object it is belongs to nobody. */
static bool is_identity(const char *key)
{
    static const char *const keys[] = {"name", "namespace", "uid", "resourceVersion", "creationTimestamp",
        "generation", "managedFields", NULL};
    for (const char *const *k = keys; *k; k++)
        if (!strcmp(*k, key))
            return true;
    return false;
}

static const kl_value *owned_part(const kl_value *config)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    for (size_t i = 0; i < kl_value_len(config); i++) {
        const char *key, *sub;
        const kl_value *v = kl_value_member(config, i, &key, NULL), *x;
        if (!strcmp(key, "apiVersion") || !strcmp(key, "kind"))
            continue;
        kl_build_key(b, key);
        if (strcmp(key, "metadata")) {
            kl_build_value(b, v);
            continue;
        }
        kl_build_object(b);
        for (size_t n = 0; n < kl_value_len(v); n++)
            if ((x = kl_value_member(v, n, &sub, NULL)) && !is_identity(sub))
                kl_build_kvalue(b, sub, x);
        kl_build_end(b);
    }
    kl_build_end(b);
    return kl_builder_done(b);
}

static bool is_mine(const kl_application *a, const kl_value *entry)
{
    const char *who = kl_value_str_at(entry, "manager", NULL),
               *how = kl_value_str_at(entry, "operation", NULL),
               *sub = kl_value_str_at(entry, "subresource", NULL);
    return who && how && !strcmp(how, "Apply") && a->manager && !strcmp(who, a->manager)
        && !strcmp(sub ? sub : "", a->subresource ? a->subresource : "");
}

/* --- merging ------------------------------------------------------------------------------ */

/* The trees of others at a step below; borrowed. Returns whether anybody has something there. */
static bool others_below(const job *j, const kl_value *const *trees, const char *step, const kl_value **out)
{
    bool any = false;
    for (size_t i = 0; i < j->n_others; i++)
        any |= (out[i] = kl_value_get(trees[i], step)) != NULL;
    return any;
}

static void object_to(job *j, const kl_value *const *trees)
{
    for (size_t i = 0; i < j->n_others; i++)
        if (trees[i]) {
            kl_buf_printf(&j->conflicts, "%sconflict with \"%s\": %s", j->n_conflicts++ ? ", " : "",
                j->names[i], kl_buf_str(&j->path));
            return;
        }
}

static const kl_value *merge(
    job *j, const char *field, const kl_value *base, const kl_value *config, const kl_value *const *trees);

static size_t enter(job *j, const char *fmt, const char *what)
{
    size_t len = j->path.len;
    kl_buf_puts(&j->path, fmt);
    kl_buf_puts(&j->path, what);
    return len;
}

static void leave(job *j, size_t len)
{
    j->path.len = len;
    j->path.data[len] = '\0';
}

static const kl_value *merge_at(job *j, const char *field, const char *step, const char *dot,
    const kl_value *base, const kl_value *config, const kl_value *const *trees)
{
    const kl_value **below = kl_new_array(const kl_value *, j->n_others + 1);
    size_t len = enter(j, dot, *dot == '.' ? field : step + 2);
    (void)others_below(j, trees, step, below);
    const kl_value *v = merge(j, field, base, config, below);
    leave(j, len);
    kl_free(below);
    return v;
}

static const kl_value *merge_objects(
    job *j, const kl_value *base, const kl_value *config, const kl_value *const *trees)
{
    const kl_value *out = kl_value_ref(base);
    for (size_t i = 0; i < kl_value_len(config); i++) {
        const char *key;
        const kl_value *v = kl_value_member(config, i, &key, NULL);
        char *step = field_step(key);
        const kl_value *x = merge_at(j, key, step, ".", kl_value_get(base, key), v, trees),
                       *next = kl_value_with(out, key, x);
        kl_free(step);
        kl_value_unref(x);
        kl_value_unref(out);
        out = next;
    }
    return out;
}

static const kl_value *merge_lists(job *j, const kl_merge_keys *k, const kl_value *base,
    const kl_value *config, const kl_value *const *trees)
{
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    /* what was there keeps its place, what is new comes behind it */
    for (size_t pass = 0; pass < 2; pass++) {
        const kl_value *list = pass ? config : base;
        for (size_t i = 0; i < kl_value_len(list); i++) {
            const kl_value *x = kl_value_item(list, i);
            const kl_value *was = pass ? kl_value_item(base, kl_merge_find(k, base, x)) : x,
                           *now = pass ? x : kl_value_item(config, kl_merge_find(k, config, x));
            if (pass && was)
                continue;
            if (!now) {
                kl_build_value(b, was);
                continue;
            }
            char *step = element_step(k, now);
            const kl_value *v = merge_at(j, "", step, "[", was, now, trees);
            kl_build_value(b, v);
            kl_value_unref(v);
            kl_free(step);
        }
    }
    kl_build_end(b);
    return kl_builder_done(b);
}

static const kl_value *merge(
    job *j, const char *field, const kl_value *base, const kl_value *config, const kl_value *const *trees)
{
    kl_merge_keys k;
    if (kl_value_type(base) == KL_OBJECT && kl_value_type(config) == KL_OBJECT)
        return merge_objects(j, base, config, trees);
    if (kl_value_type(base) == KL_ARRAY && kl_value_type(config) == KL_ARRAY
        && kl_merge_keys_of(field, j->a->builtin, base, config, &k))
        return merge_lists(j, &k, base, config, trees);
    if (base && !kl_value_equal(base, config))
        object_to(j, trees);
    return kl_value_ref(config);
}

/* --- taking away -------------------------------------------------------------------------- */

static const kl_value *prune(job *j, const char *field, const kl_value *now, const kl_value *config,
    const kl_value *mine, const kl_value *const *trees);

/* What stands at a step that the manager owned: kept, changed or (NULL) gone. */
static const kl_value *prune_at(job *j, const char *field, const char *step, const kl_value *now,
    const kl_value *config, const kl_value *mine, const kl_value *const *trees)
{
    const kl_value **below = kl_new_array(const kl_value *, j->n_others + 1);
    bool shared = others_below(j, trees, step, below);
    const kl_value *v = NULL;
    if (config || shared)
        v = prune(j, field, now, config, mine, below);
    kl_free(below);
    return v;
}

static const kl_value *prune_object(
    job *j, const kl_value *now, const kl_value *config, const kl_value *mine, const kl_value *const *trees)
{
    const kl_value *out = kl_value_ref(now);
    for (size_t i = 0; i < kl_value_len(mine); i++) {
        const char *step;
        const kl_value *tree = kl_value_member(mine, i, &step, NULL), *v;
        if (strncmp(step, "f:", 2) || !(v = kl_value_get(now, step + 2)))
            continue;
        const kl_value *x = prune_at(j, step + 2, step, v, kl_value_get(config, step + 2), tree, trees),
                       *next = kl_value_with(out, step + 2, x);
        kl_value_unref(x);
        kl_value_unref(out);
        out = next;
    }
    return out;
}

static const kl_value *prune_list(job *j, const kl_merge_keys *k, const kl_value *now, const kl_value *config,
    const kl_value *mine, const kl_value *const *trees)
{
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (size_t i = 0; i < kl_value_len(now); i++) {
        const kl_value *x = kl_value_item(now, i);
        char *step = element_step(k, x);
        const kl_value *tree = kl_value_get(mine, step);
        const kl_value *v = tree
            ? prune_at(j, "", step, x, kl_value_item(config, kl_merge_find(k, config, x)), tree, trees)
            : kl_value_ref(x);
        if (v)
            kl_build_value(b, v);
        kl_value_unref(v);
        kl_free(step);
    }
    kl_build_end(b);
    return kl_builder_done(b);
}

static const kl_value *prune(job *j, const char *field, const kl_value *now, const kl_value *config,
    const kl_value *mine, const kl_value *const *trees)
{
    kl_merge_keys k;
    if (kl_value_type(now) == KL_OBJECT && kl_value_len(mine))
        return prune_object(j, now, config, mine, trees);
    if (kl_value_type(now) == KL_ARRAY && kl_value_len(mine)
        && kl_merge_keys_of(field, j->a->builtin, now, NULL, &k))
        return prune_list(j, &k, now, config, mine, trees);
    return kl_value_ref(now);
}

/* --- the whole ---------------------------------------------------------------------------- */

static void build_entry(kl_builder *b, const kl_application *a)
{
    const kl_value *part = owned_part(a->config);
    kl_build_object(b);
    kl_build_kstr(b, "manager", a->manager);
    kl_build_kstr(b, "operation", "Apply");
    kl_build_kstr(b, "apiVersion", kl_object_api_version(a->config));
    kl_build_kstr(b, "time", a->time);
    kl_build_kstr(b, "fieldsType", "FieldsV1");
    kl_build_key(b, "fieldsV1");
    build_tree(b, "", part, a->builtin);
    kl_build_kstr(b, "subresource", a->subresource);
    kl_build_end(b);
    kl_value_unref(part);
}

static const kl_value *entry_of(const kl_application *a, const kl_value *old)
{
    kl_application same = *a;
    if (old) /* who applies the same again changes nothing */
        same.time = kl_value_str_at(old, "time", NULL);
    kl_builder *b = kl_builder_new();
    build_entry(b, &same);
    const kl_value *v = kl_builder_done(b);
    if (!old || kl_value_equal(kl_value_get(v, "fieldsV1"), kl_value_get(old, "fieldsV1")))
        return v;
    kl_value_unref(v);
    b = kl_builder_new();
    build_entry(b, a);
    return kl_builder_done(b);
}

static const kl_value *with_entry(const kl_application *a, const kl_value *object, const kl_value *managed)
{
    const kl_value *mine = NULL;
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (size_t i = 0; i < kl_value_len(managed); i++)
        if (is_mine(a, kl_value_item(managed, i))) {
            mine = entry_of(a, kl_value_item(managed, i));
            kl_build_value(b, mine);
        } else {
            kl_build_value(b, kl_value_item(managed, i));
        }
    if (!mine) {
        mine = entry_of(a, NULL);
        kl_build_value(b, mine);
    }
    kl_build_end(b);
    const kl_value *list = kl_builder_done(b),
                   *out = kl_value_with_at(object, list, "metadata", "managedFields", NULL);
    kl_value_unref(list);
    kl_value_unref(mine);
    return out;
}

static void job_init(job *j, const kl_application *a, const kl_value *managed, const kl_value **mine)
{
    *j = (job){.a = a};
    j->others = kl_new_array(const kl_value *, kl_value_len(managed) + 1);
    j->names = kl_new_array(const char *, kl_value_len(managed) + 1);
    *mine = NULL;
    for (size_t i = 0; i < kl_value_len(managed); i++) {
        const kl_value *e = kl_value_item(managed, i), *tree = kl_value_get(e, "fieldsV1");
        if (is_mine(a, e)) {
            *mine = tree;
            continue;
        }
        j->names[j->n_others] = kl_value_str_at(e, "manager", NULL) ? kl_value_str_at(e, "manager", NULL)
                                                                    : "";
        j->others[j->n_others++] = tree;
    }
}

kl_status kl_ownership_apply(const kl_application *a, const kl_value **out, kl_err *err)
{
    const kl_value *managed = kl_value_at(a->base, "metadata", "managedFields", NULL), *mine;
    const kl_value *plain = kl_value_with_at(a->config, NULL, "metadata", "managedFields", NULL);
    kl_status st = KL_OK;
    job j;
    job_init(&j, a, managed, &mine);
    const kl_value *merged = a->base ? merge_objects(&j, a->base, plain, j.others) : kl_value_ref(plain);
    if (j.n_conflicts && !a->force) {
        st = kl_fail(err, KL_ECONFLICT, "Apply failed with %zu conflict%s: %s", j.n_conflicts,
            j.n_conflicts > 1 ? "s" : "", kl_buf_str(&j.conflicts));
    } else {
        const kl_value *left = mine ? prune_object(&j, merged, plain, mine, j.others) : kl_value_ref(merged);
        *out = managed || !a->base ? with_entry(a, left, managed) : kl_value_ref(left);
        kl_value_unref(left);
    }
    kl_value_unref(merged);
    kl_value_unref(plain);
    kl_buf_fini(&j.path);
    kl_buf_fini(&j.conflicts);
    kl_free(j.others);
    kl_free(j.names);
    return st;
}
