/* convert.c - the conversions that one call needs: known results, noted objects, and calls of webhooks for
 * these. */
#include "custom/convert.h"

#include <string.h>

#include "base/mem.h"
#include "custom/review.h"
#include "model/object.h"
#include "schema/normalize.h"
#include "schema/status.h"

/* The maximum objects of one call. kube-apiserver has no limit, and sends one at a time where it reads its
 * storage; webhooks must handle lists anyway. */
#define BATCH 500
/* An object that changes faster than it is converted. */
#define CALLS_MAX 200

typedef struct conversion {
    const kl_value *from, *to;
    const kl_value *failure; /* a text that all objects of an answer share; NULL: `to` is the result */
    char *version;
} conversion;

struct kl_conversions {
    conversion *v;
    size_t n, cap, at; /* at: where the next answer is looked for first */
    /* noted objects, all to be converted to `version`: */
    const kl_value *wanted[BATCH];
    size_t nwanted;
    const kl_value *webhook;
    char *version, *uid, *url;
    bool asked;
    size_t calls;
};

kl_conversions *kl_conversions_new(void) { return kl_new(kl_conversions); }

static void wanted_fini(kl_conversions *c)
{
    for (size_t i = 0; i < c->nwanted; i++)
        kl_value_unref(c->wanted[i]);
    kl_value_unref(c->webhook);
    kl_free(c->version);
    kl_free(c->uid);
    kl_free(c->url);
    c->nwanted = 0;
    c->webhook = NULL;
    c->version = c->uid = c->url = NULL;
    c->asked = false;
}

void kl_conversions_forget(kl_conversions *c)
{
    for (size_t i = 0; i < c->n; i++) {
        kl_value_unref(c->v[i].from);
        kl_value_unref(c->v[i].to);
        kl_free(c->v[i].version);
        kl_value_unref(c->v[i].failure);
    }
    c->n = c->at = c->calls = 0;
}

void kl_conversions_free(kl_conversions *c)
{
    if (!c)
        return;
    kl_conversions_forget(c);
    wanted_fini(c);
    kl_free(c->v);
    kl_free(c);
}

void kl_conversions_rewind(kl_conversions *c) { c->at = 0; }

/* The same object, or an equal one, since a restarted write builds it again. A write stops at the first
 * unknown conversion; a list continues, and its objects are new, too. */
static const conversion *find(kl_conversions *c, const char *version, const kl_value *o)
{
    for (int equal = 0; equal < (c->nwanted ? 1 : 2); equal++)
        for (size_t i = 0; i < c->n; i++) {
            size_t k = (c->at + i) % c->n;
            const conversion *one = &c->v[k];
            bool is = equal ? kl_value_equal(one->from, o) : one->from == o;
            if (!is || strcmp(one->version, version))
                continue;
            c->at = k + 1;
            return one;
        }
    return NULL;
}

static void want(kl_conversions *c, const kl_value *webhook, const char *version, const kl_value *o)
{
    bool other = c->version && strcmp(c->version, version);
    for (size_t i = 0; i < c->nwanted && !other; i++)
        other = c->wanted[i] == o;
    if (c->asked || other || c->nwanted == BATCH)
        return; /* the next call converts it */
    if (!c->version) {
        c->version = kl_strdup(version);
        c->webhook = kl_value_ref(webhook);
    }
    c->wanted[c->nwanted++] = kl_value_ref(o);
}

static kl_status get(kl_conversions *c, const kl_value *webhook, const char *api_version, const kl_value *o,
    const kl_value **out, kl_err *err)
{
    const char *kind = kl_object_kind(o), *name = kl_object_name(o), *is = kl_object_api_version(o);
    if (!c)
        return kl__api_fail(err, 500, "", NULL,
            "%s \"%s\" is stored as %s, and its conversion webhook cannot be called here to make it %s",
            kind ? kind : "object", name ? name : "", is ? is : "", api_version);
    const conversion *known = find(c, api_version, o);
    if (known && known->failure)
        return kl__api_fail(err, 500, "", NULL, "%s", kl_value_str(known->failure));
    if (known) {
        *out = kl_value_ref(known->to);
        return KL_OK;
    }
    if (c->calls >= CALLS_MAX)
        return kl__api_fail(err, 500, "", NULL,
            "%s \"%s\" changes faster than its conversion webhook answers", kind ? kind : "object",
            name ? name : "");
    want(c, webhook, api_version, o);
    return kl_fail(err, KL_EAGAIN, "a conversion webhook must be called first");
}

