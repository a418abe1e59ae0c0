/* proto_stream_test.c - lists and watches in protobuf, cut at any byte, give the same as in JSON. */
#include "support/test.h"

#include "wire/proto_impl.h"
#include "support/proto.h"

static go_objects all;

static int read_objects(void **state)
{
    (void)state;
    all = go_objects_read("spec/fixtures/proto/objects.txt");
    return all.n > 150 ? 0 : -1;
}

static int free_objects(void **state)
{
    (void)state;
    go_objects_free(&all);
    return 0;
}

typedef struct heard {
    kl_buf text; /* every object as JSON, one per line; events with their type before */
    size_t n, asked;
    const kl_value *last; /* answers `known` */
} heard;

static kl_status on_item(void *arg, const kl_value *v, kl_err *err)
{
    heard *h = arg;
    (void)err;
    kl_value_encode(v, &h->text);
    kl_buf_putc(&h->text, '\n');
    kl_value_unref(h->last);
    h->last = v;
    h->n++;
    return KL_OK;
}

static kl_status on_event(void *arg, const char *type, const kl_value *v, kl_err *err)
{
    heard *h = arg;
    kl_buf_printf(&h->text, "%s ", type);
    return on_item(arg, v, err);
}

static const kl_value *known(void *arg, const char *ns, size_t nslen, const char *name, size_t namelen)
{
    heard *h = arg;
    (void)ns, (void)nslen, (void)name, (void)namelen;
    h->asked++;
    return kl_value_ref(h->last);
}

static void heard_fini(heard *h)
{
    kl_value_unref(h->last);
    kl_buf_fini(&h->text);
}

typedef struct bodies {
    kl_buf proto, json;
    size_t n;
    const char *api_version, *kind;
} bodies;

static void bodies_fini(bodies *b)
{
    kl_buf_fini(&b->proto);
    kl_buf_fini(&b->json);
}

static bool is_kind(const go_object *o, const char *api_version, const char *kind)
{
    kl__unknown u;
    return !kl__unknown_read(o->proto, o->n, &u, NULL) && u.kind_n == strlen(kind)
        && !memcmp(u.kind, kind, u.kind_n) && u.api_version_n == strlen(api_version)
        && !memcmp(u.api_version, api_version, u.api_version_n);
}

/* A list of all there is of a kind, three times, as both media types carry it. */
static bodies list_of(const char *api_version, const char *kind)
{
    bodies b = {.api_version = api_version, .kind = kind};
    kl_buf raw = KL_BUF_INIT, meta = KL_BUF_INIT;
    char list_kind[64];
    snprintf(list_kind, sizeof list_kind, "%sList", kind);
    put_text(&meta, 1, "");
    put_text(&meta, 2, "77");
    put_text(&meta, 3, "");
    put_bytes(&raw, 1, meta.data, meta.len);
    kl_buf_printf(&b.json,
        "{\"kind\":\"%s\",\"apiVersion\":\"%s\",\"metadata\":{\"resourceVersion\":\"77\"},\"items\":[",
        list_kind, api_version);
    for (size_t round = 0; round < 3; round++)
        for (size_t i = 0; i < all.n; i++) {
            kl__unknown u;
            if (!is_kind(&all.v[i], api_version, kind)
                || kl__unknown_read(all.v[i].proto, all.v[i].n, &u, NULL))
                continue;
            /* the one list whose items have kind and apiVersion */
            bool typed = !strcmp(kind, "PartialObjectMetadata");
            const char *members = typed ? all.v[i].json + 1 : strstr(all.v[i].json, "\"metadata\"");
            put_bytes(&raw, 2, u.raw, u.raw_n);
            kl_buf_printf(&b.json, "%s{%s", b.n++ ? "," : "", members);
        }
    kl_buf_puts(&b.json, "]}");
    put_unknown(&b.proto, api_version, list_kind, raw.data, raw.len);
    kl_buf_fini(&raw);
    kl_buf_fini(&meta);
    return b;
}

static bodies watch_of(void)
{
    static const char *const types[] = {"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"};
    bodies b = {0};
    for (size_t i = 0; i < all.n; i++, b.n++) {
        put_frame(&b.proto, types[i % 5], all.v[i].proto, all.v[i].n);
        kl_buf_printf(&b.json, "{\"type\":\"%s\",\"object\":", types[i % 5]);
        kl_buf_puts(&b.json, all.v[i].json);
        kl_buf_puts(&b.json, "}\n");
    }
    return b;
}

