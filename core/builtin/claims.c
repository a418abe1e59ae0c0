/* claims.c - PersistentVolumeClaims. */
#include "check/forms.h"
#include "builtin/kinds.h"
#include "builtin/pod.h"
#include "builtin/storage.h"

#include <string.h>

#include "base/mem.h"
#include "model/quantity.h"
#include "schema/edit.h"

static const char modes[] = "ReadOnlyMany ReadWriteMany ReadWriteOnce ReadWriteOncePod";

void kl__check_access_modes(kl__causes *c, const kl_value *spec, const kl__place *up)
{
    const kl_value *list = kl_value_get(spec, "accessModes");
    const kl__place *at = KL_IN(up, "accessModes");
    bool once = false, other = false;
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const char *mode = kl__item_text(list, i);
        bool known = kl__one_of(mode, modes);
        if (!known)
            kl__say_unsupported(c, at, kl_value_item(list, i), modes);
        else if (!strcmp(mode, "ReadWriteOncePod"))
            once = true;
        else
            other = true;
    }
    if (once && other)
        kl__say_forbidden(c, at, "may not use ReadWriteOncePod with other access modes");
}

/* A present size must be positive. */
void kl__check_size(kl__causes *c, const kl_value *size, const kl__place *at)
{
    kl_quantity *q = NULL;
    const char *text = kl_value_str(size);
    if (text && !kl_quantity_parse(text, &q, NULL) && kl_quantity_sign(q) <= 0)
        kl__say_invalid(c, at, size, "must be greater than zero");
    kl_quantity_free(q);
}

static void check_source(kl__causes *c, const kl_value *spec, const char *member, const kl__place *up)
{
    const kl_value *s = kl_value_get(spec, member);
    const kl__place *at = KL_IN(up, member);
    if (!s)
        return;
    kl__check_present(c, s, at, "name");
    kl__check_present(c, s, at, "kind");
    if (!*kl__text(s, "apiGroup") && !kl__is(s, "kind", "PersistentVolumeClaim"))
        kl__say_invalid_text(c, at, kl__text(s, "kind"),
            "must be 'PersistentVolumeClaim' when referencing the default apiGroup");
    kl__check_member(c, s, at, "apiGroup", KL_DNS_SUBDOMAIN);
    kl__check_member(c, s, at, "namespace", KL_DNS_LABEL);
}

void kl__check_claim_spec(kl__causes *c, const kl_value *spec, const kl__place *at)
{
    const kl_value *size = kl_value_at(spec, "resources", "requests", "storage", NULL);
    const kl__place *size_at = KL_KEYED(KL_IN(at, "resources"), "storage", 7);
    if (!kl_value_len(kl_value_get(spec, "accessModes")))
        kl__say_required(c, KL_IN(at, "accessModes"), "at least 1 access mode is required");
    kl__check_selector(c, kl_value_get(spec, "selector"), KL_IN(at, "selector"));
    kl__check_access_modes(c, spec, at);
    if (!size)
        kl__say_required(c, size_at, "");
    else
        kl__check_size(c, size, size_at);
    kl__check_member(c, spec, at, "storageClassName", KL_DNS_SUBDOMAIN);
    kl__check_word(c, spec, at, "volumeMode", false, "Block Filesystem");
    check_source(c, spec, "dataSource", at);
    check_source(c, spec, "dataSourceRef", at);
    kl__check_member(c, spec, at, "volumeAttributesClassName", KL_DNS_SUBDOMAIN);
}

int kl__compare_sizes(const kl_value *a, const kl_value *b)
{
    kl_quantity *x = NULL, *y = NULL;
    const char *s = kl_value_str(a), *t = kl_value_str(b);
    if (kl_quantity_parse(s ? s : "0", &x, NULL) || kl_quantity_parse(t ? t : "0", &y, NULL)) {
        kl_quantity_free(x);
        return 0;
    }
    int order = kl_quantity_cmp(x, y);
    kl_quantity_free(x);
    kl_quantity_free(y);
    return order;
}

/* The old spec with the mutable fields of the new one. */
static const kl_value *allowed(const kl__write *w, const kl_value *old, const kl_value *now)
{
    const kl_value *a = kl_value_ref(old);
    if (!*kl__text(old, "volumeName"))
        KL_EDIT(&a, kl_value_ref(kl_value_get(now, "volumeName")), "volumeName");
    if (!kl_value_get(old, "storageClassName") && kl_value_get(now, "storageClassName"))
        KL_EDIT(&a, kl_value_ref(kl_value_get(now, "storageClassName")), "storageClassName");
    if (kl__is(kl_value_get(w->o, "status"), "phase", "Bound")) {
        KL_EDIT(&a, kl_value_ref(kl_value_at(now, "resources", "requests", "storage", NULL)), "resources",
            "requests", "storage");
        KL_EDIT(
            &a, kl_value_ref(kl_value_get(now, "volumeAttributesClassName")), "volumeAttributesClassName");
    }
    return a;
}

void kl__check_claim(const kl__write *w)
{
    kl__causes *c = w->causes;
    const kl_value *old = kl_value_get(w->old, "spec"), *now = kl_value_get(w->o, "spec");
    const kl__place *at = KL_IN(NULL, "spec");
    if (kl__write_same_spec(w))
        return;
    kl__check_claim_spec(c, now, at);
    if (!w->old)
        return;
    const kl_value *kept = allowed(w, old, now);
    if (!kl_value_equal(kept, now)) {
        kl_buf diff = KL_BUF_INIT;
        kl__show_difference(kept, now, &diff);
        kl__say_forbidden(c, at,
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for "
            "bound claims\n%s",
            kl_buf_str(&diff));
        kl_buf_fini(&diff);
    }
    kl_value_unref(kept);
    const kl_value *size = kl_value_at(now, "resources", "requests", "storage", NULL);
    if (kl__compare_sizes(size, kl_value_at(old, "resources", "requests", "storage", NULL)) < 0
        && kl__compare_sizes(size, kl_value_at(w->old, "status", "capacity", "storage", NULL)) <= 0)
        kl__say_forbidden(c, KL_IN(KL_IN(KL_IN(at, "resources"), "requests"), "storage"),
            "field can not be less than status.capacity");
    if (!kl_value_equal(kl_value_get(old, "volumeMode"), kl_value_get(now, "volumeMode")))
        kl__say_invalid(c, KL_IN(NULL, "volumeMode"), kl_value_get(now, "volumeMode"), "field is immutable");
}
