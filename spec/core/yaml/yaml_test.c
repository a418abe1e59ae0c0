/* yaml_test.c - YAML as sigs.k8s.io/yaml reads it, errors with file, line and column, and text that reads
 * back. */
#include "support/test.h"

#include "base/mem.h"
#include "yaml/yaml_impl.h"
#include "support/random_value.h"

static void assert_reads(const char *yaml, const char *json)
{
    kl_err err = KL_ERR_INIT;
    const kl_value *v = NULL;
    assert_ok(kl_yaml_decode("t.yaml", yaml, strlen(yaml), &v, &err), &err);
    char *got = kl_value_to_json(v);
    if (strcmp(got, json))
        fail_msg("%s\nreads as %s\nwanted %s", yaml, got, json);
    kl_free(got);
    kl_value_unref(v);
}

static void assert_refused(const char *yaml, const char *part)
{
    kl_err err = KL_ERR_INIT;
    const kl_value *v = NULL;
    assert_fails(kl_yaml_decode("t.yaml", yaml, strlen(yaml), &v, &err), KL_ESYNTAX, &err, part);
    assert_null(v);
}

static void reads_plain_scalars_as_yaml_1_1(void **state)
{
    (void)state;
    assert_reads("[yes, No, on, OFF, y, N, true, False, yep, null, ~, Null, nil]",
        "[true,false,true,false,true,false,true,false,\"yep\",null,null,null,\"nil\"]");
    assert_reads("[0, -1, +5, 1_000, 0x1F, 0b101, 0o17, 017, 08, 9223372036854775807, 18446744073709551615, "
                 "-9223372036854775808]",
        "[0,-1,5,1000,31,5,15,15,8,9223372036854775807,18446744073709551615,-9223372036854775808]");
    assert_reads("[1.5, .5, 1., 1e3, -2.5e-3, 1.0, +1.25, 18446744073709551616]",
        "[1.5,0.5,1,1000,-0.0025,1,1.25,1.8446744073709552e+19]");
    assert_reads("[2001-01-01, 1:30, 1.2.3, 0x, 0xzz, 1e, '-', -x, 100m, 1Gi, .a, 12_]",
        "[\"2001-01-01\",\"1:30\",\"1.2.3\",\"0x\",\"0xzz\",\"1e\",\"-\",\"-x\",\"100m\",\"1Gi\",\".a\",12]");
    assert_reads("['yes', \"1\", !!str 1, !!int \"7\", !!float 3, !!bool \"yes\", !!null \"\", ! 12, "
                 "!!timestamp 2001-01-01]",
        "[\"yes\",\"1\",\"1\",7,3,true,null,\"12\",\"2001-01-01\"]");
    assert_refused("a: .inf", "t.yaml:1:4: `.inf` has no form in JSON");
    assert_refused("a: !!int x", "`x` cannot be read as !!int");
    assert_refused("a: !Ref x", "tag !Ref is not supported");
    assert_refused("a: !!set {x}", "tag tag:yaml.org,2002:set is not supported");
}

static void reads_manifests(void **state)
{
    (void)state;
    assert_reads("apiVersion: v1\nkind: Pod\nmetadata:\n  name: a # comment\n  labels: {app: web, \"on\": "
                 "\"off\"}\nspec:\n  containers:\n  - name: c\n    args: [\"--x=1\", '-v']\n  empty: {}\n  "
                 "none: []\n  text: |\n    a\n     b\n  fold: >-\n    a\n    b\n",
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"labels\":{\"app\":\"web\","
        "\"on\":\"off\"}},\"spec\":{\"containers\":[{\"name\":\"c\",\"args\":[\"--x=1\",\"-v\"]}],\"empty\":{"
        "},\"none\":[],\"text\":\"a\\n b\\n\",\"fold\":\"a b\"}}");
    assert_reads("", "{}");
    assert_reads("# nothing\n---\n", "{}");
    assert_reads(
        "{\"a\": \"\\ud83d\\ude00\\/\",\t\"b\": [1,\n2]}", "{\"a\":\"\xf0\x9f\x98\x80/\",\"b\":[1,2]}");
    assert_reads("{a: 1, b: [x, w]}", "{\"a\":1,\"b\":[\"x\",\"w\"]}");
}

static void keys_become_text(void **state)
{
    (void)state;
    assert_reads(
        "1: a\noff: b\n1.5: c\n0x10: d\n", "{\"1\":\"a\",\"false\":\"b\",\"1.5\":\"c\",\"16\":\"d\"}");
    assert_refused("~: a", "a key must be text, and this one is of type null");
    assert_refused("? [a]\n: b", "of type array");
    assert_refused("a: 1\nb: 2\na: 3\n", "t.yaml:3:1: duplicate key \"a\"");
    assert_refused("true: a\non: b", "duplicate key \"true\"");
}