/* Feeds pieces of `step` bytes from allocations of their own, so that a read beyond a piece is caught. */
static kl_status feed(kl_stream *s, const kl_buf *b, size_t from, size_t step, kl_err *err)
{
    kl_status st = KL_OK;
    for (size_t at = from; !st && at < b->len; at += step) {
        size_t n = b->len - at < step ? b->len - at : step;
        char *piece = kl_alloc(n);
        memcpy(piece, b->data + at, n);
        st = kl_stream_feed(s, piece, n, err);
        kl_free(piece);
    }
    return st;
}

static heard hear(const kl_buf *b, bool list, bool protobuf, size_t step, kl_projection *keep, bool drop,
    const bodies *fill)
{
    heard h = {0};
    kl_err err = KL_ERR_INIT;
    const kl_value *envelope = NULL;
    kl_stream_handler sh = {.item = on_item,
        .event = on_event,
        .arg = &h,
        .protobuf = protobuf,
        .keep = keep,
        .drop_managed_fields = drop,
        .known = known,
        .api_version = fill ? fill->api_version : NULL,
        .kind = fill ? fill->kind : NULL};
    kl_stream *s = list ? kl_stream_list_new(&sh) : kl_stream_watch_new(&sh);
    assert_ok(feed(s, b, 0, step, &err), &err);
    assert_ok(kl_stream_finish(s, &envelope, &err), &err);
    if (list) {
        kl_buf_puts(&h.text, "end ");
        kl_value_encode(envelope, &h.text);
    }
    kl_value_unref(envelope);
    kl_stream_free(s);
    return h;
}

static void assert_both_the_same(
    const bodies *b, bool list, size_t step, kl_projection *keep, bool drop, bool fill)
{
    heard p = hear(&b->proto, list, true, step, keep, drop, fill ? b : NULL),
          j = hear(&b->json, list, false, 1 << 20, keep, drop, fill ? b : NULL);
    assert_int_equal(p.n, b->n);
    assert_true(list || p.asked > 0);
    assert_string_equal(kl_buf_str(&p.text), kl_buf_str(&j.text));
    heard_fini(&p);
    heard_fini(&j);
}

static const char *const listed[][2] = {{"v1", "Pod"}, {"apps/v1", "StatefulSet"}, {"v1", "Secret"},
    {"v1", "ConfigMap"}, {"coordination.k8s.io/v1", "Lease"}, {"rbac.authorization.k8s.io/v1", "ClusterRole"},
    {"meta.k8s.io/v1", "PartialObjectMetadata"}};

static void lists_cut_anywhere_give_the_same_as_json(void **state)
{
    (void)state;
    static const size_t steps[] = {1, 2, 3, 7, 19, 64, 1000, 4096, 1 << 20};
    for (size_t i = 0; i < sizeof listed / sizeof *listed; i++) {
        bodies b = list_of(listed[i][0], listed[i][1]);
        assert_true(b.n >= 3);
        for (size_t k = 0; k < sizeof steps / sizeof *steps; k++)
            assert_both_the_same(&b, true, steps[k], NULL, false, k % 2);
        bodies_fini(&b);
    }
}

static void watches_cut_anywhere_give_the_same_as_json(void **state)
{
    (void)state;
    static const size_t steps[] = {1, 5, 333, 1 << 20};
    bodies b = watch_of();
    for (size_t k = 0; k < sizeof steps / sizeof *steps; k++)
        assert_both_the_same(&b, false, steps[k], NULL, false, false);
    bodies_fini(&b);
}

static void projections_cut_as_they_cut_json(void **state)
{
    (void)state;
    static const char *const paths[][4] = {{"spec.containers.image", "status", "data"},
        {"spec.template.metadata", "rules.verbs", "spec.replicas"},
        {"metadata.managedFields.fieldsV1.f:metadata.f:labels.f:app", "metadata.annotations.a",
            "spec.volumeClaimTemplates.kind", "spec.containers"},
        {"kind"}};
    bodies watch = watch_of();
    for (size_t i = 0; i < 5; i++) {
        kl_projection *keep = NULL;
        kl_err err = KL_ERR_INIT;
        size_t n = 0;
        while (i < 4 && n < 4 && paths[i][n])
            n++;
        if (i < 4)
            assert_ok(kl_projection_new(paths[i], n, &keep, &err), &err);
        assert_both_the_same(&watch, false, 4096, keep, i == 4, false);
        for (size_t k = 0; k < sizeof listed / sizeof *listed; k++) {
            bodies b = list_of(listed[k][0], listed[k][1]);
            assert_both_the_same(&b, true, 4096, keep, i == 4, true);
            bodies_fini(&b);
        }
        kl_projection_unref(keep);
    }
    bodies_fini(&watch);
}

