/* past_test.c - lines of a recording become events and runs with their inputs. */
#include "support/test.h"

#include "base/mem.h"
#include "model/object.h"
#include "lab/past.h"

#define HEAD                                                                                                 \
    "{'t':'tape','format':1,'version':'1.2.3','recording':'rec','file':2,'at':5,'secrets':'plain','scripts'" \
    ":[{'path':'x.lua'}]}\n"
#define KINDS                                                                                                \
    "{'t':'kind','kind':'v1/"                                                                                \
    "Pod','group':'','version':'v1','is':'Pod','plural':'pods','namespaced':true,'sub':['status']}\n"        \
    "{'t':'cache','c':7,'label':'v1/Pod (labels a=b)','kind':'v1/Pod','labels':'a=b'}\n"
#define PODS                                                                                                 \
    "{'t':'put','c':7,'o':11,'v':{'metadata':{'name':'a'}}}\n{'t':'put','c':7,'o':12,'v':{'metadata':{'"     \
    "name':'b'}}}\n"                                                                                         \
    "{'t':'put','c':7,'o':13,'v':{'metadata':{'name':'c'}}}\n"
#define BEGAN                                                                                                \
    "{'t':'began','r':'r1','at':100,'controller':'x','worker':3,'key':'ns/"                                  \
    "a','attempt':4,'generation':2,'epoch':9,'o':11,'why':'added','events':2}\n"

static kl_status read(const char *text, kl_past **out, kl_err *err)
{
    char *t = kl_strdup(text);
    for (char *c = t; *c; c++)
        if (*c == '\'')
            *c = '"';
    kl_status st = kl_past_read_text("tape", t, strlen(t), out, err);
    kl_free(t);
    return st;
}

static kl_past *good(const char *text)
{
    kl_past *p = NULL;
    kl_err err = KL_ERR_INIT;
    assert_ok(read(text, &p, &err), &err);
    return p;
}

static void a_run_has_its_recorded_inputs(void **state)
{
    (void)state;
    kl_past *p = good(HEAD KINDS PODS BEGAN
        "{'t':'get','r':'r1','kind':'v1/Pod','ns':'ns','name':'a','o':12}\n{'t':'get','r':'r1','kind':'v1/"
        "Pod','name':'z'}\n"
        "{'t':'clock','r':'r1','at':101}\n{'t':'asked','r':'r1','n':1,'what':'call','op':{'verb':'get'}}\n"
        "{'t':'answered','r':'r1','n':1,'at':110,'error':{'is':'conflict','code':409,'message':'no'}}\n{'t':'"
        "asked','r':'r1','n':2,'what':'sleep','wait':5}\n"
        "{'t':'answered','r':'r1','n':2,'at':120}\n{'t':'ended','r':'r1','at':130,'result':'after','after':7,"
        "'message':'m'}\n");
    assert_string_equal(p->version, "1.2.3");
    assert_int_equal(p->first_file, 2);
    assert_int_equal(p->began, 100);
    assert_int_equal(p->ended, 130);
    assert_int_equal(p->n_runs, 1);
    const kl_past_run *r = p->runs[0];
    assert_int_equal(r->worker, 3);
    assert_int_equal(r->attempt, 4);
    assert_int_equal(r->epoch, 9);
    assert_string_equal(r->why, "added");
    assert_string_equal(kl_object_name(r->object), "a");
    assert_int_equal(r->gets.n, 2);
    assert_string_equal(kl_object_name(r->gets.v[0].found), "b");
    assert_null(r->gets.v[1].found);
    assert_int_equal(r->clocks[0], 101);
    assert_int_equal(r->asked[0].status, KL_ECONFLICT);
    assert_string_equal(r->asked[1].what, "sleep");
    assert_true(r->asked[1].answered);
    assert_string_equal(r->result, "after");
    assert_int_equal(r->after, 7);
    assert_int_equal(p->n_events, 1 + 3 + 1 + 2 + 1);
    kl_past_free(p);
}

static void a_set_is_another_with_a_part_replaced(void **state)
{
    (void)state;
    kl_past *p = good(HEAD KINDS PODS BEGAN
        "{'t':'set','s':1,'ids':[11,12,13]}\n{'t':'object','o':14,'v':{'metadata':{'name':'d'}}}\n"
        "{'t':'set','s':2,'of':1,'head':1,'tail':1,'ids':[14,12]}\n{'t':'set','s':3,'of':2,'head':2,'tail':0,"
        "'ids':[]}\n"
        "{'t':'list','r':'r1','kind':'v1/Pod','query':'ns=a','s':2}\n{'t':'list','r':'r1','kind':'v1/"
        "Pod','query':'','s':3}\n");
    const kl_past_saws *l = &p->runs[0]->lists;
    assert_int_equal(l->n, 2);
    static const char *const first[] = {"a", "d", "b", "c"};
    assert_int_equal(l->v[0].set->n, 4);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(kl_object_name(l->v[0].set->v[i]), first[i]);
    assert_int_equal(l->v[1].set->n, 2);
    assert_false(p->runs[0]->ended);
    kl_past_free(p);
}

