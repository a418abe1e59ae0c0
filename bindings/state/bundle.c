/* bundle.c - reads a script's files, once. */
#include "state/bundle.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/mem.h"

/* The first byte of LUA_SIGNATURE. */
#define BYTECODE_MARK 0x1b

/* What some editors put before a text in UTF-8. */
static const char BYTE_ORDER_MARK[] = "\xef\xbb\xbf";

const char *lkl_source_code(const lkl_source *s, size_t *len)
{
    const char *at = s->text, *end = at + s->len;
    size_t mark = sizeof BYTE_ORDER_MARK - 1;
    if (s->len >= mark && !memcmp(at, BYTE_ORDER_MARK, mark))
        at += mark;
    if (at < end && *at == '#') {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        at = newline ? newline : end;
    }
    *len = (size_t)(end - at);
    return at;
}

static kl_status check_text(const char *path, const char *text, size_t len, kl_err *err)
{
    size_t n;
    const char *code = lkl_source_code(&(lkl_source){.text = (char *)text, .len = len}, &n);
    if (n && *code == BYTECODE_MARK)
        return kl_fail(err, KL_ESCRIPT, "%s is compiled Lua; scripts are loaded from their text", path);
    if (len >= 2 && (!memcmp(text, "\xff\xfe", 2) || !memcmp(text, "\xfe\xff", 2)))
        return kl_fail(err, KL_ESCRIPT, "%s is UTF-16; save it as UTF-8", path);
    return KL_OK;
}

static kl_status read_file(const char *path, lkl_source *out, kl_err *err)
{
    kl_buf text;
    kl_buf_init(&text, LKL_SOURCE_MAX);
    kl_status st = kl_file_read(path, "a script", &text, err);
    if (!st)
        st = check_text(path, kl_buf_str(&text), text.len, err);
    if (!st) {
        out->path = kl_strdup(path);
        out->len = text.len;
        out->text = kl_buf_take(&text);
    }
    kl_buf_fini(&text);
    return st;
}

static void keep(lkl_bundle *b, const char *module, lkl_source *s)
{
    s->module = kl_strdup(module);
    b->sources = kl_realloc(b->sources, (b->n + 1) * sizeof *b->sources);
    b->sources[b->n++] = *s;
    b->paths = kl_realloc(b->paths, (b->n + 1) * sizeof *b->paths);
    for (size_t i = 0; i < b->n; i++)
        b->paths[i] = b->sources[i].path;
    b->paths[b->n] = NULL;
}

static void begin(lkl_bundle *b, const char *script, lkl_source *s)
{
    const char *slash = strrchr(script, '/');
    b->dir = slash ? kl_strndup(script, (size_t)(slash - script) + 1) : kl_strdup("");
    keep(b, "", s);
}

/* --- which of several files is the script ------------------------------------------------- */

typedef struct choice {
    char *main, *init, *only;
    size_t scripts;
} choice;

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);
    return n > k && !strcmp(s + n - k, end);
}

static void choose(choice *c, const char *name)
{
    if (*name == '.' || !ends_with(name, ".lua") || ends_with(name, "_test.lua"))
        return;
    char **slot = !strcmp(name, "main.lua") ? &c->main : !strcmp(name, "init.lua") ? &c->init : &c->only;
    kl_free(*slot);
    *slot = kl_strdup(name);
    c->scripts++;
}

/* Ends the choice. Gives the chosen name, which the caller owns. */
static kl_status chosen(choice *c, const char *where, char **out, kl_err *err)
{
    char **best = c->main ? &c->main : c->init ? &c->init : c->scripts == 1 ? &c->only : NULL;
    *out = best ? *best : NULL;
    if (best)
        *best = NULL;
    size_t n = c->scripts;
    kl_free(c->main);
    kl_free(c->init);
    kl_free(c->only);
    if (*out)
        return KL_OK;
    if (!n)
        return kl_fail(
            err, KL_ENOTFOUND, "%s has no script: no file in it ends with .lua (tests aside)", where);
    return kl_fail(err, KL_EINVAL,
        "%s has %zu scripts, and none is called main.lua or init.lua: name the one to run (%s/NAME.lua), or "
        "rename it to main.lua",
        where, n, where);
}

static kl_status script_of_directory(const char *dir, char **out, kl_err *err)
{
    DIR *d = opendir(dir);
    if (!d)
        return kl_fail(err, KL_EIO, "%s: %s", dir, strerror(errno));
    choice c = {0};
    char *name = NULL;
    for (struct dirent *e; (e = readdir(d));)
        choose(&c, e->d_name);
    closedir(d);
    size_t n = strlen(dir);
    kl_status st = chosen(&c, dir, &name, err);
    *out = st ? NULL : kl_sprintf("%s%s%s", dir, n && dir[n - 1] == '/' ? "" : "/", name);
    kl_free(name);
    return st;
}

kl_status lkl_bundle_init(lkl_bundle *b, const char *script, kl_err *err)
{
    *b = (lkl_bundle){0};
    lkl_source s = {0};
    struct stat meta;
    char *inside = NULL;
    kl_status st = !stat(script, &meta) && S_ISDIR(meta.st_mode) ? script_of_directory(script, &inside, err)
                                                                 : KL_OK;
    if (!st)
        st = read_file(inside ? inside : script, &s, err);
    if (!st)
        begin(b, inside ? inside : script, &s);
    kl_free(inside);
    return st;
}

/* --- texts -------------------------------------------------------------------------------- */