/* The Status of an ERROR event says why the watch ended, however little is kept of objects. */
static void projections_spare_errors(void **state)
{
    (void)state;
    static const char text[] = "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":"
                               "\"Failure\",\"message\":\"too old\",\"reason\":\"Expired\",\"code\":410}";
    static const char *const path = "spec.nodeName";
    kl_projection *keep;
    kl_err err = KL_ERR_INIT;
    kl_buf status = KL_BUF_INIT, object = KL_BUF_INIT, frame = KL_BUF_INIT, json = KL_BUF_INIT,
           other = KL_BUF_INIT;
    put_bytes(&status, 1, "", 0);
    put_text(&status, 2, "Failure");
    put_text(&status, 3, "too old");
    put_text(&status, 4, "Expired");
    put_number(&status, 6, 410);
    put_unknown(&object, "v1", "Status", status.data, status.len);
    put_frame(&frame, "ERROR", object.data, object.len);
    kl_buf_printf(&json, "{\"type\":\"ERROR\",\"object\":%s}\n", text);
    kl_buf_printf(&other, "{\"object\":%s, \"type\":\"ERROR\"}\n", text);
    assert_ok(kl_projection_new(&path, 1, &keep, &err), &err);
    const kl_buf *all_three[] = {&frame, &json, &other};
    for (size_t i = 0; i < 3; i++) {
        heard h = hear(all_three[i], false, i == 0, 1000, keep, false, NULL);
        char *want = kl_sprintf("ERROR %s\n", text);
        assert_string_equal(kl_buf_str(&h.text), want);
        kl_free(want);
        heard_fini(&h);
    }
    kl_projection_unref(keep);
    kl_buf_fini(&status);
    kl_buf_fini(&object);
    kl_buf_fini(&frame);
    kl_buf_fini(&json);
    kl_buf_fini(&other);
}

/* What is not a list, an error's Status, say, comes as the envelope. */
static void a_status_is_not_a_list(void **state)
{
    (void)state;
    for (size_t i = 0; i < all.n; i++) {
        if (!is_kind(&all.v[i], "v1", "Status"))
            continue;
        kl_buf b = {.data = all.v[i].proto, .len = all.v[i].n};
        heard h = hear(&b, true, true, 3, NULL, false, NULL);
        const kl_value *want = NULL;
        assert_int_equal(kl_value_decode(all.v[i].json, strlen(all.v[i].json), &want, NULL), KL_OK);
        char *text = kl_value_to_json(want);
        assert_string_equal(kl_buf_str(&h.text) + strlen("end "), text);
        kl_free(text);
        kl_value_unref(want);
        heard_fini(&h);
    }
}

static kl_status run(bool list, const kl_buf *b, size_t len, size_t max, bool *outdated, kl_err *err)
{
    heard h = {0};
    const kl_value *envelope = NULL;
    kl_stream_handler sh = {
        .item = on_item, .event = on_event, .arg = &h, .protobuf = true, .max_object = max};
    kl_stream *s = list ? kl_stream_list_new(&sh) : kl_stream_watch_new(&sh);
    kl_buf part = {.data = b->data, .len = len};
    kl_status st = feed(s, &part, 0, 50, err);
    if (!st)
        st = kl_stream_finish(s, &envelope, err);
    /* once failed, always failed, and told the same */
    else if (kl_stream_feed(s, "x", 1, NULL) != st)
        fail_msg("a failed stream went on");
    if (outdated)
        *outdated = kl_stream_outdated(s);
    kl_value_unref(envelope);
    kl_stream_free(s);
    heard_fini(&h);
    return st;
}

