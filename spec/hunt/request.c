/* request.c - requests that a webhook is asked, good ones and such as only an attacker of its port sends:
 * members are missing, of another type, deep, long or no names. They go through the parser of the real ones.
 */
#include "hunt.h"

#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "webhook/admission.h"

static const struct {
    const char *name, *good;
} MEMBERS[] = {
    {"kind", "{\"group\":\"\",\"version\":\"v1\",\"kind\":\"Pod\"}"},
    {"resource", "{\"group\":\"\",\"version\":\"v1\",\"resource\":\"pods\"}"},
    {"subResource", "\"status\""},
    {"name", "\"a\""},
    {"namespace", "\"default\""},
    {"userInfo", "{\"username\":\"me\",\"groups\":[\"g\"]}"},
    {"object",
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"namespace\":\"default\","
        "\"labels\":{\"app\":\"a\"}},\"spec\":{\"containers\":[{\"name\":\"main\",\"image\":\"i\"}]}}"},
    {"oldObject", "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"}}"},
    {"options", "{\"apiVersion\":\"meta.k8s.io/v1\",\"kind\":\"CreateOptions\"}"},
    {"dryRun", "false"},
};
#define N_MEMBERS (sizeof MEMBERS / sizeof *MEMBERS)

static const char *const ODD[] = {"null", "0", "-1e300", "true", "\"\"", "\"a\\u0000b\"", "\"../../x\"",
    "\"\\u001b[31m\\n\"", "[]", "{}", "[[[[{\"a\":[null]}]]]]", "{\"metadata\":null}",
    "{\"metadata\":{\"labels\":[],\"annotations\":\"x\",\"name\":{},\"finalizers\":{\"a\":1}}}",
    "{\"apiVersion\":1,\"kind\":{},\"metadata\":[]}",
    "{\"metadata\":{\"name\":\"\",\"ownerReferences\":[null,7]},\"spec\":[]}",
    "{\"\":{\"\":{\"\":\"\"}},\"~0/~1\":1}", "{\"username\":7,\"groups\":\"g\",\"extra\":[1]}",
    "9223372036854775808"};
#define N_ODD (sizeof ODD / sizeof *ODD)

static void nested(kl_buf *b, const char *open, const char *close, int n)
{
    for (int i = 0; i < n; i++)
        kl_buf_printf(b, "%s", open);
    kl_buf_printf(b, "1");
    for (int i = 0; i < n; i++)
        kl_buf_printf(b, "%s", close);
}

static void value(kl_buf *b, uint64_t dice, const char *good)
{
    uint64_t n = dice / 16 % (N_ODD + 4);
    if (dice % 16 < 11)
        kl_buf_printf(b, "%s", good);
    else if (n < N_ODD)
        kl_buf_printf(b, "%s", ODD[n]);
    else if (n < N_ODD + 2)
        nested(b, "{\"metadata\":", "}", 1 << dice / 512 % 9);
    else
        nested(b, "[", "]", 1 << dice / 512 % 9);
}

static void write_request(kl_buf *b, kl_random *dice)
{
    static const char *const OPERATIONS[] = {"CREATE", "UPDATE", "UPDATE", "DELETE", "CONNECT"};
    kl_buf_printf(b,
        "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":{\"uid\":\"u1\","
        "\"operation\":\"%s\"",
        OPERATIONS[kl_random_next(dice) % (sizeof OPERATIONS / sizeof *OPERATIONS)]);
    for (size_t i = 0; i < N_MEMBERS; i++) {
        uint64_t n = kl_random_next(dice);
        if (n % 16 == 0) /* it is not there */
            continue;
        kl_buf_printf(b, ",\"%s\":", MEMBERS[i].name);
        value(b, n / 16, MEMBERS[i].good);
    }
    kl_buf_printf(b, "}}");
}

/* The parser refuses some of them (the object that the operation is about is not there, or is none); a
 * handler never sees those, so the dice are thrown again. */
const kl_value *request_new(kl_random *dice)
{
    const kl_value *request = NULL;
    for (int throws = 1; !request; throws++) {
        kl_buf b = KL_BUF_INIT;
        kl_err err = KL_ERR_INIT;
        write_request(&b, dice);
        if (kl_admission_parse(kl_buf_str(&b), b.len, &request, &err) && throws == 1000)
            hunt_wrong("no request of a webhook parses: %s", kl_err_message(&err));
        kl_err_fini(&err);
        kl_buf_fini(&b);
    }
    return request;
}

void request_answered(const kl_value *request, const kl_value *decision)
{
    kl_buf b = KL_BUF_INIT;
    const kl_value *review = NULL, *response;
    kl_err err = KL_ERR_INIT;
    kl_admission_reply(request, decision, &b);
    if (kl_value_decode(kl_buf_str(&b), b.len, &review, &err))
        hunt_wrong("the answer of a webhook is not JSON: %s", kl_err_message(&err));
    response = kl_value_get(review, "response");
    if (!kl_value_str_at(response, "uid", NULL)
        || kl_value_type(kl_value_get(response, "allowed")) != KL_BOOL)
        hunt_wrong("the answer of a webhook says neither for whom it is nor what");
    the_page->reviews++;
    kl_value_unref(review);
    kl_buf_fini(&b);
}
