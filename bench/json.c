/* json.c - decoding alone: json items|stream|cjson FILE; one line of JSON (README.md).
 *
 *   items    each object of the list through kl_value_decode, all kept
 *   stream   the whole list through kl_stream in pieces of 64 KB, as the network brings it, all kept
 *   cjson    the whole list through cJSON, the tree kept
 *
 * Every pass begins with nothing: what the pass before kept is dropped first, outside of its time, so that
 * no value is found already there. The best of PASSES counts, and the first is told too: it pays for fresh
 * memory. */
#include <cjson/cJSON.h>

#include "base/mem.h"
#include "figures.h"
#include "wire/stream.h"
#include "podlist.h"

#define PASSES 3
#define PIECE ((size_t)64 << 10)

static podlist L;
static const kl_value **kept;
static size_t n_kept;

static void die(const char *what, const char *why)
{
    fprintf(stderr, "json: %s: %s\n", what, why);
    exit(1);
}

static void decode_items(void)
{
    kl_err err = KL_ERR_INIT;
    for (size_t i = 0; i < L.len; i++)
        if (kl_value_decode(L.text + L.item[i].at, L.item[i].n, &kept[n_kept++], &err))
            die("kl_value_decode", kl_err_message(&err));
}

static kl_status keep(void *arg, const kl_value *object, kl_err *err)
{
    (void)arg, (void)err;
    kept[n_kept++] = object;
    return KL_OK;
}

static void decode_stream(void)
{
    kl_err err = KL_ERR_INIT;
    kl_stream_handler h = {.item = keep, .max_object = (size_t)8 << 20};
    kl_stream *s = kl_stream_list_new(&h);
    for (size_t at = 0; at < L.bytes; at += PIECE)
        if (kl_stream_feed(s, L.text + at, L.bytes - at < PIECE ? L.bytes - at : PIECE, &err))
            die("kl_stream_feed", kl_err_message(&err));
    if (kl_stream_finish(s, NULL, &err))
        die("kl_stream_finish", kl_err_message(&err));
    kl_stream_free(s);
}

static void drop_values(void)
{
    while (n_kept)
        kl_value_unref(kept[--n_kept]);
}

static cJSON *tree;

static void decode_cjson(void)
{
    if (!(tree = cJSON_ParseWithLength(L.text, L.bytes)))
        die("cJSON", "it refused the list");
}

static void drop_cjson(void)
{
    cJSON_Delete(tree);
    tree = NULL;
}

/* Both must have kept the same: the bytes of every node name, as in every peer's check. */
static size_t check_values(void)
{
    size_t n = 0;
    for (size_t i = 0; i < n_kept; i++)
        n += kl_value_len(kl_value_at(kept[i], "spec", "nodeName", NULL));
    return n;
}

static size_t check_cjson(void)
{
    size_t n = 0;
    const cJSON *o;
    cJSON_ArrayForEach(o, cJSON_GetObjectItemCaseSensitive(tree, "items"))
        n += strlen(cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(o, "spec"), "nodeName")
                        ->valuestring);
    return n;
}

static const struct way {
    const char *name, *peer;
    void (*decode)(void), (*drop)(void);
    size_t (*check)(void);
} WAYS[] = {
    {"items", "kubelua object by object", decode_items, drop_values, check_values},
    {"stream", "kubelua stream in 64 KB", decode_stream, drop_values, check_values},
    {"cjson", "cJSON", decode_cjson, drop_cjson, check_cjson},
};

int main(int argc, char **argv)
{
    if (argc != 3)
        die("usage", "json items|stream|cjson FILE");
    const struct way *w = NULL;
    for (size_t i = 0; i < sizeof WAYS / sizeof *WAYS; i++)
        if (!strcmp(argv[1], WAYS[i].name))
            w = &WAYS[i];
    if (!w)
        die(argv[1], "items, stream or cjson");
    L = podlist_open(argv[2], 0);
    kept = kl_new_array(const kl_value *, L.len);

    double best = 1e9, first = 0, rss = 0, base = memory_mb("RssAnon");
    size_t check = 0;
    for (int i = 0; i < PASSES; i++) {
        double began = cpu_seconds();
        w->decode();
        double s = cpu_seconds() - began;
        best = s < best ? s : best;
        if (i == 0) {
            first = s;
            rss = memory_mb("RssAnon") - base;
            check = w->check();
        }
        w->drop();
    }
    double mb = (double)L.bytes / 1e6;
    printf("{\"peer\":\"%s\",\"mb\":%.1f,\"s\":%.4f,\"first_s\":%.4f,\"mb_s\":%.1f,\"kept_mb\":%.1f,"
           "\"check\":%zu}\n",
        w->peer, mb, best, first, mb / best, rss, check);
    kl_free(kept);
    podlist_close(&L);
    return 0;
}
