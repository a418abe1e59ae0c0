/* yaml_block_test.c - block YAML that is read without libyaml has the value that libyaml gives it, and
 * anything that is not plain to see is left to libyaml. */
#include "support/test.h"

#include "base/mem.h"
#include "support/random_value.h"
#include "value/yaml.h"
#include "value/yaml_block.h"

typedef struct piece {
    const char *p;
    size_t n;
} piece;

static kl_status next_piece(void *from, char *into, size_t room, size_t *got, kl_err *err)
{
    piece *s = from;
    (void)err;
    *got = s->n < room ? s->n : room;
    memcpy(into, s->p, *got);
    s->p += *got;
    s->n -= *got;
    return KL_OK;
}

static kl_status take(void *arg, const kl_value *v, kl_err *err)
{
    (void)err;
    kl__stack_push(arg, v);
    return KL_OK;
}

/* Whether the text is read here; if it is, libyaml must agree. */
static bool is_read(const char *text, size_t n)
{
    kl_err err = KL_ERR_INIT;
    kl__stack ours = {0}, theirs = {0};
    bool read = kl__yaml_block(text, n, &ours);
    if (read) {
        kl_status st = kl_yaml_each_from(
            "t.yaml", &(kl_yaml_source){next_piece, &(piece){text, n}}, take, &theirs, &err);
        if (st)
            fail_msg("%s\nis no YAML: %s", text, kl_err_message(&err));
        assert_int_equal(ours.len, theirs.len);
        for (size_t i = 0; i < ours.len; i++)
            if (!kl_value_equal(ours.v[i], theirs.v[i]))
                fail_msg("%s\nreads as %s", text, kl_value_to_json(ours.v[i]));
    } else {
        assert_int_equal(ours.len, 0);
    }
    kl__stack_fini(&ours);
    kl__stack_fini(&theirs);
    return read;
}

static void reads_what_tools_print_as_libyaml_does(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "a: 1\n",
        "a: 1", /* without a line break at the end */
        "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata:\n    labels:\n      app: web\n"
        "    name: a\n  spec:\n    containers:\n    - args:\n      - --x=1\n      - -v\n      env: []\n"
        "      image: registry.example/web:1.2.3\n    securityContext: {}\nkind: List\n",
        "a:\n  b:\n  - - 1\n    - 2\n  - c: null\n  - d:\n  - ~\n",
        "a: \"x: y # z\"\nb: 'it''s'\n\"c d\": \"\\\"q\\\\\\n\\t\\r\"\n'e': ''\nf: \"\"\n",
        "a: -1\nb: 1.5\nc: yes\nd: 2001-01-01\ne: 0x1f\nf: 100m\ng: -x\nh: 1e3\ni: ~\nj: null\n",
        "f:metadata:\n  f:labels:\n    .: {}\n    f:app: {}\nk:{\"type\":\"Ready\"}:\n  f:status: {}\n",
        "a: b:c\nd: e#f\ng: h{}\n",
        "a: |\n  one\n    two\n\n  three\nb: |-\n  x\n  \ty\nc: 1\n",
        "a:\n- |\n  x\n- k: |\n    z\n    # no comment\n  w: 1\nb: 2\n",
        "---\na: 1\n---\n---\n- b\n---\n",
        "a: Grüße\nb: 日本\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!is_read(texts[i], strlen(texts[i])))
            fail_msg("left to libyaml:\n%s", texts[i]);
}

static void leaves_everything_else_to_libyaml(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "\n", "a", "{\"a\": 1}", "[a]", "a: 1\n\nb: 2\n", "# c\na: 1\n",
        "a: 1 # c\n", "a: {b: 1}\n", "a: [b]\n", "a: &x 1\nb: *x\n", "a: !!str 1\n", "a: >-\n  b\n",
        "a: |2\n  b\n", "a: |\n   b\n  c\n", "a: |\n  b", "a: |\n\n  b\n", "a: |\nb: 1\n", "a: b\n  c\n",
        "a:\n  b\n  c\n", "- a\n  b\n", "a: \"b\n  c\"\n", "a: \"\\u0041\"\n", "a: b: c\n", "a:b\n",
        "a : b\n", "a:  b\n", "a: b \n", "a:\tb\n", "a: \tb\n", "a: b\tc\n", "a: 'b' c\n", "a: 1\na: 2\n",
        "1: a\n", "y: a\n", "<<: {}\n", "? a\n: b\n", "-  a\n", "-\n  a\n", "- a\nb: c\n", "a: 1\n- b\n",
        "a:\n  b: 1\n c: 2\n", " a: 1\n", "a: .inf\n", "a: @b\n", "a: %b\n", "%YAML 1.1\n---\na: 1\n",
        "--- a\n", "a: 1\n...\n", "a: 1\r\n",
        "\xef\xbb\xbf"
        "a: 1\n",
        "a: \xc2\x85\n", "a: \xff\n", "a: \x01\n", "a: -\n", "a: - b\n", "a: ? b\n", "a: =\n", "a: #b\n",
        "a: `b\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (is_read(texts[i], strlen(texts[i])))
            fail_msg("read without libyaml:\n%s", texts[i]);
    char deep[2 * 200 + 3];
    for (size_t i = 0; i < 200; i++)
        memcpy(deep + 2 * i, "- ", 2);
    memcpy(deep + 400, "a\n", 3);
    assert_false(is_read(deep, strlen(deep)));
}

static void agrees_with_libyaml_about_random_values_and_damaged_texts(void **state)
{
    (void)state;
    size_t read = 0, damaged = 0;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        rng r = rng_of(seed);
        const kl_value *v = random_object(&r, true);
        kl_buf text = KL_BUF_INIT;
        assert_int_equal(kl_yaml_encode(v, &text), KL_OK);
        read += is_read(kl_buf_str(&text), text.len);
        for (int i = 0; i < 40 && text.len; i++) {
            static const char bytes[] = " \n:-'\"|#a{}[]\t";
            char *at = &text.data[rng_below(&r, (uint32_t)text.len)], was = *at;
            *at = bytes[rng_below(&r, sizeof bytes - 1)];
            damaged += is_read(kl_buf_str(&text), text.len);
            *at = was;
        }
        kl_buf_fini(&text);
        kl_value_unref(v);
    }
    assert_true(read > 20);
    assert_true(damaged > 100);
}

static void long_texts_are_read_as_short_ones(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    kl_buf text = KL_BUF_INIT;
    for (int i = 0; i < 20000; i++)
        assert_int_equal(kl_buf_printf(&text, "key%d: some value\n", i), KL_OK);
    const kl_value *v = NULL;
    assert_ok(kl_yaml_decode("t.yaml", kl_buf_str(&text), text.len, &v, &err), &err);
    assert_int_equal(kl_value_len(v), 20000);
    assert_string_equal(kl_value_str_at(v, "key19999", NULL), "some value");
    kl_value_unref(v);
    assert_int_equal(kl_buf_printf(&text, "key7: again\n"), KL_OK);
    assert_fails(kl_yaml_decode("t.yaml", kl_buf_str(&text), text.len, &v, &err), KL_ESYNTAX, &err,
        "t.yaml:20001:1: duplicate key \"key7\"");
    kl_buf_fini(&text);
}

#define CASE(f) cmocka_unit_test_teardown(f, nothing_left)
KL_TESTS(CASE(reads_what_tools_print_as_libyaml_does), CASE(leaves_everything_else_to_libyaml),
    CASE(agrees_with_libyaml_about_random_values_and_damaged_texts), CASE(long_texts_are_read_as_short_ones))

/* not in tsan: it starts no thread */
