/* jsonpatch.c - what changed, as a JSON patch: "remove", "add" and "replace" where the two trees part.
 *
 * A list's equal front and back are skipped; of the middle, items that stand against each other are
 * compared, and what is over is removed from its end, or added there. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "value/patch.h"

typedef struct diff {
    kl_builder *b;
    kl_buf path; /* a JSON pointer */
} diff;

/* Adds a step to the path. Returns the length before it, for back(). */
static size_t step(diff *d, const char *key, size_t n)
{
    size_t before = d->path.len;
    kl_buf_putc(&d->path, '/');
    for (size_t i = 0; i < n; i++) {
        if (key[i] == '~')
            kl_buf_puts(&d->path, "~0");
        else if (key[i] == '/')
            kl_buf_puts(&d->path, "~1");
        else
            kl_buf_putc(&d->path, key[i]);
    }
    return before;
}

static size_t step_item(diff *d, size_t i)
{
    char text[24];
    int n = snprintf(text, sizeof text, "%zu", i);
    return step(d, text, (size_t)n);
}

static void back(diff *d, size_t to) { d->path.len = to; }

static void say(diff *d, const char *op, const kl_value *v)
{
    kl_build_object(d->b);
    kl_build_kstr(d->b, "op", op);
    kl_build_key(d->b, "path");
    kl_build_strn(d->b, kl_buf_str(&d->path), d->path.len);
    kl_build_kvalue(d->b, "value", v);
    kl_build_end(d->b);
}

static void compare(diff *d, const kl_value *from, const kl_value *to);

static void compare_objects(diff *d, const kl_value *from, const kl_value *to)
{
    const char *key;
    size_t n;
    for (size_t i = 0; i < kl_value_len(from); i++) {
        kl_value_member(from, i, &key, &n);
        if (kl_value_getn(to, key, n))
            continue;
        size_t before = step(d, key, n);
        say(d, "remove", NULL);
        back(d, before);
    }
    for (size_t i = 0; i < kl_value_len(to); i++) {
        const kl_value *now = kl_value_member(to, i, &key, &n), *was = kl_value_getn(from, key, n);
        size_t before = step(d, key, n);
        if (was)
            compare(d, was, now);
        else
            say(d, "add", now);
        back(d, before);
    }
}

static void compare_lists(diff *d, const kl_value *from, const kl_value *to)
{
    size_t n = kl_value_len(from), m = kl_value_len(to), front = 0, tail = 0;
    while (front < n && front < m && kl_value_equal(kl_value_item(from, front), kl_value_item(to, front)))
        front++;
    while (tail < n - front && tail < m - front
        && kl_value_equal(kl_value_item(from, n - 1 - tail), kl_value_item(to, m - 1 - tail)))
        tail++;
    n -= tail;
    m -= tail;
    size_t both = n < m ? n : m;
    for (size_t i = front; i < both; i++) {
        size_t before = step_item(d, i);
        compare(d, kl_value_item(from, i), kl_value_item(to, i));
        back(d, before);
    }
    for (size_t i = n; i > both; i--) {
        size_t before = step_item(d, i - 1);
        say(d, "remove", NULL);
        back(d, before);
    }
    for (size_t i = both; i < m; i++) {
        size_t before = step_item(d, i);
        say(d, "add", kl_value_item(to, i));
        back(d, before);
    }
}

static void compare(diff *d, const kl_value *from, const kl_value *to)
{
    kl_type a = kl_value_type(from), b = kl_value_type(to);
    if (kl_value_equal(from, to))
        return;
    if (a == KL_OBJECT && b == KL_OBJECT)
        compare_objects(d, from, to);
    else if (a == KL_ARRAY && b == KL_ARRAY)
        compare_lists(d, from, to);
    else
        say(d, "replace", to);
}

const kl_value *kl_json_patch_create(const kl_value *from, const kl_value *to)
{
    diff d = {kl_builder_new(), KL_BUF_INIT};
    kl_build_array(d.b);
    compare(&d, from, to);
    kl_build_end(d.b);
    kl_buf_fini(&d.path);
    return kl_builder_done(d.b);
}