static void follows_anchors_and_merge_keys(void **state)
{
    (void)state;
    assert_reads("a: &x {i: 1, m: [1]}\nb: *x\nc: [*x, &y z, *y]",
        "{\"a\":{\"i\":1,\"m\":[1]},\"b\":{\"i\":1,\"m\":[1]},\"c\":[{\"i\":1,\"m\":[1]},\"z\",\"z\"]}");
    assert_reads("base: &b {x: 1, w: 2}\nuse:\n  w: 3\n  <<: *b\n  z: 4\n",
        "{\"base\":{\"x\":1,\"w\":2},\"use\":{\"w\":3,\"z\":4,\"x\":1}}");
    assert_reads("- &a {x: 1, w: 1}\n- &b {w: 2, z: 2}\n- <<: [*a, *b]\n",
        "[{\"x\":1,\"w\":1},{\"w\":2,\"z\":2},{\"x\":1,\"w\":1,\"z\":2}]");
    assert_reads("\"<<\": 1", "{\"<<\":1}");
    assert_refused("<<: 1", "<< takes a mapping");
    assert_refused("<<: [1]", "<< takes a mapping");
    assert_refused("<<: {}\n<<: {}", "duplicate key \"<<\"");
    assert_refused("a: *nope", "t.yaml:1:4: the alias *nope has no anchor before it");
    assert_refused("a: &a [*a]", "no anchor before it");
    assert_refused("---\na: &x 1\n---\nb: *x", "no anchor before it");
}

static void refuses_a_billion_laughs(void **state)
{
    (void)state;
    kl_buf b = KL_BUF_INIT;
    kl_buf_puts(&b, "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n");
    for (int i = 1; i < 12; i++) {
        kl_buf_printf(&b, "a%d: &a%d [", i, i);
        for (int k = 0; k < 9; k++)
            kl_buf_printf(&b, "%s*a%d", k ? ", " : "", i - 1);
        kl_buf_puts(&b, "]\n");
    }
    assert_refused(kl_buf_str(&b), "aliases stand for more than 400000 values");
    kl_buf_fini(&b);
}

static void refuses_what_is_no_yaml_and_says_where(void **state)
{
    (void)state;
    assert_refused("a: [1, 2\nb: 3", "t.yaml:2:");
    assert_refused("a: b: c", "t.yaml:1:5: mapping values are not allowed");
    assert_refused("\ta: 1", "t.yaml:1:1:");
    assert_refused("a: \"x", "t.yaml:");
    assert_refused("a: 1\n b: 2", "t.yaml:2:");
    assert_refused("a: \xff", "t.yaml: byte 3:");
    assert_refused("a: 1\n---\nb: 2", "expected one document");
    assert_refused("{\"a\": tru", "t.yaml:");
    kl_buf b = KL_BUF_INIT;
    for (int i = 0; i < 600; i++)
        kl_buf_putc(&b, '[');
    assert_refused(kl_buf_str(&b), "deeper than 512");
    kl_buf_fini(&b);
}

typedef struct docs {
    kl_buf text;
    size_t n, stop_at;
} docs;

static kl_status on_doc(void *arg, const kl_value *v, kl_err *err)
{
    docs *d = arg;
    kl_value_encode(v, &d->text);
    kl_value_unref(v);
    return ++d->n == d->stop_at ? kl_fail(err, KL_ECANCELLED, "enough") : KL_OK;
}

static void gives_each_document_and_skips_the_empty_ones(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    docs d = {0};
    const char *text = "---\n---\na: 1\n---\n# only a comment\n---\nb: 2\n...\n---\n- c\n---\n";
    assert_ok(kl_yaml_each("t.yaml", text, strlen(text), on_doc, &d, &err), &err);
    assert_string_equal(kl_buf_str(&d.text), "{\"a\":1}{\"b\":2}[\"c\"]");
    d.n = 0;
    d.stop_at = 2;
    assert_fails(kl_yaml_each("t.yaml", text, strlen(text), on_doc, &d, &err), KL_ECANCELLED, &err, "enough");
    assert_int_equal(d.n, 2);
    kl_buf_fini(&d.text);
}

typedef struct drops {
    const char *text;
    size_t at, breaks_at;
} drops;

