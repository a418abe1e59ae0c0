/* paths.c - which paths there are, by rule: discovery, and for each kind its collection, its objects, their
 * subresources, and the watches of old. Only what a rule cannot say is a list: options, and kinds whose
 * delete answers with the object. */
#include <ctype.h>
#include <string.h>

#include "base/mem.h"
#include "openapi/operation.h"

#define META "io.k8s.apimachinery.pkg.apis.meta.v1."

/* ------------------------------------------------------------------ media types and options */

#define TEXTS "application/json", "application/yaml"
#define PROTOBUF "application/vnd.kubernetes.protobuf"
#define STREAMS "application/json;stream=watch", PROTOBUF ";stream=watch"

static const char *const CUSTOM[] = {TEXTS, NULL};
static const char *const BUILTIN[] = {TEXTS, PROTOBUF, NULL};
static const char *const STREAMED[] = {TEXTS, PROTOBUF, STREAMS, NULL};
static const char *const LOGS[] = {"text/plain", TEXTS, PROTOBUF, NULL};
static const char *const ANY[] = {"*/*", NULL};
static const char *const JSON[] = {"application/json", NULL};
static const char *const KEYS[] = {"application/jwk-set+json", NULL};
static const char *const PATCHES[] = {"application/json-patch+json", "application/merge-patch+json",
    "application/strategic-merge-patch+json", "application/apply-patch+yaml", NULL};
static const char *const CUSTOM_PATCHES[] = {
    "application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml", NULL};

static const kl__option NAME[] = {{"name", "string", true}, {NULL}};
static const kl__option NAMESPACE[] = {{"namespace", "string", true}, {NULL}};
static const kl__option PRETTY[] = {{"pretty", "string", false}, {NULL}};
static const kl__option WRITES[] = {{"dryRun", "string", false}, {"fieldManager", "string", false},
    {"fieldValidation", "string", false}, {NULL}};
static const kl__option APPLIES[] = {{"dryRun", "string", false}, {"fieldManager", "string", false},
    {"fieldValidation", "string", false}, {"force", "boolean", false}, {NULL}};
static const kl__option DELETES[] = {{"dryRun", "string", false}, {"gracePeriodSeconds", "integer", false},
    {"ignoreStoreReadErrorWithClusterBreakingPotential", "boolean", false},
    {"orphanDependents", "boolean", false}, {"propagationPolicy", "string", false}, {NULL}};
static const kl__option SELECTS[] = {{"continue", "string", false}, {"fieldSelector", "string", false},
    {"labelSelector", "string", false}, {"limit", "integer", false}, {"resourceVersion", "string", false},
    {"resourceVersionMatch", "string", false}, {"sendInitialEvents", "boolean", false},
    {"timeoutSeconds", "integer", false}, {NULL}};
static const kl__option WATCHES[] = {
    {"allowWatchBookmarks", "boolean", false}, {"watch", "boolean", false}, {NULL}};
static const kl__option READS[] = {{"resourceVersion", "string", false}, {NULL}};
static const kl__option BELOW[] = {{"path", "string", true}, {NULL}};

/* Options of the subresources that are no objects. */
static const kl__option LOG[] = {{"container", "string", false}, {"follow", "boolean", false},
    {"insecureSkipTLSVerifyBackend", "boolean", false}, {"limitBytes", "integer", false},
    {"previous", "boolean", false}, {"sinceSeconds", "integer", false}, {"stream", "string", false},
    {"tailLines", "integer", false}, {"timestamps", "boolean", false}, {NULL}};
static const kl__option EXEC[] = {{"command", "string", false}, {"container", "string", false},
    {"stderr", "boolean", false}, {"stdin", "boolean", false}, {"stdout", "boolean", false},
    {"tty", "boolean", false}, {NULL}};
static const kl__option PORTS[] = {{"ports", "integer", false}, {NULL}};
static const kl__option PATH[] = {{"path", "string", false}, {NULL}};

/* Kinds whose delete answers with the object that was deleted. */
static const char RETURNED[] =
    "/persistentvolumeclaims /pods /podtemplates /resourcequotas /serviceaccounts /services "
    "/persistentvolumes resource.k8s.io/deviceclasses resource.k8s.io/resourceclaims "
    "resource.k8s.io/resourceclaimtemplates resource.k8s.io/resourceslices storage.k8s.io/csidrivers "
    "storage.k8s.io/csinodes storage.k8s.io/storageclasses storage.k8s.io/volumeattachments "
    "storage.k8s.io/volumeattributesclasses";

