/* shelf.c - a file is "kubelua shelf 1 CHECKSUM LENGTH TAG\n" and the bytes. It is written beside its place
 * and renamed into it, so a reader finds the old or the new file complete; leftovers of a crash or a full
 * disk fail the checksum. */
#include "base/shelf.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/log.h"
#include "base/mem.h"

#define FILE_MAX ((size_t)64 << 20) /* bytes; larger things are not cached */
#define HEAD_MAX 1024               /* the first line: tags are hashes of unknown length */
#define MAGIC "kubelua shelf 1 "

struct kl_shelf {
    char *dir;
    bool refused;
};

kl_shelf *kl_shelf_new(const char *dir)
{
    kl_shelf *s = kl_new(kl_shelf);
    s->dir = dir && *dir ? kl_strdup(dir) : NULL;
    return s;
}

void kl_shelf_free(kl_shelf *s)
{
    if (!s)
        return;
    kl_free(s->dir);
    kl_free(s);
}

const char *kl_shelf_dir(const kl_shelf *s) { return s->dir; }

char *kl_shelf_home(void)
{
    const char *own = getenv("KUBELUA_CACHE_DIR"), *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (own && *own)
        return strcmp(own, "off") ? kl_strdup(own) : NULL;
    /* the XDG specification says to ignore relative paths */
    if (cache && *cache == '/')
        return kl_sprintf("%s/kubelua", cache);
    return home && *home ? kl_sprintf("%s/.cache/kubelua", home) : NULL;
}

/* --- the form ----------------------------------------------------------------------------- */

/* FNV-1a, over the tag too. Against accidents, not enemies: those could not write into a directory of
 * 0700. */
static uint64_t checksum(uint64_t h, const void *data, size_t n)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    return h;
}

static uint64_t checksum_of(const char *tag, size_t taglen, const void *bytes, size_t n)
{
    return checksum(checksum(0xcbf29ce484222325u, tag, taglen), bytes, n);
}

void kl_shelf_pack(const char *tag, const void *bytes, size_t n, kl_buf *out)
{
    kl_buf_printf(out, MAGIC "%016" PRIx64 " %zu %s\n", checksum_of(tag, strlen(tag), bytes, n), n, tag);
    kl_buf_add(out, bytes, n);
}

kl_status kl_shelf_unpack(
    const char *text, size_t len, char **tag, const char **bytes, size_t *n, kl_err *err)
{
    const char *end = memchr(text, '\n', len < HEAD_MAX ? len : HEAD_MAX);
    if (!end || strncmp(text, MAGIC, sizeof MAGIC - 1))
        return kl_fail(err, KL_ESYNTAX, "it is not a file of a kubelua shelf");
    char *head = kl_strndup(text + sizeof MAGIC - 1, (size_t)(end - text) - (sizeof MAGIC - 1)), *at = head;
    uint64_t sum = strtoull(head, &at, 16);
    char *after = at;
    unsigned long long size = *at == ' ' ? strtoull(at, &after, 10) : 0;
    size_t have = len - (size_t)(end + 1 - text);
    bool good = after > at && *after == ' ' && size == have;
    good = good && checksum_of(after + 1, strlen(after + 1), end + 1, have) == sum;
    if (good) {
        *bytes = end + 1;
        *n = have;
        if (tag)
            *tag = kl_strdup(after + 1);
    }
    kl_free(head);
    return good ? KL_OK : kl_fail(err, KL_ESYNTAX, "it is corrupt: its length or its checksum is wrong");
}

/* --- places ------------------------------------------------------------------------------- */

