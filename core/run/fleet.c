/* fleet.c - a list of clusters, and their metrics in one text. */
#include "run/fleet.h"

#include <string.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"

typedef struct ship {
    char *name;
    kl_client *client;
    kl_door *door;
    struct kl_manager *manager;
} ship;

struct kl_fleet {
    ship *v;
    size_t n;
};

kl_fleet *kl_fleet_new(void) { return kl_new(kl_fleet); }

void kl_fleet_free(kl_fleet *f)
{
    for (size_t i = 0; f && i < f->n; i++)
        kl_free(f->v[i].name);
    if (f)
        kl_free(f->v);
    kl_free(f);
}

kl_status kl_fleet_add(kl_fleet *f, const char *name, kl_client *client, size_t *number, kl_err *err)
{
    for (size_t i = 0; i < f->n; i++)
        if (!strcmp(f->v[i].name, name))
            return kl_fail(err, KL_EEXISTS, "the context %s is named twice; name each cluster once", name);
    f->v = kl_realloc(f->v, (f->n + 1) * sizeof *f->v);
    f->v[f->n] = (ship){.name = kl_strdup(name), .client = client};
    *number = f->n++;
    return KL_OK;
}

void kl_fleet_join(kl_fleet *f, size_t number, struct kl_manager *m, kl_door *door)
{
    f->v[number].manager = m;
    f->v[number].door = door;
}

size_t kl_fleet_size(const kl_fleet *f) { return f ? f->n : 0; }
const char *kl_fleet_name(const kl_fleet *f, size_t number) { return f->v[number].name; }
kl_client *kl_fleet_client(const kl_fleet *f, size_t number) { return f->v[number].client; }
kl_door *kl_fleet_door(const kl_fleet *f, size_t number) { return f->v[number].door; }
struct kl_manager *kl_fleet_manager(const kl_fleet *f, size_t number) { return f->v[number].manager; }

/* --- metrics ------------------------------------------------------------------------------ */

typedef struct family {
    char *name;
    kl_buf head, samples;
} family;

typedef struct families {
    kl_map *by_name;
    family **v; /* in the order in which they came */
    size_t n;
} families;

static family *family_of(families *all, const char *name, size_t n)
{
    char *key = kl_strndup(name, n);
    family *f = kl_map_get(all->by_name, key);
    if (!f) {
        f = kl_new(family);
        f->name = key;
        kl_map_set(all->by_name, key, f);
        all->v = kl_realloc(all->v, (all->n + 1) * sizeof *all->v);
        all->v[all->n++] = f;
    } else {
        kl_free(key);
    }
    return f;
}

static void put_label(kl_buf *out, const char *value)
{
    kl_buf_puts(out, "cluster=\"");
    for (const char *p = value; *p; p++)
        if (*p == '\\' || *p == '"')
            kl_buf_printf(out, "\\%c", *p);
        else if (*p == '\n')
            kl_buf_puts(out, "\\n");
        else
            kl_buf_putc(out, *p);
    kl_buf_puts(out, "\"");
}

/* `name 1` and `name{a="b"} 1` get a first label. */
static void put_sample(family *f, const char *line, size_t n, const char *cluster)
{
    size_t name = strcspn(line, "{ ");
    kl_buf_add(&f->samples, line, name);
    kl_buf_puts(&f->samples, "{");
    put_label(&f->samples, cluster);
    if (line[name] == '{') {
        if (line[name + 1] != '}')
            kl_buf_puts(&f->samples, ",");
        kl_buf_add(&f->samples, line + name + 1, n - name - 1);
    } else {
        kl_buf_puts(&f->samples, "}");
        kl_buf_add(&f->samples, line + name, n - name);
    }
    kl_buf_puts(&f->samples, "\n");
}

static void take(families *all, const char *text, const char *cluster, bool first)
{
    family *f = NULL;
    bool head = false; /* this text gives the family its head */
    for (const char *line = text, *end; *line; line = *end ? end + 1 : end) {
        end = line + strcspn(line, "\n");
        size_t n = (size_t)(end - line);
        bool help = !strncmp(line, "# HELP ", 7), type = !strncmp(line, "# TYPE ", 7);
        if (help || type) {
            size_t len = strcspn(line + 7, " \n");
            if (!f || strlen(f->name) != len || strncmp(f->name, line + 7, len)) {
                f = family_of(all, line + 7, len);
                head = !f->head.len;
            }
            if (head) {
                kl_buf_add(&f->head, line, n);
                kl_buf_puts(&f->head, "\n");
            }
        } else if (n && *line != '#' && f) {
            if (strncmp(f->name, "process_", 8)) {
                put_sample(f, line, n, cluster);
            } else if (first) {
                kl_buf_add(&f->samples, line, n);
                kl_buf_puts(&f->samples, "\n");
            }
        }
    }
}

char *kl_fleet_metrics(const kl_fleet *f, const char *const *texts)
{
    families all = {.by_name = kl_map_new()};
    kl_buf out = KL_BUF_INIT;
    for (size_t i = 0; i < f->n; i++)
        take(&all, texts[i], f->v[i].name, !i);
    for (size_t i = 0; i < all.n; i++) {
        kl_buf_puts(&out, kl_buf_str(&all.v[i]->head));
        kl_buf_puts(&out, kl_buf_str(&all.v[i]->samples));
        kl_buf_fini(&all.v[i]->head);
        kl_buf_fini(&all.v[i]->samples);
        kl_free(all.v[i]->name);
        kl_free(all.v[i]);
    }
    kl_free(all.v);
    kl_map_free(all.by_name, NULL);
    return kl_buf_take(&out);
}