/* ------------------------------------------------------------------ a path of a kind */

/* What the functions below share. */
typedef struct about {
    kl_builder *b;
    kl__dialect dialect;
    kl__definitions *d;
    const kl__kind *kind;
    char *name, *list; /* definitions */
    char *word;        /* "AppsV1" */
} about;

/* What a path leads to; `sub` NULL: no subresource. */
typedef struct where {
    bool watch, everywhere, object, below; /* below: a path below the subresource */
    const kl__sub *sub;
} where;

static kl__path path_of(const about *a, where at)
{
    const kl__kind *k = a->kind;
    char *gv = kl__kind_api_version(k);
    kl__path p = {
        .text = kl_sprintf("/%s/%s/%s%s%s%s%s%s%s", *k->group ? "apis" : "api", gv, at.watch ? "watch/" : "",
            k->namespaced && !at.everywhere ? "namespaces/{namespace}/" : "", k->plural,
            at.object ? "/{name}" : "", at.sub ? "/" : "", at.sub ? at.sub->name : "",
            at.below ? "/{path}" : ""),
        .tag = kl__openapi_tag(k->group, k->version),
    };
    kl_free(gv);
    return p;
}

/* Adds an operation on the kind to a path, with the options that every one there has. The id is the verb,
 * then names, then `suffix`. Takes `says`, the description. */
static kl__operation *add(const about *a, kl__path *p, where at, const char *method, const char *action,
    const char *verb, const char *suffix, char *says)
{
    const kl__kind *k = a->kind;
    kl__operation *o = &p->operations[p->n++];
    *o = (kl__operation){
        .method = method,
        .action = action,
        .id = kl_sprintf("%.*s%s%s%s%s%s", (int)strcspn(verb, " "), verb, a->word,
            strchr(verb, ' ') ? strchr(verb, ' ') + 1 : "",
            k->namespaced && !at.everywhere ? "Namespaced" : "", k->kind, suffix),
        .says = says,
        .group = k->group,
        .version = k->version,
        .kind = k->kind,
        .answers = a->name,
        .consumes = k->custom ? CUSTOM : ANY,
        .produces = k->custom ? CUSTOM : BUILTIN,
    };
    if (at.object)
        kl__operation_takes(o, NAME);
    if (k->namespaced && !at.everywhere)
        kl__operation_takes(o, NAMESPACE);
    return o;
}

static void takes_all(kl__operation *o, const kl__option *options)
{
    kl__operation_takes(o, PRETTY);
    kl__operation_takes(o, options);
}

/* "a Pod", "an Ingress", "Endpoints": as kube-apiserver makes them, from the letters alone. */
static char *one(const char *kind)
{
    size_t n = strlen(kind);
    bool many = n > 1 && kind[n - 1] == 's' && kind[n - 2] != 's';
    return many ? kl_strdup(kind) : kl_sprintf("a%s %s", strchr("AEIOU", *kind) ? "n" : "", kind);
}

/* ------------------------------------------------------------------ collections */

static void list(const about *a, kl__path *p, where at)
{
    bool watches = !a->kind->custom && kl__kind_has_verb(a->kind, "watch");
    kl__operation *o = add(a, p, at, "get", "list", "list", at.everywhere ? "ForAllNamespaces" : "",
        kl_sprintf("list %sobjects of kind %s", watches ? "or watch " : "", a->kind->kind));
    takes_all(o, SELECTS);
    kl__operation_takes(o, WATCHES);
    o->answers = a->list;
    if (!a->kind->custom)
        o->produces = STREAMED;
}

static void create(const about *a, kl__path *p, where at, const char *suffix, char *says)
{
    kl__operation *o = add(a, p, at, "post", "post", "create", suffix, says);
    takes_all(o, WRITES);
    o->sends = a->name;
    o->creates = o->accepts = true;
}

/* Adds delete-collection. For custom kinds it has no body, and the options of a list. */
static void delete_all(const about *a, kl__path *p, where at)
{
    kl__operation *o = add(a, p, at, "delete", "deletecollection", "delete Collection", "",
        kl_sprintf("delete collection of %s", a->kind->kind));
    takes_all(o, SELECTS);
    kl__operation_takes(o, a->kind->custom ? WATCHES : DELETES);
    o->answers = META "Status";
    if (!a->kind->custom) {
        o->sends = META "DeleteOptions";
        o->body_optional = true;
    }
}

