/* limits.c - LimitRanger: LimitRanges of a namespace add defaults to pods, and limit pods and claims. */
#include "builtin/plugins.h"

#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "check/check.h"
#include "model/object.h"
#include "model/quantity.h"
#include "schema/edit.h"
#include "schema/status.h"
#include "value/edited.h"

static void each_limit(const kl__admitted *a, void (*fn)(void *to, const kl_value *range), void *to)
{
    a->around->each(a->around->arg, "", "limitranges", a->ns, fn, to);
}

static bool is_type(const kl_value *limit, const char *type) { return kl__is(limit, "type", type); }

/* ------------------------------------------------------------------ what is added */

struct filling {
    const kl_value **pod;
    kl_buf said; /* the annotation */
};

/* Adds members of `from` that `c`.resources.`which` lacks; their names go into `said`. */
static void fill(const kl_value **c, const char *which, const kl_value *from, kl_buf *said)
{
    kl_edited e = {.base = kl_value_at(*c, "resources", which, NULL)};
    kl__sorted members = kl__members(from);
    for (size_t i = 0; i < members.len; i++) {
        if (kl_value_get(e.base, members.v[i].key))
            continue;
        kl_buf_printf(said, "%s%s", said->len ? ", " : "", members.v[i].key);
        kl_edited_put(&e, members.v[i].key, members.v[i].v);
    }
    if (e.len)
        KL_EDIT(c, kl_edited_done(&e), "resources", which);
    kl_free(members.v);
}

static void fill_container(struct filling *f, const kl_value **c, const char *what, const kl_value *limit)
{
    static const struct {
        const char *from, *to, *word;
    } parts[] = {{"default", "limits", "limit"}, {"defaultRequest", "requests", "request"}};
    kl_buf names[2] = {KL_BUF_INIT, KL_BUF_INIT};
    for (size_t i = 0; i < 2; i++)
        fill(c, parts[i].to, kl_value_get(limit, parts[i].from), &names[i]);
    for (size_t i = 2; i-- > 0;) /* requests are named first */
        if (names[i].len)
            kl_buf_printf(&f->said, "%s%s %s for %s %s",
                f->said.len ? "; " : "LimitRanger plugin set: ", kl_buf_str(&names[i]), parts[i].word, what,
                kl__text(*c, "name"));
    kl_buf_fini(&names[0]);
    kl_buf_fini(&names[1]);
}

/* The annotation names all that was added. Longer, the pod is refused for it: what more could be added, of
 * two long lists their product, is not. */
#define SAID_MAX ((size_t)256 << 10)

static void fill_list(struct filling *f, const char *member, const char *what, const kl_value *limit)
{
    const kl_value *list = kl_value_at(*f->pod, "spec", member, NULL);
    if (!kl_value_len(list))
        return;
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *c = kl_value_ref(kl_value_item(list, i));
        if (f->said.len <= SAID_MAX)
            fill_container(f, &c, what, limit);
        kl_build_value(b, c);
        kl_value_unref(c);
    }
    kl_build_end(b);
    KL_EDIT(f->pod, kl_builder_done(b), "spec", member);
}

static void add_range(void *to, const kl_value *range)
{
    struct filling *f = to;
    const kl_value *limits = kl_value_at(range, "spec", "limits", NULL);
    for (size_t i = 0; i < kl_value_len(limits); i++)
        if (is_type(kl_value_item(limits, i), "Container")) {
            fill_list(f, "containers", "container", kl_value_item(limits, i));
            fill_list(f, "initContainers", "init container", kl_value_item(limits, i));
        }
}

void kl__limits_add(const kl__admitted *a, const kl_value **pod)
{
    struct filling f = {pod, KL_BUF_INIT};
    each_limit(a, add_range, &f);
    if (f.said.len)
        KL_EDIT(pod, kl_value_of_str(kl_buf_str(&f.said)), "metadata", "annotations",
            "kubernetes.io/limit-ranger");
    kl_buf_fini(&f.said);
}

/* ------------------------------------------------------------------ what is refused */

/* More complaints about one pod are not looked for: of two long lists there may be their product. */
#define COMPLAINTS_MAX 10000

struct checking {
    const kl__admitted *a;
    const kl_value *o;
    kl_buf found; /* complaints, set apart by commas */
    size_t n;
};