static bool is_of(const kl_value *o, const char *api_version)
{
    const char *is = kl_object_api_version(o);
    return is && !strcmp(is, api_version);
}

kl_status kl_conversions_get(
    kl_conversions *c, const kl__kind *k, const kl_value *o, const kl_value **out, kl_err *err)
{
    char *version = kl__kind_api_version(k);
    const kl_value *converted = NULL;
    kl_status st = KL_OK;
    if (is_of(o, version))
        *out = k->schema ? kl__normalize_custom(k->schema, o) : kl_value_ref(o);
    else
        st = get(c, k->conversion, version, o, &converted, err);
    if (converted && k->schema)
        st = kl__normalize(k->schema, converted, false, NULL, out, err);
    else if (converted)
        *out = kl_value_ref(converted);
    kl_value_unref(converted);
    kl_free(version);
    return st;
}

kl_status kl_conversions_stored(
    kl_conversions *c, const kl__kind *k, const kl_value *o, const kl_value **out, kl_err *err)
{
    char *version = kl_sprintf("%s/%s", k->group, k->storage);
    kl_status st = KL_OK;
    if (is_of(o, version))
        *out = kl_value_ref(o);
    else
        st = get(c, k->conversion, version, o, out, err);
    kl_free(version);
    return st;
}

bool kl_conversions_wait(const kl_conversions *c) { return c && c->nwanted && !c->asked; }

bool kl_conversions_full(const kl_conversions *c) { return c && c->nwanted == BATCH; }

static kl_review review_of(const kl_conversions *c)
{
    return (kl_review){.versions = kl_value_get(c->webhook, "conversionReviewVersions"),
        .uid = c->uid,
        .api_version = c->version,
        .objects = c->wanted,
        .n = c->nwanted};
}

void kl_conversions_call(kl_conversions *c, kl_conversion_call *out)
{
    const kl_value *client = kl_value_get(c->webhook, "clientConfig");
    c->asked = true;
    c->calls++;
    c->uid = kl_webhook_uid();
    c->url = kl_webhook_url(client, KL_CONVERSION_TIMEOUT_S);
    *out = (kl_conversion_call){.url = kl_strdup(c->url),
        .ca = kl_webhook_ca(client),
        .timeout = KL_SECONDS(KL_CONVERSION_TIMEOUT_S)};
    kl_review review = review_of(c);
    kl_review_write(&review, &out->body);
}

void kl_conversion_call_fini(kl_conversion_call *call)
{
    kl_free(call->url);
    kl_free(call->ca);
    kl_buf_fini(&call->body);
}

void kl_conversions_answer(kl_conversions *c, int code, const char *text, size_t n, const char *failure)
{
    const kl_value *converted[BATCH] = {NULL};
    kl_review review = review_of(c);
    char *why = kl_review_read(&review, code, text, n, failure, c->url, converted);
    const kl_value *said = why ? kl_value_of_str(why) : NULL;
    if (c->n + c->nwanted > c->cap) {
        c->cap = (c->n + c->nwanted) * 2;
        c->v = kl_realloc(c->v, c->cap * sizeof *c->v);
    }
    for (size_t i = 0; i < c->nwanted; i++)
        c->v[c->n++] = (conversion){.from = kl_value_ref(c->wanted[i]),
            .to = why ? NULL : converted[i],
            .failure = kl_value_ref(said),
            .version = kl_strdup(c->version)};
    kl_value_unref(said);
    kl_free(why);
    wanted_fini(c);
}