static void collections(const about *a)
{
    const kl__kind *k = a->kind;
    where everywhere = {.everywhere = true}, here = {0};
    if (k->namespaced && kl__kind_has_verb(k, "list")) {
        kl__path p = path_of(a, everywhere);
        list(a, &p, everywhere);
        kl__openapi_path(a->b, a->d, a->dialect, &p);
    }
    kl__path p = path_of(a, here);
    if (kl__kind_has_verb(k, "list"))
        list(a, &p, here);
    if (kl__kind_has_verb(k, "create")) {
        char *kind = one(k->kind);
        create(a, &p, here, "", kl_sprintf("create %s", kind));
        kl_free(kind);
    }
    if (kl__kind_has_verb(k, "deletecollection"))
        delete_all(a, &p, here);
    kl__openapi_path(a->b, a->d, a->dialect, &p);
}

/* ------------------------------------------------------------------ objects and subresources */

/* "Status" of "status". */
static char *capital(const char *word) { return kl_sprintf("%c%s", toupper((unsigned char)*word), word + 1); }

/* Adds read, replace and patch: of an object and of its subresources alike. */
static void read_and_write(const about *a, kl__path *p, where at, const char *suffix, const kl__sub *sub)
{
    const kl__kind *k = a->kind;
    const char *what = sub ? sub->name : "", *of = sub ? " of " : "";
    if (sub ? kl__words_have(sub->verbs, "get") : kl__kind_has_verb(k, "get")) {
        kl__operation *o = add(a, p, at, "get", "get", "read", suffix,
            kl_sprintf("read %s%sthe specified %s", what, of, k->kind));
        kl__operation_takes(o, PRETTY);
        if (k->custom)
            kl__operation_takes(o, READS);
    }
    if (sub ? kl__words_have(sub->verbs, "update") : kl__kind_has_verb(k, "update")) {
        kl__operation *o = add(a, p, at, "put", "put", "replace", suffix,
            kl_sprintf("replace %s%sthe specified %s", what, of, k->kind));
        takes_all(o, WRITES);
        o->sends = a->name;
        o->creates = true;
    }
    if (sub ? kl__words_have(sub->verbs, "patch") : kl__kind_has_verb(k, "patch")) {
        kl__operation *o = add(a, p, at, "patch", "patch", "patch", suffix,
            kl_sprintf("partially update %s%sthe specified %s", what, of, k->kind));
        takes_all(o, APPLIES);
        o->sends = META "Patch";
        o->consumes = k->custom ? CUSTOM_PATCHES : PATCHES;
        o->creates = !k->custom;
    }
}

static void object(const about *a)
{
    const kl__kind *k = a->kind;
    where at = {.object = true};
    kl__path p = path_of(a, at);
    read_and_write(a, &p, at, "", NULL);
    if (kl__kind_has_verb(k, "delete")) {
        char *kind = one(k->kind);
        kl__operation *o = add(a, &p, at, "delete", "delete", "delete", "", kl_sprintf("delete %s", kind));
        takes_all(o, DELETES);
        o->sends = META "DeleteOptions";
        o->body_optional = true;
        o->answers = kl__kind_among(k, RETURNED) ? a->name : META "Status";
        o->accepts = true;
        kl_free(kind);
    }
    kl__openapi_path(a->b, a->d, a->dialect, &p);
}

/* The options of a subresource that connects. */
static const kl__option *told(const kl__sub *sub)
{
    return !strcmp(sub->name, "exec")       ? EXEC
        : !strcmp(sub->name, "attach")      ? EXEC + 1 /* no command */
        : !strcmp(sub->name, "portforward") ? PORTS
                                            : PATH;
}

static void connect(const about *a, const kl__sub *sub, bool below)
{
    static const char *const methods[] = {"get", "post", "put", "delete", "options", "head", "patch"};
    bool any = kl__words_have(sub->verbs, "delete"); /* a proxy passes every method on */
    where at = {.object = true, .sub = sub, .below = below};
    kl__path p = path_of(a, at);
    char *name = capital(sub->name), *suffix = kl_sprintf("%s%s", name, below ? "WithPath" : "");
    for (size_t i = 0; i < (any ? sizeof methods / sizeof *methods : 2); i++) {
        char *word = capital(methods[i]), *verb = kl_sprintf("connect %s", word), *upper = kl_strdup(word);
        for (char *c = upper; *c; c++)
            *c = (char)toupper((unsigned char)*c);
        kl__operation *o = add(a, &p, at, methods[i], "connect", verb, suffix,
            kl_sprintf("connect %s requests to %s of %s", upper, sub->name, a->kind->kind));
        kl__operation_takes(o, told(sub));
        if (below)
            kl__operation_takes(o, BELOW);
        o->kind = sub->kind;
        o->answers = NULL;
        o->consumes = o->produces = ANY;
        kl_free(word);
        kl_free(verb);
        kl_free(upper);
    }
    kl_free(suffix);
    kl_free(name);
    kl__openapi_path(a->b, a->d, a->dialect, &p);
    if (any && !below)
        connect(a, sub, true);
}