static void KL_PRINTF(2, 3) complain(struct checking *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *text = c->n < COMPLAINTS_MAX ? kl_vsprintf(fmt, ap) : kl_strdup("and more");
    va_end(ap);
    kl_buf_printf(&c->found, "%s%s", c->n++ ? ", " : "", text);
    kl_free(text);
}

static int compare(const char *a, const char *b)
{
    kl_quantity *x = kl__quantity_of(a), *y = kl__quantity_of(b);
    int order = x && y ? kl_quantity_cmp(x, y) : 0;
    kl_quantity_free(x);
    kl_quantity_free(y);
    return order;
}

static double number(const char *text)
{
    kl_quantity *q = kl__quantity_of(text);
    double x = q ? kl_quantity_double(q) : 0;
    kl_quantity_free(q);
    return x;
}

/* Checks request and limit ("": none) against the minimum of one resource. */
static void check_min(struct checking *c, const char *type, const char *resource, const char *min,
    const char *request, const char *limit)
{
    if (!*request)
        complain(c, "minimum %s usage per %s is %s.  No request is specified", resource, type, min);
    else if (compare(request, min) < 0)
        complain(c, "minimum %s usage per %s is %s, but request is %s", resource, type, min, request);
    else if (*limit && compare(limit, min) < 0)
        complain(c, "minimum %s usage per %s is %s, but limit is %s", resource, type, min, limit);
}

static void check_max(struct checking *c, const char *type, const char *resource, const char *max,
    const char *request, const char *limit)
{
    if (!*limit)
        complain(c, "maximum %s usage per %s is %s.  No limit is specified", resource, type, max);
    else if (compare(limit, max) > 0)
        complain(c, "maximum %s usage per %s is %s, but limit is %s", resource, type, max, limit);
    else if (*request && compare(request, max) > 0)
        complain(c, "maximum %s usage per %s is %s, but request is %s", resource, type, max, request);
}

static void check_ratio(struct checking *c, const char *type, const char *resource, const char *max,
    const char *request, const char *limit)
{
    if (number(request) <= 0)
        complain(c, "%s max limit to request ratio per %s is %s, but no request is specified or request is 0",
            resource, type, max);
    else if (number(limit) <= 0)
        complain(c, "%s max limit to request ratio per %s is %s, but no limit is specified or limit is 0",
            resource, type, max);
    else if (number(limit) / number(request) > number(max))
        complain(c, "%s max limit to request ratio per %s is %s, but provided ratio is %f", resource, type,
            max, number(limit) / number(request));
}

static void check_all(
    struct checking *c, const kl_value *limit, const kl_value *requests, const kl_value *limits)
{
    static const struct {
        const char *member;
        void (*check)(struct checking *c, const char *type, const char *resource, const char *bound,
            const char *request, const char *limit);
    } bounds[] = {{"min", check_min}, {"max", check_max}, {"maxLimitRequestRatio", check_ratio}};
    const char *key;
    size_t n;
    for (size_t k = 0; k < 3; k++) {
        const kl_value *bound = kl_value_get(limit, bounds[k].member);
        for (size_t i = 0; i < kl_value_len(bound) && c->n <= COMPLAINTS_MAX; i++) {
            const char *text = kl_value_str(kl_value_member(bound, i, &key, &n));
            if (text)
                bounds[k].check(
                    c, kl__text(limit, "type"), key, text, kl__text(requests, key), kl__text(limits, key));
        }
    }
}

static void check_containers(struct checking *c, const char *member, const kl_value *limit)
{
    const kl_value *list = kl_value_at(c->o, "spec", member, NULL);
    for (size_t i = 0; i < kl_value_len(list) && c->n <= COMPLAINTS_MAX; i++) {
        const kl_value *resources = kl_value_get(kl_value_item(list, i), "resources");
        check_all(c, limit, kl_value_get(resources, "requests"), kl_value_get(resources, "limits"));
    }
}

static void total(kl_map *sums, const kl_value *amounts, bool most)
{
    const char *resource;
    size_t n;
    for (size_t i = 0; i < kl_value_len(amounts); i++) {
        kl_quantity *q = kl__quantity_of(kl_value_str(kl_value_member(amounts, i, &resource, &n)));
        const kl_quantity *had = q ? kl_map_get(sums, resource) : NULL;
        bool less = had && most && kl_quantity_cmp(q, had) <= 0;
        if (q && !less)
            kl_quantity_free(
                kl_map_set(sums, resource, had && !most ? kl_quantity_add(had, q) : kl_quantity_copy(q)));
        kl_quantity_free(q);
    }
}

