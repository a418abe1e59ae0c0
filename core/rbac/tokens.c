/* tokens.c - users out of a file of tokens. */
#include "rbac/tokens.h"

#include <string.h>

#include "base/file.h"
#include "base/mem.h"

static void user_free(void *p) { kl_value_unref(p); }

void kl__tokens_free(kl_map *tokens) { kl_map_free(tokens, user_free); }

const kl_value *kl__user_new(const char *name, const char *uid, const char *groups)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "username", name);
    kl_build_kstr(b, "uid", uid && *uid ? uid : NULL);
    kl_build_key(b, "groups");
    kl_build_array(b);
    for (const char *p = groups; p && *p;) {
        size_t n = strcspn(p, ",");
        kl_build_strn(b, p, n);
        p += n + (p[n] == ',');
    }
    kl_build_end(b);
    kl_build_end(b);
    return kl_builder_done(b);
}

/* The next field of a line, with or without quotes; the text is cut up. */
static char *field(char **rest)
{
    char *s = *rest, *end;
    if (*s == '"') {
        end = strchr(++s, '"');
        end = end ? end : s + strlen(s);
        *rest = end + (*end == '"');
        *rest += **rest == ',';
    } else {
        end = s + strcspn(s, ",");
        *rest = end + (*end == ',');
    }
    *end = '\0';
    return s;
}

static kl_status take_line(kl_map *tokens, const char *path, int number, char *line, kl_err *err)
{
    line[strcspn(line, "\r")] = '\0';
    if (!*line || *line == '#')
        return KL_OK;
    char *rest = line, *token = field(&rest), *name = field(&rest), *uid = field(&rest),
         *groups = field(&rest);
    if (!*token || !*name)
        return kl_fail(err, KL_ESYNTAX, "%s:%d: a line is token,user,uid,\"group,group\"", path, number);
    char *all = kl_sprintf("%s%s%s", groups, *groups ? "," : "", "system:authenticated");
    void *old = kl_map_set(tokens, token, (void *)(uintptr_t)kl__user_new(name, uid, all));
    kl_free(all);
    user_free(old);
    return KL_OK;
}

kl_status kl__tokens_read(const char *path, kl_map **out, kl_err *err)
{
    kl_buf text = KL_BUF_INIT;
    kl_status st = kl_file_read_given(path, "a file of tokens", &text, err);
    kl_map *tokens = kl_map_new();
    char *line = text.len ? text.data : NULL, *end = line ? line + text.len : NULL;
    for (int number = 1; !st && line && line < end; number++) {
        char *next = memchr(line, '\n', (size_t)(end - line));
        char *own = kl_strndup(line, (size_t)((next ? next : end) - line));
        st = take_line(tokens, path, number, own, err);
        kl_free(own);
        line = next ? next + 1 : end;
    }
    kl_buf_fini(&text);
    if (st)
        kl__tokens_free(tokens);
    else
        *out = tokens;
    return st;
}