static kl_status read_text(const lkl_bundle *b, const char *file, lkl_source *out, kl_err *err)
{
    size_t n;
    const kl_value *v = kl_value_get(b->texts, file);
    const char *text = kl_value_strn(v, &n);
    char *path = kl_sprintf("%s%s", b->dir, file);
    kl_status st = !text ? kl_fail(err, KL_ENOTFOUND, "there is no %s", path)
        : n > LKL_SOURCE_MAX
        ? kl_fail(err, KL_ETOOBIG, "%s: a script may have %zu bytes at most", path, LKL_SOURCE_MAX)
        : check_text(path, text, n, err);
    if (st)
        kl_free(path);
    else
        *out = (lkl_source){.path = path, .text = kl_strndup(text, n), .len = n};
    return st;
}

kl_status lkl_bundle_init_texts(
    lkl_bundle *b, const char *name, const kl_value *texts, const char *main, kl_err *err)
{
    *b = (lkl_bundle){.texts = kl_value_ref(texts)};
    choice c = {0};
    char *file = kl_strdup(main);
    lkl_source s = {0};
    for (size_t i = 0, n; !main && i < kl_value_len(texts); i++) {
        const char *key;
        (void)kl_value_member(texts, i, &key, &n);
        char *text = kl_strndup(key, n);
        choose(&c, text);
        kl_free(text);
    }
    kl_status st = main ? KL_OK : chosen(&c, name, &file, err);
    if (!st) {
        b->dir = kl_sprintf("%s/", name);
        st = read_text(b, file, &s, err);
    }
    if (!st)
        keep(b, "", &s);
    else
        lkl_bundle_fini(b);
    kl_free(file);
    return st;
}

void lkl_bundle_init_text(lkl_bundle *b, const char *script, const char *text, size_t len)
{
    *b = (lkl_bundle){0};
    begin(b, script, &(lkl_source){.path = kl_strdup(script), .text = kl_strndup(text, len), .len = len});
}

void lkl_bundle_fini(lkl_bundle *b)
{
    for (size_t i = 0; i < b->n; i++) {
        kl_free(b->sources[i].module);
        kl_free(b->sources[i].path);
        kl_free(b->sources[i].text);
    }
    kl_value_unref(b->texts);
    kl_free(b->sources);
    kl_free(b->paths);
    kl_free(b->dir);
    *b = (lkl_bundle){0};
}

const lkl_source *lkl_bundle_find(const lkl_bundle *b, const char *module)
{
    for (size_t i = 1; i < b->n; i++)
        if (!strcmp(b->sources[i].module, module))
            return &b->sources[i];
    return NULL;
}

/* Letters, digits, _ and -, in parts with dots between: nothing leads out of the directory. */
static bool is_module(const char *m)
{
    bool start = true;
    for (; *m; m++) {
        if (*m == '.' && !start)
            start = true;
        else if (isalnum((unsigned char)*m) || *m == '_' || *m == '-')
            start = false;
        else
            return false;
    }
    return !start;
}

static kl_status read_module_text(lkl_bundle *b, const char *module, const lkl_source **out, kl_err *err)
{
    lkl_source s = {0};
    char *file = kl_sprintf("%s.lua", module);
    kl_status st = kl_value_get(b->texts, file)
        ? read_text(b, file, &s, err)
        : kl_fail(err, KL_ENOTFOUND,
            "module \"%s\" is neither kubelua's nor beside the script: there is no %s%s", module, b->dir,
            file);
    kl_free(file);
    if (st)
        return st;
    keep(b, module, &s);
    *out = &b->sources[b->n - 1];
    return KL_OK;
}

kl_status lkl_bundle_read(lkl_bundle *b, const char *module, const lkl_source **out, kl_err *err)
{
    if (!is_module(module))
        return kl_fail(err, KL_EINVAL,
            "\"%s\" is not a module name: parts of letters, digits, _ and - with dots between", module);
    if (b->texts)
        return read_module_text(b, module, out, err);
    char *base = kl_sprintf("%s%s", b->dir, module);
    for (char *c = base + strlen(b->dir); *c; c++)
        if (*c == '.')
            *c = '/';
    char *file = kl_sprintf("%s.lua", base), *init = kl_sprintf("%s/init.lua", base);
    lkl_source s = {0};
    kl_status st = read_file(file, &s, err);
    if (st == KL_ENOTFOUND)
        st = read_file(init, &s, err);
    if (st == KL_ENOTFOUND)
        st = kl_fail(err, KL_ENOTFOUND,
            "module \"%s\" is neither kubelua's nor in the script's directory: no file %s, no file %s",
            module, file, init);
    if (!st) {
        if (err)
            kl_err_fini(err); /* the module was found, in the second place */
        keep(b, module, &s);
        *out = &b->sources[b->n - 1];
    }
    kl_free(base);
    kl_free(file);
    kl_free(init);
    return st;
}

void lkl_bundle_keep(lkl_bundle *b, const char *module, const char *path, char *text, size_t len)
{
    keep(b, module, &(lkl_source){.path = kl_strdup(path), .text = text, .len = len});
}

/* FNV-1a over names and texts. Not seeded: equal text gives an equal digest in every process. */
uint64_t lkl_bundle_digest(const lkl_bundle *b)
{
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < b->n; i++) {
        for (const char *c = b->sources[i].module;; c++) {
            h = (h ^ (unsigned char)*c) * 1099511628211u;
            if (!*c)
                break;
        }
        for (size_t k = 0; k < b->sources[i].len; k++)
            h = (h ^ (unsigned char)b->sources[i].text[k]) * 1099511628211u;
        h = (h ^ 0xff) * 1099511628211u;
    }
    return h;
}