static void a_truncated_body_says_where(void **state)
{
    (void)state;
    bodies list = list_of("v1", "Pod"), watch = watch_of();
    kl_err err = KL_ERR_INIT;
    for (size_t n = 0; n < list.proto.len - 4; n += 1 + n / 20)
        assert_fails(
            run(true, &list.proto, n, 0, NULL, &err), KL_ESYNTAX, &err, "the list is truncated at byte ");
    assert_fails(run(false, &watch.proto, 2, 0, NULL, &err), KL_ESYNTAX, &err,
        "the watch stream is truncated at byte 2, inside watch event 1");
    assert_fails(run(false, &watch.proto, 300, 0, NULL, &err), KL_ESYNTAX, &err,
        "the watch stream is truncated at byte 300, inside watch event ");
    assert_ok(run(false, &watch.proto, 0, 0, NULL, &err), &err);
    bodies_fini(&list);
    bodies_fini(&watch);
}

static kl_status on_skipped(void *arg, const kl_stream_skipped *x, kl_err *err)
{
    heard *h = arg;
    (void)err;
    assert_non_null(strstr(x->message, "(shop/web) is larger than 5000 bytes; raise --max-object-bytes"));
    kl_buf_printf(&h->text, "skipped %s %.*s/%.*s ", x->type, (int)x->nslen, x->ns, (int)x->namelen, x->name);
    return KL_OK;
}

static void assert_skips(bool list, const kl_buf *b, const char *before, const char *after)
{
    for (size_t step = 1; step < 12000; step += step < 20 ? 1 : 977) {
        heard h = {0};
        kl_err err = KL_ERR_INIT;
        kl_stream_handler sh = {.item = on_item,
            .event = on_event,
            .skipped = on_skipped,
            .arg = &h,
            .protobuf = true,
            .max_object = 5000};
        kl_stream *s = list ? kl_stream_list_new(&sh) : kl_stream_watch_new(&sh);
        assert_ok(feed(s, b, 0, step, &err), &err);
        assert_ok(kl_stream_finish(s, NULL, &err), &err);
        assert_memory_equal(kl_buf_str(&h.text), before, strlen(before));
        assert_non_null(strstr(kl_buf_str(&h.text), after));
        assert_int_equal(h.n, 1);
        kl_stream_free(s);
        heard_fini(&h);
    }
}

static void an_object_above_the_ceiling_is_left_out_alone(void **state)
{
    (void)state;
    kl_buf meta = KL_BUF_INIT, pod = KL_BUF_INIT, small = KL_BUF_INIT, list = KL_BUF_INIT, body = KL_BUF_INIT,
           frame = KL_BUF_INIT, object = KL_BUF_INIT;
    char *long_text = kl_zalloc(9001);
    memset(long_text, 'x', 9000);
    put_text(&meta, 1, "web");
    put_text(&meta, 3, "shop");
    put_bytes(&pod, 1, meta.data, meta.len);
    put_bytes(&small, 1, meta.data, meta.len);
    put_text(&pod, 3, long_text);
    put_bytes(&list, 2, pod.data, pod.len);
    put_bytes(&list, 2, small.data, small.len);
    put_unknown(&body, "v1", "PodList", list.data, list.len);
    put_unknown(&object, "v1", "Pod", pod.data, pod.len);
    put_frame(&frame, "DELETED", object.data, object.len);
    kl_buf_clear(&object);
    put_unknown(&object, "v1", "Pod", small.data, small.len);
    put_frame(&frame, "ADDED", object.data, object.len);
    assert_skips(true, &body, "skipped  shop/web {", "\"name\":\"web\"");
    assert_skips(false, &frame, "skipped DELETED shop/web ADDED {", "\"name\":\"web\"");
    kl_buf_fini(&meta);
    kl_buf_fini(&pod);
    kl_buf_fini(&small);
    kl_buf_fini(&list);
    kl_buf_fini(&body);
    kl_buf_fini(&frame);
    kl_buf_fini(&object);
    kl_free(long_text);
}

