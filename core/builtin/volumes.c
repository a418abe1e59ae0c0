/* volumes.c - a pod's volumes: one source each, and what each source needs. Sources of vendors that have left
 * Kubernetes are not checked. */
#include "builtin/pod.h"
#include "builtin/storage.h"

#include <string.h>

#include "base/mem.h"
#include "model/object.h"

static void check_mode(kl__causes *c, const kl_value *o, const kl__place *at, const char *member)
{
    const kl_value *mode = kl_value_get(o, member);
    int64_t n = kl_value_int_at(mode, 0, NULL);
    if (n < 0 || n > 0777)
        kl__say_invalid(
            c, KL_IN(at, member), mode, "must be a number between 0 and 0777 (octal), both inclusive");
}

static void check_file(kl__causes *c, const kl_value *o, const kl__place *at)
{
    const char *path = kl__text(o, "path");
    kl__check_present(c, o, at, "path");
    kl__check_relative_path(c, KL_IN(at, "path"), path);
    if (!strncmp(path, "..", 2) && path[2] && path[2] != '/')
        kl__say_invalid_text(c, KL_IN(at, "path"), path, "must not start with '..'");
}

static void check_items(kl__causes *c, const kl_value *o, const kl__place *up)
{
    const kl_value *list = kl_value_get(o, "items");
    const kl__place *in = KL_IN(up, "items");
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *one = kl_value_item(list, i);
        const kl__place *at = KL_ITEM(in, i);
        kl__check_present(c, one, at, "key");
        check_file(c, one, at);
        check_mode(c, one, at, "mode");
    }
}

static void check_secret(kl__causes *c, const kl_value *v, const kl__place *at)
{
    kl__check_present(c, v, at, "secretName");
    check_mode(c, v, at, "defaultMode");
    check_items(c, v, at);
}

static void check_config(kl__causes *c, const kl_value *v, const kl__place *at)
{
    kl__check_present(c, v, at, "name");
    check_mode(c, v, at, "defaultMode");
    check_items(c, v, at);
}

void kl__check_host_path(kl__causes *c, const kl_value *v, const kl__place *at)
{
    const char *path = kl__text(v, "path");
    const kl_value *type = kl_value_get(v, "type");
    if (!*path) {
        kl__say_required(c, KL_IN(at, "path"), "");
        return;
    }
    kl__check_no_way_up(c, KL_IN(at, "path"), path);
    const char *word = kl__text(v, "type");
    if (*word
        && !kl__one_of(word, "BlockDevice CharDevice Directory DirectoryOrCreate File FileOrCreate Socket"))
        kl__say_unsupported(c, KL_IN(at, "type"), type,
            " BlockDevice CharDevice Directory DirectoryOrCreate File FileOrCreate Socket");
}

static void check_claim(kl__causes *c, const kl_value *v, const kl__place *at)
{
    kl__check_present(c, v, at, "claimName");
}

void kl__check_nfs(kl__causes *c, const kl_value *v, const kl__place *at)
{
    kl__check_present(c, v, at, "server");
    kl__check_present(c, v, at, "path");
    if (*kl__text(v, "path") != '/')
        kl__say_invalid_text(c, KL_IN(at, "path"), kl__text(v, "path"), "must be an absolute path");
}

static void check_csi(kl__causes *c, const kl_value *v, const kl__place *at)
{
    kl__check_present(c, v, at, "driver");
}

static void check_downward(kl__causes *c, const kl_value *v, const kl__place *at)
{
    const kl_value *list = kl_value_get(v, "items");
    check_mode(c, v, at, "defaultMode");
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *one = kl_value_item(list, i);
        check_file(c, one, at); /* kube-apiserver does not name the item */
        if (!kl_value_get(one, "fieldRef") && !kl_value_get(one, "resourceFieldRef"))
            kl__say_required(c, at, "one of fieldRef and resourceFieldRef is required");
        check_mode(c, one, at, "mode");
    }
}

