/* bundle.c - reads a script's files, once. */
#include "bundle.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

/* The first byte of LUA_SIGNATURE. */
#define BYTECODE_MARK 0x1b

static kl_status read_file(const char *path, lkl_source *out, kl_err *err)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return kl_fail(err, errno == ENOENT ? KL_ENOTFOUND : KL_EIO, "%s: %s", path, strerror(errno));
    kl_buf text;
    kl_buf_init(&text, LKL_SOURCE_MAX);
    kl_status st = KL_OK;
    for (char *room; !st;) {
        room = kl_buf_reserve(&text, 65536);
        size_t n = room ? fread(room, 1, 65536, f) : 0;
        if (!room)
            st = kl_fail(err, KL_ETOOBIG, "%s: a script may have %zu bytes at most", path, LKL_SOURCE_MAX);
        else if (ferror(f))
            st = kl_fail(err, KL_EIO, "%s: %s", path, strerror(errno));
        text.len += n;
        if (!n)
            break;
    }
    fclose(f);
    if (!st && text.len && text.data[0] == BYTECODE_MARK)
        st = kl_fail(err, KL_ESCRIPT, "%s is compiled Lua; scripts are loaded from their text", path);
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

kl_status lkl_bundle_init(lkl_bundle *b, const char *script, kl_err *err)
{
    *b = (lkl_bundle){0};
    lkl_source s = {0};
    kl_status st = read_file(script, &s, err);
    if (!st)
        begin(b, script, &s);
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

kl_status lkl_bundle_read(lkl_bundle *b, const char *module, const lkl_source **out, kl_err *err)
{
    if (!is_module(module))
        return kl_fail(err, KL_EINVAL, "\"%s\" is no module name: parts of letters, digits, _ and - with dots between", module);
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
        st = kl_fail(err, KL_ENOTFOUND, "module \"%s\" is neither kubelua's nor in the script's directory: no file %s, no file %s", module, file, init);
    if (!st) {
        if (err)
            kl_err_fini(err);          /* the first place was no mistake, for the second had it */
        keep(b, module, &s);
        *out = &b->sources[b->n - 1];
    }
    kl_free(base);
    kl_free(file);
    kl_free(init);
    return st;
}

/* FNV-1a over names and texts. Not seeded: equal text gives an equal digest in every process. */
uint64_t lkl_bundle_digest(const lkl_bundle *b)
{
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < b->n; i++) {
        for (const char *c = b->sources[i].module; ; c++) {
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