static void an_object_above_the_ceiling_is_named(void **state)
{
    (void)state;
    kl_buf meta = KL_BUF_INIT, pod = KL_BUF_INIT, list = KL_BUF_INIT, body = KL_BUF_INIT, frame = KL_BUF_INIT,
           object = KL_BUF_INIT;
    char *long_text = kl_zalloc(9001);
    kl_err err = KL_ERR_INIT;
    memset(long_text, 'x', 9000);
    put_text(&meta, 1, "web");
    put_text(&meta, 3, "shop");
    put_bytes(&pod, 1, meta.data, meta.len);
    put_text(&pod, 3, long_text);
    put_bytes(&list, 2, pod.data, pod.len);
    put_unknown(&body, "v1", "PodList", list.data, list.len);
    put_unknown(&object, "v1", "Pod", pod.data, pod.len);
    put_frame(&frame, "ADDED", object.data, object.len);
    assert_fails(run(true, &body, body.len, 5000, NULL, &err), KL_ETOOBIG, &err,
        "list item 1 (shop/web) is larger than 5000 bytes; raise --max-object-bytes");
    assert_fails(run(false, &frame, frame.len, 5000, NULL, &err), KL_ETOOBIG, &err,
        "watch event 1 (shop/web) is larger than 5000 bytes; raise --max-object-bytes");
    kl_buf_fini(&meta);
    kl_buf_fini(&pod);
    kl_buf_fini(&list);
    kl_buf_fini(&body);
    kl_buf_fini(&frame);
    kl_buf_fini(&object);
    kl_free(long_text);
}

static void malformed_streams_say_where(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    bool outdated;
    kl_buf b = KL_BUF_INIT, raw = KL_BUF_INIT, pod = KL_BUF_INIT, object = KL_BUF_INIT;
    kl_buf_puts(&b, "{\"kind\":\"PodList\"}");
    assert_fails(run(true, &b, b.len, 0, NULL, &err), KL_ESYNTAX, &err,
        "the protobuf list is malformed at byte 0: \"k8s\" and a zero byte is expected");
    kl_buf_clear(&b);
    kl_buf_add(&b, "k8s\0\x0f", 5);
    assert_fails(run(true, &b, b.len, 0, NULL, &err), KL_ESYNTAX, &err,
        "malformed at byte 4: a field's tag is expected");
    kl_buf_clear(&b);
    kl_buf_add(&b, "\0\0\0\2\x0a\x7f", 6);
    assert_fails(run(false, &b, b.len, 0, NULL, &err), KL_ESYNTAX, &err,
        "watch event 1, which starts at byte 0: the protobuf has a malformed field");
    kl_buf_clear(&b);
    put_frame(&b, "ADDED", "", 0);
    assert_fails(run(false, &b, b.len, 0, NULL, &err), KL_ESYNTAX, &err, "does not begin with \"k8s\"");
    kl_buf_clear(&b);
    put_frame(&b, "", "k8s", 4);
    assert_fails(run(false, &b, b.len, 0, NULL, &err), KL_ESYNTAX, &err, "it needs a type and an object");

    put_text(&pod, 2, "\x0a\xff"); /* an item's error has item and field */
    put_bytes(&raw, 2, pod.data, pod.len);
    kl_buf_clear(&b);
    put_unknown(&b, "v1", "PodList", raw.data, raw.len);
    assert_fails(run(true, &b, b.len, 0, NULL, &err), KL_ESYNTAX, &err, "list item 1, which starts at byte");
    raw.data[1]++; /* longer than the list */
    kl_buf_clear(&b);
    put_unknown(&b, "v1", "PodList", raw.data, raw.len);
    assert_fails(run(true, &b, b.len, 0, NULL, &err), KL_ESYNTAX, &err,
        "a field that ends inside the list is expected");

    kl_buf_clear(&pod);
    put_text(&pod, 99, "new");
    put_unknown(&object, "v1", "Pod", pod.data, pod.len);
    kl_buf_clear(&b);
    put_frame(&b, "ADDED", object.data, object.len);
    assert_fails(run(false, &b, b.len, 0, &outdated, &err), KL_ESYNTAX, &err,
        "fields in protobuf that this version of kubelua does not know");
    assert_true(outdated);
    kl_buf_fini(&b);
    kl_buf_fini(&raw);
    kl_buf_fini(&pod);
    kl_buf_fini(&object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_cut_anywhere_give_the_same_as_json),
        cmocka_unit_test(watches_cut_anywhere_give_the_same_as_json),
        cmocka_unit_test(projections_cut_as_they_cut_json),
        cmocka_unit_test(projections_spare_errors),
        cmocka_unit_test(a_status_is_not_a_list),
        cmocka_unit_test(a_truncated_body_says_where),
        cmocka_unit_test(an_object_above_the_ceiling_is_named),
        cmocka_unit_test(an_object_above_the_ceiling_is_left_out_alone),
        cmocka_unit_test(malformed_streams_say_where),
    };
    return cmocka_run_group_tests(tests, read_objects, free_objects);
}

/* not in tsan: it starts no thread */