/* One byte at a time. */
static kl_status next_drop(void *from, char *piece, size_t room, size_t *got, kl_err *err)
{
    drops *d = from;
    assert_true(room > 0);
    if (d->breaks_at && d->at == d->breaks_at)
        return kl_fail(err, KL_EIO, "the source broke");
    *got = d->text[d->at] != 0;
    if (*got)
        *piece = d->text[d->at++];
    return KL_OK;
}

static void reads_from_a_source_piece_by_piece(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    docs d = {0};
    drops from = {.text = "a: [1, {b: c}]\n---\n# nothing\n---\n{\"d\": \"e\"}\n"};
    const kl_yaml_source source = {next_drop, &from};
    assert_ok(kl_yaml_each_from("t.yaml", &source, on_doc, &d, &err), &err);
    assert_string_equal(kl_buf_str(&d.text), "{\"a\":[1,{\"b\":\"c\"}]}{\"d\":\"e\"}");
    from = (drops){.text = "a: [1\n", .at = 0};
    assert_fails(kl_yaml_each_from("t.yaml", &source, on_doc, &d, &err), KL_ESYNTAX, &err, "t.yaml:2:1: ");
    from = (drops){.text = "a: [1, 2, 3]\n", .breaks_at = 8};
    assert_fails(kl_yaml_each_from("t.yaml", &source, on_doc, &d, &err), KL_EIO, &err, "the source broke");
    kl_buf_fini(&d.text);
}

typedef struct told {
    docs d;
    kl_err err;
    kl_status st;
} told;

/* The same text read part by part, piece by piece, and by libyaml alone. */
static void reads_alike(const char *text, told *t)
{
    drops from = {.text = text};
    const kl_yaml_source source = {next_drop, &from};
    kl__yaml_text whole = {.text = {NULL, text}, .left = {0, strlen(text)}};
    t[0].st = kl__yaml_parts("t.yaml", text, strlen(text), NULL, on_doc, &t[0].d, &t[0].err);
    t[1].st = kl_yaml_each_from("t.yaml", &source, on_doc, &t[1].d, &t[1].err);
    t[2].st = kl__yaml_libyaml("t.yaml", &whole, on_doc, &t[2].d, &t[2].err);
    kl__yaml_forget_anchors(&whole);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(t[i].st, t[2].st);
        assert_string_equal(kl_err_message(&t[i].err), kl_err_message(&t[2].err));
        if (!t[2].st)
            assert_string_equal(kl_buf_str(&t[i].d.text), kl_buf_str(&t[2].d.text));
    }
}

static void told_drop(told *t)
{
    for (size_t i = 0; i < 3; i++) {
        kl_buf_fini(&t[i].d.text);
        kl_err_fini(&t[i].err);
    }
}

#define LIST "apiVersion: v1\nitems:\n"
#define POD "- kind: Pod\n  metadata:\n    name: a\n"

static void reads_in_parts_what_libyaml_reads_whole(void **state)
{
    (void)state;
    static const char *const texts[] = {
        LIST POD POD POD "kind: List\nmetadata:\n  resourceVersion: \"\"\n",
        LIST POD "kind: List\n---\n" LIST "  - a: 1\n  # between\n\n  - b\n  - [c, d]\nkind: List\n",
        LIST "- &x {a: 1}\n- *x\n- <<: *x\n  b: 2\n- - - c\n-\nkind: List\n",
        LIST "- |\n  one\n\n   two\n- |-\n  - no item\n- |+\n  kept\n\n- >\n  folded\n  text\n- last\n",
        LIST "- 'it''s\n  folded'\n- \"a\\tb \\\n  \\ c\\u00e9\\x41\"\n- plain\n  text\n\n  here # "
             "comment\n- \"\n- no item\"\n",
        LIST "- yes\n- 0x1F\n- 1.5\n- 1.0\n- 12345678901234567890\n- ~\n- .5\n- -1\n- a: {}\n  b: []\n  c:\n "
             " d: x#y: z\n",
        "items:\n- a\nitems:\n- b\n",
        "a: \"x\nitems:\n- y\"\nb: 1\n",
        "items:\n    - a\n    - b\n  c: 1\n",
        "items:\n  - a\n  - b\n- c\n",
        LIST POD "- a: 1\n  a: 2\n" POD "kind: List\n",
        LIST POD "- a: 1\n   b: 2\n" POD "kind: List\n",
        LIST POD "- a: *nobody\n" POD "kind: List\n",
        LIST POD POD "kind: List\n  more: 1\n",
        LIST POD "\t- b\nkind: List\n",
        LIST POD POD "%TAG ! x\n",
        LIST POD POD "...\n---\nb: 1\n",
        LIST POD "- gr\u00fc\u00dfe\n- \u2028\n- \xc2\x85 x\n- a: [\n",
        "--- # one\na: 1\n--- {b: 2}\n---\n---\n- c\n--- |\n text\n",
        "a: 1\n---\n? complex\n: key\n---\nb: !!str 1\n---\nc: !x 1\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        told t[3] = {0};
        reads_alike(texts[i], t);
        told_drop(t);
    }
}