kl_map *kl__limits_totals(const kl_value *pod, const char *which)
{
    const kl_value *list = kl_value_at(pod, "spec", "containers", NULL),
                   *first = kl_value_at(pod, "spec", "initContainers", NULL);
    kl_map *sums = kl_map_new();
    for (size_t i = 0; i < kl_value_len(list); i++)
        total(sums, kl_value_at(kl_value_item(list, i), "resources", which, NULL), false);
    for (size_t i = 0; i < kl_value_len(first); i++)
        total(sums, kl_value_at(kl_value_item(first, i), "resources", which, NULL), true);
    return sums;
}

static void total_free(void *p) { kl_quantity_free(p); }

void kl__limits_totals_free(kl_map *sums) { kl_map_free(sums, total_free); }

/* {resource: total} of the resources that the limit names. */
static const kl_value *totals(const kl_value *pod, const char *which, const kl_value *limit)
{
    static const char *const members[] = {"min", "max", "maxLimitRequestRatio"};
    kl_builder *b = kl_builder_new();
    kl_map *sums = kl__limits_totals(pod, which);
    const char *key;
    size_t n;
    kl_build_object(b);
    for (size_t k = 0; k < 3; k++) {
        const kl_value *bound = kl_value_get(limit, members[k]);
        for (size_t i = 0; i < kl_value_len(bound); i++) {
            kl_value_member(bound, i, &key, &n);
            bool told = false;
            for (size_t m = 0; m < k && !told; m++)
                told = kl_value_at(limit, members[m], key, NULL) != NULL;
            if (told)
                continue;
            const kl_quantity *sum = kl_map_get(sums, key);
            char *text = sum ? kl_quantity_canonical(sum, NULL, NULL) : NULL;
            if (text)
                kl_build_kstr(b, key, text);
            kl_free(text);
        }
    }
    kl__limits_totals_free(sums);
    kl_build_end(b);
    return kl_builder_done(b);
}

static void check_claim(struct checking *c, const kl_value *limit)
{
    const char *size = kl_value_str_at(c->o, "spec", "resources", "requests", "storage", NULL),
               *min = kl_value_str_at(limit, "min", "storage", NULL),
               *max = kl_value_str_at(limit, "max", "storage", NULL);
    if (min)
        check_min(c, "PersistentVolumeClaim", "storage", min, size ? size : "", "");
    if (max && size && compare(size, max) > 0)
        complain(c, "maximum storage usage per PersistentVolumeClaim is %s, but request is %s", max, size);
}

static void check_range(void *to, const kl_value *range)
{
    struct checking *c = to;
    const kl_value *limits = kl_value_at(range, "spec", "limits", NULL);
    bool pod = kl__kind_among(c->a->kind, "/pods");
    for (size_t i = 0; i < kl_value_len(limits); i++) {
        const kl_value *limit = kl_value_item(limits, i);
        if (!pod && is_type(limit, "PersistentVolumeClaim"))
            check_claim(c, limit);
        if (pod && is_type(limit, "Container")) {
            check_containers(c, "containers", limit);
            check_containers(c, "initContainers", limit);
        }
        if (pod && is_type(limit, "Pod")) {
            const kl_value *requests = totals(c->o, "requests", limit), *most = totals(c->o, "limits", limit);
            check_all(c, limit, requests, most);
            kl_value_unref(requests);
            kl_value_unref(most);
        }
    }
}

kl_status kl__limits_check(const kl__admitted *a, const kl_value *o, kl_err *err)
{
    struct checking c = {.a = a, .o = o, .found = KL_BUF_INIT};
    if (a->old && kl__kind_among(a->kind, "/pods"))
        return KL_OK;
    each_limit(a, check_range, &c);
    kl_status st = KL_OK;
    if (c.n)
        st = kl__fail_forbidden(
            err, a->kind, kl_object_name(o), c.n > 1 ? "[%s]" : "%s", kl_buf_str(&c.found));
    kl_buf_fini(&c.found);
    return st;
}