static void turn_to_sub(const about *a, kl__path *p, const kl__sub *sub)
{
    const kl__definition *of = kl__openapi_of_sub(a->d, a->kind, sub);
    for (size_t i = 0; i < p->n; i++) {
        kl__operation *o = &p->operations[i];
        if (!strcmp(sub->name, "log")) {
            kl__operation_takes(o, LOG);
            o->answers = NULL;
            o->produces = LOGS;
        } else if (of) {
            o->answers = of->name;
            o->sends = o->sends == a->name ? of->name : o->sends;
        }
        if (a->kind->custom)
            continue;
        o->kind = sub->kind;
        if (*sub->version) {
            o->group = sub->group;
            o->version = sub->version;
        }
    }
}

static void subresource(const about *a, const kl__sub *sub)
{
    static const char options[] = "Options";
    size_t n = strlen(sub->kind), more = sizeof options - 1;
    if (n > more && !strcmp(sub->kind + n - more, options)) {
        connect(a, sub, false);
        return;
    }
    where at = {.object = true, .sub = sub};
    kl__path p = path_of(a, at);
    char *suffix = capital(sub->name);
    read_and_write(a, &p, at, suffix, sub);
    if (kl__words_have(sub->verbs, "create")) {
        char *kind = one(a->kind->kind);
        create(a, &p, at, suffix, kl_sprintf("create %s of %s", sub->name, kind));
        kl_free(kind);
    }
    turn_to_sub(a, &p, sub);
    kl_free(suffix);
    kl__openapi_path(a->b, a->d, a->dialect, &p);
}

/* ------------------------------------------------------------------ watches of old */

static void watch(const about *a, where at)
{
    kl__path p = path_of(a, at);
    const char *kind = a->kind->kind;
    char *says = at.object
        ? kl_sprintf("watch changes to an object of kind %s. deprecated: use the 'watch' parameter with a "
                     "list operation instead, filtered to a single item with the 'fieldSelector' parameter.",
            kind)
        : kl_sprintf("watch individual changes to a list of %s. deprecated: use the 'watch' parameter with a "
                     "list operation instead.",
            kind);
    kl__operation *o = add(a, &p, at, "get", at.object ? "watch" : "watchlist", "watch",
        at.object           ? ""
            : at.everywhere ? "ListForAllNamespaces"
                            : "List",
        says);
    takes_all(o, SELECTS);
    kl__operation_takes(o, WATCHES);
    o->answers = META "WatchEvent";
    o->produces = STREAMED;
    kl__openapi_path(a->b, a->d, a->dialect, &p);
}

static void watches(const about *a)
{
    if (a->kind->custom || !kl__kind_has_verb(a->kind, "watch"))
        return;
    if (a->kind->namespaced)
        watch(a, (where){.watch = true, .everywhere = true});
    watch(a, (where){.watch = true});
    watch(a, (where){.watch = true, .object = true});
}

/* ------------------------------------------------------------------ discovery */

/* Takes `id`. */
static kl__operation page(
    char *id, const char *says, const char *answers, const char *const *consumes, const char *const *produces)
{
    return (kl__operation){
        .method = "get",
        .id = id,
        .says = kl_strdup(says),
        .answers = answers,
        .consumes = consumes,
        .produces = produces,
    };
}

/* Takes `text` and `tag`. */
static void discovery(
    kl_builder *b, kl__definitions *d, kl__dialect dialect, char *text, char *tag, kl__operation o)
{
    kl__path p = {.text = text, .tag = tag, .operations = {o}, .n = 1};
    kl__openapi_path(b, d, dialect, &p);
}

