/* serial.c - the text that tells which runs must not overlap: at a path of the object, or from a function of
 * the script. */
#include "base/mem.h"
#include "run/run_impl.h"

/* Takes a text; only the first one counts. */
static void take_text(void *arg, const char *text)
{
    kl_buf *out = arg;
    if (!out->len)
        kl_buf_printf(out, "=%s", text);
}

static void take_value(const kl_value *v, kl_buf *out)
{
    if (kl_value_type(v) == KL_STRING)
        take_text(out, kl_value_str(v));
    else if (v && kl_value_type(v) != KL_NULL)
        (void)(kl_buf_printf(out, "="), kl_value_encode(v, out));
}

bool kl__serial_says(const kl_controller_spec *s) { return s->serial.path || s->serial.fn; }

kl_status kl__serial_text(const kl_gen_state *g, const kl_value *object, kl_buf *out, kl_err *err)
{
    const kl_text_of *t = &g->logic->spec->serial;
    kl_status st = KL_OK;
    if (t->path)
        take_value(kl_path_get(t->path, object), out);
    else if (t->fn)
        st = g->logic->program->ops->index(g->state, t->fn, object, take_text, out, err);
    if (st)
        kl_err_prefix(err, "the `serial` function");
    return st;
}