static void earlier_runs_are_skipped_and_a_torn_end_is_noticed(void **state)
{
    (void)state;
    kl_past *p = good(HEAD KINDS PODS "{'t':'clock','r':'old','at':1}\n{'t':'ended','r':'old','at':2,'result'"
                                      ":'done'}\n{'t':'clock','r':'older','at':1}\n" BEGAN "{'t':'en");
    assert_int_equal(p->headless, 2);
    assert_int_equal(p->n_runs, 1);
    assert_true(p->torn);
    kl_past_free(p);
}

static void an_error_is_reported_with_its_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } cases[] = {
        {HEAD KINDS "{'t':'put','c':7,'o':11}\n", "tape:4: object 11 is not in the recording"},
        {HEAD KINDS "{'t':'put','c':8,'o':11,'v':{}}\n", "tape:4: cache 8 is not in the recording"},
        {HEAD KINDS PODS "{'t':'set','s':1,'ids':[99]}\n", "tape:7: object 99 is not in the recording"},
        {HEAD KINDS PODS "{'t':'set','s':2,'of':1,'ids':[]}\n", "set 1 is not in the recording"},
        {HEAD KINDS PODS "{'t':'set','s':1,'ids':[11]}\n{'t':'set','s':2,'of':1,'head':2,'ids':[]}\n",
            "takes more items of set 1 than it has"},
        {HEAD KINDS PODS "{'t':'set','s':1,'ids':[11]}\n{'t':'set','s':1,'ids':[]}\n",
            "set 1 is recorded twice"},
        {HEAD KINDS PODS "{'t':'began','r':'r1','controller':'x','key':'a','o':11,'worker':1001}\n",
            "tape:7: the worker of run r1 must be from 1 to 1000"},
        {HEAD KINDS PODS BEGAN BEGAN, "run r1 begins twice"},
        {HEAD KINDS PODS BEGAN "{'t':'asked','r':'r1','n':2,'what':'sleep'}\n",
            "question 1 of run r1 is missing"},
        {HEAD KINDS PODS BEGAN "{'t':'asked','r':'r1','n':1,'what':'call'}\n", "of a call has no \"op\""},
        {HEAD KINDS PODS BEGAN "{'t':'answered','r':'r1','n':1}\n", "which was not asked"},
        {HEAD KINDS PODS BEGAN "{'t':'ended','r':'r1','result':'done'}\n{'t':'clock','r':'r1','at':1}\n",
            "run r1 continues after its end"},
        {HEAD KINDS PODS BEGAN "{'t':'ended','r':'r1'}\n", "the record \"ended\" has no \"result\""},
        {HEAD "{'t':'kind','kind':'v1/Pod'}\n", "the record \"kind\" has no \"group\""},
        {HEAD "{'x':1}\n", "tape:2: not a record: it has no \"t\""},
        {HEAD "[1]\n", "tape:2: not a record"},
        {"{'t':'tape','format':2,'version':'9','recording':'a'}\n",
            "written by kubelua 9; this one reads format 1"},
        {"{'t':'put'}\n", "tape is not a recording"},
        {"", "tape is empty"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kl_past *p = NULL;
        kl_err err = KL_ERR_INIT;
        assert_fails(read(cases[i].text, &p, &err), KL_ESYNTAX, &err, cases[i].part);
    }
}

/* A short line takes a whole set over, or names one more cache. */
static void short_lines_do_not_become_much(void **state)
{
    (void)state;
    kl_past *p = NULL;
    kl_err err = KL_ERR_INIT;
    kl_buf text = KL_BUF_INIT;
    kl_buf_puts(&text, HEAD KINDS PODS "{'t':'set','s':1,'ids':[11");
    for (int i = 1; i < 100000; i++)
        kl_buf_puts(&text, ",11");
    kl_buf_puts(&text, "]}\n");
    for (int i = 2; i < 2000; i++)
        kl_buf_printf(&text, "{'t':'set','s':%d,'of':1,'head':100000,'ids':[]}\n", i);
    assert_fails(read(kl_buf_str(&text), &p, &err), KL_ESYNTAX, &err, "lists of more than 134217728 objects");
    kl_buf_clear(&text);
    kl_buf_puts(&text, HEAD);
    for (int i = 0; i < 1001; i++)
        kl_buf_printf(&text, "{'t':'cache','c':%d,'label':'v1/Pod','kind':'v1/Pod'}\n", i);
    assert_fails(read(kl_buf_str(&text), &p, &err), KL_ESYNTAX, &err, "tape:1002: more than 1000 caches");
    kl_buf_clear(&text);
    kl_buf_puts(&text, HEAD);
    for (int i = 0; i < 1001; i++)
        kl_buf_printf(
            &text, "{'t':'kind','kind':'v1/K%d','group':'','version':'v1','is':'K','plural':'ks'}\n", i);
    assert_fails(read(kl_buf_str(&text), &p, &err), KL_ESYNTAX, &err, "tape:1002: more than 1000 kinds");
    kl_buf_fini(&text);
}

KL_TESTS(cmocka_unit_test(a_run_has_its_recorded_inputs),
    cmocka_unit_test(a_set_is_another_with_a_part_replaced),
    cmocka_unit_test(earlier_runs_are_skipped_and_a_torn_end_is_noticed),
    cmocka_unit_test(an_error_is_reported_with_its_line), cmocka_unit_test(short_lines_do_not_become_much))

/* not in tsan: it starts no thread */