static char *path_of(const kl_shelf *s, const char *name)
{
    kl_buf b = KL_BUF_INIT;
    kl_buf_printf(&b, "%s/", s->dir);
    for (const char *p = name; *p; p++) {
        bool plain = (*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z')
            || *p == '-' || *p == '_' || (*p == '.' && p > name && p[-1] != '/' && p[-1] != '.') || *p == '/';
        if (plain)
            kl_buf_putc(&b, *p);
        else
            kl_buf_printf(&b, "%%%02X", (unsigned char)*p);
    }
    return kl_buf_take(&b);
}

/* Every directory above `path`. */
static bool make_dirs(const char *path)
{
    char *dir = kl_strdup(path);
    bool good = true;
    for (char *p = dir + 1; *p && good; p++)
        if (*p == '/') {
            *p = 0;
            good = !mkdir(dir, 0700) || errno == EEXIST || errno == EISDIR;
            *p = '/';
        }
    kl_free(dir);
    return good;
}

/* --- reading ------------------------------------------------------------------------------ */

static bool read_whole(int fd, size_t size, kl_buf *out)
{
    char *at = kl_buf_reserve(out, size + 1);
    for (size_t have = 0; at && have < size;) {
        ssize_t n = read(fd, at + have, size - have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        have += (size_t)n;
        out->len += (size_t)n;
    }
    return at;
}

bool kl_shelf_get(const kl_shelf *s, const char *name, kl_time wall, kl_buf *bytes, char **tag, kl_time *age)
{
    if (!s->dir)
        return false;
    char *path = path_of(s, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;
    kl_buf text = KL_BUF_INIT;
    kl_err err = KL_ERR_INIT;
    const char *found;
    size_t n;
    bool good = fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() && st.st_size > 0
        && (size_t)st.st_size <= FILE_MAX;
    good = good && read_whole(fd, (size_t)st.st_size, &text);
    if (fd >= 0)
        close(fd);
    if (good && kl_shelf_unpack(text.data, text.len, tag, &found, &n, &err)) {
        kl_debug("a remembered answer is ignored", "file=%s why=%s", kl_log_quoted(path),
            kl_log_quoted(kl_err_message(&err)));
        good = false;
    } else if (good) {
        kl_time kept = KL_SECONDS(st.st_mtim.tv_sec) + st.st_mtim.tv_nsec;
        if (age)
            *age = wall > kept ? wall - kept : 0;
        kl_buf_add(bytes, found, n);
    }
    kl_err_fini(&err);
    kl_buf_fini(&text);
    kl_free(path);
    return good;
}

/* --- writing ------------------------------------------------------------------------------ */

static void set_time(int fd, kl_time wall)
{
    struct timespec t = {.tv_sec = wall / KL_SECONDS(1), .tv_nsec = wall % KL_SECONDS(1)};
    if (futimens(fd, (struct timespec[]){t, t}))
        kl_debug("the age of a cached response cannot be set", "error=%s", kl_log_quoted(strerror(errno)));
}

static bool write_whole(int fd, const kl_buf *b)
{
    for (size_t have = 0; have < b->len;) {
        ssize_t n = write(fd, b->data + have, b->len - have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        have += (size_t)n;
    }
    return true;
}

/* Writes the file; on failure errno has the reason. */
static bool replace(const char *path, kl_time wall, const kl_buf *text)
{
    char *temporary = kl_sprintf("%s.%ld.XXXXXX", path, (long)getpid());
    int fd = make_dirs(path) ? mkostemp(temporary, O_CLOEXEC) : -1; /* 0600 */
    bool good = fd >= 0 && write_whole(fd, text);
    int why = errno;
    if (good)
        set_time(fd, wall);
    if (fd >= 0 && close(fd)) {
        good = false;
        why = errno;
    }
    if (good && rename(temporary, path)) {
        good = false;
        why = errno;
    }
    if (!good && fd >= 0)
        unlink(temporary);
    kl_free(temporary);
    errno = why;
    return good;
}

bool kl_shelf_put(kl_shelf *s, const char *name, kl_time wall, const char *tag, const void *bytes, size_t n)
{
    if (!s->dir || strlen(tag) > HEAD_MAX / 2 || strpbrk(tag, "\r\n") || n > FILE_MAX - HEAD_MAX)
        return false;
    char *path = path_of(s, name);
    kl_buf text = KL_BUF_INIT;
    kl_shelf_pack(tag, bytes, n, &text);
    bool good = replace(path, wall, &text);
    if (!good && !s->refused) {
        s->refused = true;
        kl_debug("responses of the server are not cached on disk", "dir=%s error=%s", kl_log_quoted(s->dir),
            kl_log_quoted(strerror(errno)));
    }
    kl_buf_fini(&text);
    kl_free(path);
    return good;
}

void kl_shelf_touch(const kl_shelf *s, const char *name, kl_time wall)
{
    if (!s->dir)
        return;
    char *path = path_of(s, name);
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0) {
        set_time(fd, wall);
        close(fd);
    }
    kl_free(path);
}

void kl_shelf_drop(const kl_shelf *s, const char *name)
{
    if (!s->dir)
        return;
    char *path = path_of(s, name);
    unlink(path);
    kl_free(path);
}