static const struct {
    const char *path, *tag, *id, *says, *answers;
    const char *const *consumes, *const *produces;
} ROOTS[] = {
    [KL_OPENAPI_API] = {"/api/", "core", "getCoreAPIVersions", "get available API versions",
        META "APIVersions", BUILTIN, BUILTIN},
    [KL_OPENAPI_APIS] = {"/apis/", "apis", "getAPIVersions", "get available API versions",
        META "APIGroupList", BUILTIN, BUILTIN},
    [KL_OPENAPI_VERSION] = {"/version/", "version", "getCodeVersion",
        "get the version information for this server", "io.k8s.apimachinery.pkg.version.Info", JSON, JSON},
    [KL_OPENAPI_ISSUER] = {"/.well-known/openid-configuration/", "WellKnown",
        "getServiceAccountIssuerOpenIDConfiguration",
        "get service account issuer OpenID configuration, also known as the 'OIDC discovery doc'", NULL, NULL,
        JSON},
    [KL_OPENAPI_KEYS] = {"/openid/v1/jwks/", "openid", "getServiceAccountIssuerOpenIDKeyset",
        "get service account issuer OpenID JSON Web Key Set (contains public token verification keys)", NULL,
        NULL, KEYS},
};

void kl__openapi_root(
    kl_builder *b, kl__definitions *d, kl__dialect dialect, kl__root root, const char *group)
{
    if (root == KL_OPENAPI_GROUP) {
        char *word = kl__openapi_word(group, NULL);
        discovery(b, d, dialect, kl_sprintf("/apis/%s/", group), kl__openapi_tag(group, NULL),
            page(kl_sprintf("get%sAPIGroup", word), "get information of a group", META "APIGroup", BUILTIN,
                BUILTIN));
        kl_free(word);
        return;
    }
    discovery(b, d, dialect, kl_strdup(ROOTS[root].path), kl_strdup(ROOTS[root].tag),
        page(kl_strdup(ROOTS[root].id), ROOTS[root].says, ROOTS[root].answers, ROOTS[root].consumes,
            ROOTS[root].produces));
}

/* ------------------------------------------------------------------ all of them */

static void resources(kl_builder *b, kl__definitions *d, kl__dialect dialect, const kl__kind *k)
{
    char *gv = kl__kind_api_version(k), *word = kl__openapi_word(k->group, k->version);
    discovery(b, d, dialect, kl_sprintf("/%s/%s/", *k->group ? "apis" : "api", gv),
        kl__openapi_tag(k->group, k->version),
        page(kl_sprintf("get%sAPIResources", word), "get available resources", META "APIResourceList",
            BUILTIN, BUILTIN));
    kl_free(gv);
    kl_free(word);
}

static void kind(kl_builder *b, kl__definitions *d, kl__dialect dialect, const kl__kind *k)
{
    about a = {
        .b = b,
        .dialect = dialect,
        .d = d,
        .kind = k,
        .name = kl__openapi_name(d, k, false),
        .list = kl__openapi_name(d, k, true),
        .word = kl__openapi_word(k->group, k->version),
    };
    collections(&a);
    object(&a);
    for (size_t i = 0; i < k->nsubs; i++)
        subresource(&a, &k->subs[i]);
    watches(&a);
    kl_free(a.name);
    kl_free(a.list);
    kl_free(a.word);
}

void kl__openapi_paths(kl_builder *b, const kl__kinds *kinds, kl__definitions *d, const char *group,
    const char *version, kl__dialect dialect)
{
    kl_build_object(b);
    if (!group) {
        kl__openapi_root(b, d, dialect, KL_OPENAPI_API, "");
        kl__openapi_root(b, d, dialect, KL_OPENAPI_APIS, "");
        kl__openapi_root(b, d, dialect, KL_OPENAPI_ISSUER, "");
        kl__openapi_root(b, d, dialect, KL_OPENAPI_KEYS, "");
        kl__openapi_root(b, d, dialect, KL_OPENAPI_VERSION, "");
    }
    for (size_t i = 0; i < kl__kinds_len(kinds); i++) {
        const kl__kind *k = kl__kinds_at(kinds, i);
        if (group && (strcmp(k->group, group) || strcmp(k->version, version)))
            continue;
        if (!group && !k->custom && *k->group && kl__openapi_begins(kinds, i, true))
            kl__openapi_root(b, d, dialect, KL_OPENAPI_GROUP, k->group);
        if (!k->custom && kl__openapi_begins(kinds, i, false))
            resources(b, d, dialect, k);
        kind(b, d, dialect, k);
    }
    kl_build_end(b);
}