static bool is_a_pod(void *from, const kl_value *item)
{
    (void)from;
    return !strcmp(kl_value_str_at(item, "kind", NULL), "Pod");
}

static void keeps_only_the_items_that_are_wanted(void **state)
{
    (void)state;
    static const char *const others[] = {"- kind: Event\n", "- {kind: Event}\n", "- &x {kind: Event}\n"};
    for (size_t i = 0; i < 3; i++)
        for (size_t place = 0; place < 3; place++) {
            kl_err err = KL_ERR_INIT;
            docs d = {0};
            kl_buf text = KL_BUF_INIT;
            kl_buf_puts(&text, LIST);
            for (size_t k = 0; k < 3; k++)
                kl_buf_puts(&text, k == place ? others[i] : "- {kind: Pod}\n");
            kl_buf_puts(&text, "kind: List\n");
            drops from = {.text = kl_buf_str(&text)};
            const kl_yaml_source source = {.next = next_drop, .from = &from, .wanted = is_a_pod};
            assert_ok(kl_yaml_each_from("t.yaml", &source, on_doc, &d, &err), &err);
            assert_string_equal(kl_buf_str(&d.text),
                "{\"apiVersion\":\"v1\",\"items\":[{\"kind\":\"Pod\"},{\"kind\":\"Pod\"}],\"kind\":"
                "\"List\"}");
            kl_buf_fini(&d.text);
            kl_buf_fini(&text);
        }
}

static void writes_text_that_reads_back(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        rng r = rng_of(seed);
        const kl_value *v = random_object(&r, true), *back = NULL;
        kl_buf b = KL_BUF_INIT;
        assert_int_equal(kl_yaml_encode(v, &b), KL_OK);
        assert_ok(kl_yaml_decode("t.yaml", kl_buf_str(&b), b.len, &back, &err), &err);
        if (!kl_value_equal(v, back))
            fail_msg("seed %d:\n%s", (int)seed, kl_buf_str(&b));
        kl_value_unref(v);
        kl_value_unref(back);
        kl_buf_fini(&b);
    }
}

static void writes_block_style_and_quotes_what_would_turn(void **state)
{
    (void)state;
    const char *json = "{\"a\":\"yes\",\"on\":\"1\",\"l\":[{\"x\":1,\"y\":\"two "
                       "words\"},[]],\"e\":{},\"t\":\"a\\nb\\n\",\"n\":null,\"z\":\"\"}";
    const kl_value *v = NULL;
    kl_buf b = KL_BUF_INIT;
    assert_int_equal(kl_value_decode(json, strlen(json), &v, NULL), KL_OK);
    assert_int_equal(kl_yaml_encode(v, &b), KL_OK);
    assert_string_equal(kl_buf_str(&b),
        "a: 'yes'\n'on': '1'\nl:\n- x: 1\n  'y': two words\n- []\ne: {}\nt: |\n  a\n  b\n'n': null\nz: ''\n");
    kl_buf_fini(&b);
    kl_buf_init(&b, 10);
    assert_int_equal(kl_yaml_encode(v, &b), KL_ETOOBIG);
    kl_buf_fini(&b);
    kl_value_unref(v);
    kl_builder *deep = kl_builder_new();
    for (int i = 0; i < 600; i++)
        kl_build_array(deep);
    for (int i = 0; i < 600; i++)
        kl_build_end(deep);
    v = kl_builder_done(deep);
    assert_int_equal(kl_yaml_encode(v, &b), KL_ETOOBIG);
    kl_buf_fini(&b);
    kl_value_unref(v);
}

#define CASE(f) cmocka_unit_test_teardown(f, nothing_left)
KL_TESTS(CASE(reads_plain_scalars_as_yaml_1_1), CASE(reads_manifests), CASE(keys_become_text),
    CASE(follows_anchors_and_merge_keys), CASE(refuses_a_billion_laughs),
    CASE(refuses_what_is_no_yaml_and_says_where), CASE(gives_each_document_and_skips_the_empty_ones),
    CASE(reads_from_a_source_piece_by_piece), CASE(reads_in_parts_what_libyaml_reads_whole),
    CASE(keeps_only_the_items_that_are_wanted), CASE(writes_text_that_reads_back),
    CASE(writes_block_style_and_quotes_what_would_turn))

/* not in tsan: it starts no thread */