static void check_projected(kl__causes *c, const kl_value *v, const kl__place *at)
{
    static const char *const kinds[] = {
        "secret", "configMap", "downwardAPI", "serviceAccountToken", "clusterTrustBundle", "podCertificate"};
    const kl_value *list = kl_value_get(v, "sources");
    const kl__place *in = KL_IN(at, "sources");
    check_mode(c, v, at, "defaultMode");
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *one = kl_value_item(list, i);
        const kl__place *here = KL_ITEM(in, i);
        int n = 0;
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            const kl_value *source = kl_value_get(one, kinds[k]);
            n += source != NULL;
            if (source && k < 2) {
                kl__check_present(c, source, KL_IN(here, kinds[k]), "name");
                check_items(c, source, KL_IN(here, kinds[k]));
            }
            if (source && k == 3) {
                const kl__place *token = KL_IN(here, kinds[k]);
                const kl_value *seconds = kl_value_get(source, "expirationSeconds");
                if (seconds && kl_value_int_at(seconds, 3600, NULL) < 600)
                    kl__say_invalid(c, KL_IN(token, "expirationSeconds"), seconds,
                        "may not specify a duration less than 10 minutes");
                kl__check_present(c, source, at, "path"); /* kube-apiserver does not name the source */
            }
        }
        if (n > 1)
            kl__say_forbidden(c, here, "may not specify more than 1 volume type per source");
    }
}

static const struct {
    const char *member;
    void (*check)(kl__causes *c, const kl_value *v, const kl__place *at);
} sources[] = {
    {"emptyDir", NULL},
    {"hostPath", kl__check_host_path},
    {"gitRepo", NULL},
    {"gcePersistentDisk", NULL},
    {"awsElasticBlockStore", NULL},
    {"secret", check_secret},
    {"nfs", kl__check_nfs},
    {"iscsi", NULL},
    {"glusterfs", NULL},
    {"persistentVolumeClaim", check_claim},
    {"rbd", NULL},
    {"flexVolume", NULL},
    {"configMap", check_config},
    {"cephfs", NULL},
    {"cinder", NULL},
    {"flocker", NULL},
    {"downwardAPI", check_downward},
    {"fc", NULL},
    {"azureFile", NULL},
    {"vsphereVolume", NULL},
    {"quobyte", NULL},
    {"azureDisk", NULL},
    {"photonPersistentDisk", NULL},
    {"portworxVolume", NULL},
    {"scaleIO", NULL},
    {"storageos", NULL},
    {"projected", check_projected},
    {"csi", check_csi},
    {"ephemeral", NULL},
    {"image", NULL},
};

static void check_source(kl__causes *c, const kl_value *v, const kl__place *at)
{
    int n = 0;
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        const kl_value *source = kl_value_get(v, sources[i].member);
        if (!source)
            continue;
        if (n++)
            kl__say_forbidden(c, KL_IN(at, sources[i].member), "may not specify more than 1 volume type");
        else if (sources[i].check)
            sources[i].check(c, source, KL_IN(at, sources[i].member));
    }
    if (!n)
        kl__say_required(c, at, "must specify a volume type");
}

void kl__check_volumes(kl__pod_look *p, const kl__place *in)
{
    const kl_value *list = kl_value_get(p->spec, "volumes");
    kl__causes *c = p->causes;
    p->volumes = (kl_finder){.key = "name", .empty_is_absent = true};
    p->claimed = (kl_finder){.key = "name"};
    for (size_t i = 0; i < kl_value_len(p->claims); i++)
        kl_finder_add(&p->claimed, kl_value_get(kl_value_item(p->claims, i), "metadata"));
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *v = kl_value_item(list, i);
        const kl__place *at = KL_ITEM(in, i);
        size_t before = c->len;
        check_source(c, v, at);
        kl__check_present(c, v, at, "name");
        kl__check_member(c, v, at, "name", KL_DNS_LABEL);
        if (kl_finder_find(&p->volumes, v) >= 0)
            kl__say_duplicate(c, KL_IN(at, "name"), kl_value_get(v, "name"));
        if (c->len == before)
            kl_finder_add(&p->volumes, v);
    }
}

const kl_value *kl__pod_volume(const kl__pod_look *p, const char *name, bool *found)
{
    long at = kl_finder_find_text(&p->volumes, name);
    *found = at >= 0 || kl_finder_find_text(&p->claimed, name) >= 0;
    return at >= 0 ? p->volumes.v[at] : NULL;
}
