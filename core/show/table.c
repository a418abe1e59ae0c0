/* table.c - the table that `kubectl get` prints: its columns and rows as JSON.
 *
 * The columns of a built-in kind are in columns.c. A CRD says its own in additionalPrinterColumns. */
#include "show/table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "model/object.h"
#include "show/cells.h"
#include "show/columns.h"
#include "show/jsonpath.h"
#include "show/render.h"

/* ------------------------------------------------------------------ writing */

static void put_definition(const char *name, const char *type, const char *format, const char *description,
    int64_t priority, bool first, kl_buf *out)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "name", name);
    kl_build_kstr(b, "type", type);
    kl_build_kstr(b, "format", format);
    kl_build_kstr(b, "description", description);
    kl_build_kint(b, "priority", priority);
    kl_build_end(b);
    const kl_value *v = kl_builder_done(b);
    kl_buf_puts(out, first ? "" : ",");
    kl_value_encode(v, out);
    kl_value_unref(v);
}

/* Whether a column has the format "name". */
static bool is_name(const kl_column *c) { return !strcmp(c->name, "Name") || !strcmp(c->name, "Attacher"); }

void kl_show_columns(const kl__kind *k, kl_buf *out)
{
    kl_buf_puts(out, "\"columnDefinitions\":[");
    if (k->columns) {
        put_definition("Name", "string", "name", kl_column_text(k, 0), 0, true, out);
        for (size_t i = 0; i < kl_value_len(k->columns); i++) {
            const kl_value *c = kl_value_item(k->columns, i);
            const char *name = kl_value_str_at(c, "name", NULL), *type = kl_value_str_at(c, "type", NULL),
                       *format = kl_value_str_at(c, "format", NULL),
                       *given = kl_value_str_at(c, "description", NULL),
                       *path = kl_value_str_at(c, "jsonPath", NULL);
            char *text = given && *given
                ? kl_strdup(given)
                : kl_sprintf("Custom resource definition column (in JSONPath format): %s", path ? path : "");
            put_definition(name ? name : "", type ? type : "string", format ? format : "", text,
                kl_value_int_at(c, 0, "priority", NULL), false, out);
            kl_free(text);
        }
    } else {
        const kl_column *c = kl_columns_of(k);
        for (size_t i = 0; c[i].name && *c[i].name; i++)
            put_definition(c[i].name, c[i].type, is_name(&c[i]) ? "name" : "", kl_column_text(k, i),
                c[i].priority, i == 0, out);
    }
    kl_buf_putc(out, ']');
}

/* The value at a dotted path: numbers read 0 and strings "" when absent, as in Go. */
static void put_path(const kl_value *o, const kl_column *c, kl_buf *out)
{
    const kl_value *v = o;
    for (const char *p = c->path; v && *p;) {
        size_t n = strcspn(p, ".");
        v = kl_value_getn(v, p, n);
        p += n + (p[n] == '.');
    }
    if (v)
        kl_value_encode(v, out);
    else
        kl_buf_puts(out, !strcmp(c->type, "integer") ? "0" : !strcmp(c->type, "boolean") ? "false" : "\"\"");
}

/* A double as Go's %v prints it: the fewest digits that give it again, with an exponent from 1e+06 on. */
static void print_double(double x, char *out, size_t n)
{
    int digits = 0, exponent;
    do
        snprintf(out, n, "%.*e", digits, x);
    while (strtod(out, NULL) != x && ++digits < 17);
    exponent = atoi(strchr(out, 'e') + 1);
    if (exponent >= -4 && exponent < 6)
        snprintf(out, n, "%.*f", digits > exponent ? digits - exponent : 0, x);
}

/* JSON as Go's encoding/json writes it: these three, which stand only in strings, are escaped. */
static void put_escaped(const kl_value *v, kl_buf *out)
{
    kl_buf plain = KL_BUF_INIT;
    kl_value_encode_sorted(v, &plain);
    for (const char *p = kl_buf_str(&plain); *p; p++)
        if (strchr("<>&", *p))
            kl_buf_printf(out, "\\u%04x", (unsigned)*p);
        else
            kl_buf_add(out, p, 1);
    kl_buf_fini(&plain);
}

static void put_text(const kl_value *v, kl_buf *out)
{
    kl_buf text = KL_BUF_INIT;
    char number[64];
    switch (kl_value_type(v)) {
    case KL_STRING: kl_value_encode(v, out); return;
    case KL_NULL: kl_buf_puts(&text, "<no value>"); break;
    case KL_DOUBLE:
        print_double(kl_value_double(v, 0), number, sizeof number);
        kl_buf_puts(&text, number);
        break;
    default: put_escaped(v, &text);
    }
    kl_cell_text(kl_buf_str(&text), out);
    kl_buf_fini(&text);
}

/* Where a double has no int64, amd64 makes the least one. */
static void put_integer(const kl_value *v, kl_buf *out)
{
    double x = kl_value_double(v, 0);
    if (kl_value_type(v) == KL_DOUBLE)
        kl_buf_printf(out, "%" PRId64, x > -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN);
    else
        kl_value_encode(v, out);
}

/* The cell of a column of a definition: null where its path selects nothing, or no value of its type. */
static void put_custom(const kl_value *column, const kl_value *o, kl_time now, kl_buf *out)
{
    const char *path = kl_value_str_at(column, "jsonPath", NULL),
               *type = kl_value_str_at(column, "type", NULL);
    const kl_value *v = path ? kl_jsonpath_first(o, path) : NULL;
    kl_type t = kl_value_type(v);
    bool number = t == KL_INT || t == KL_UINT || t == KL_DOUBLE;
    if (v && type && !strcmp(type, "string"))
        put_text(v, out);
    else if (type && !strcmp(type, "date") && t == KL_STRING)
        kl_cell_age(kl_value_str(v), now,
            *kl_value_str(v) && strcmp(kl_value_str(v), "null") ? "<invalid>" : "<unknown>", out);
    else if (type && !strcmp(type, "integer") && number)
        put_integer(v, out);
    else if (type && ((!strcmp(type, "number") && number) || (!strcmp(type, "boolean") && t == KL_BOOL)))
        kl_value_encode(v, out);
    else
        kl_buf_puts(out, "null");
    kl_value_unref(v);
}

/* kubectl leaves out pods that have ended, where it is told to. */
static void put_end(const kl__kind *k, const kl_value *o, kl_buf *out)
{
    const char *phase = kl_value_str_at(o, "status", "phase", NULL);
    bool good = phase && !strcmp(phase, "Succeeded"), bad = phase && !strcmp(phase, "Failed");
    if (*k->group || strcmp(k->plural, "pods") || !(good || bad))
        return;
    kl_buf_printf(out,
        ",\"conditions\":[{\"type\":\"Completed\",\"status\":\"True\",\"reason\":\"%s\",\"message\":\"%s\"}]",
        phase, good ? "The pod has completed successfully." : "The pod failed.");
}

void kl_show_row(
    const kl__kind *k, const kl_show_form *form, const kl_value *object, kl_time now, kl_buf *out)
{
    kl_buf_puts(out, "{\"cells\":[");
    if (k->columns) {
        kl_cell_text(kl_object_name(object), out);
        for (size_t i = 0; i < kl_value_len(k->columns); i++) {
            kl_buf_putc(out, ',');
            put_custom(kl_value_item(k->columns, i), object, now, out);
        }
    } else {
        const kl_column *c = kl_columns_of(k);
        const kl_value *o = kl_render_stored(k, kl_value_ref(object));
        for (size_t i = 0; c[i].name; i++) {
            kl_buf_puts(out, i ? "," : "");
            if (c[i].fn)
                c[i].fn(o, now, out);
            else
                put_path(o, &c[i], out);
        }
        kl_value_unref(o);
    }
    kl_buf_putc(out, ']');
    put_end(k, object, out);
    kl_buf_puts(out, ",\"object\":");
    if (form->include == KL_INCLUDE_NONE) {
        kl_buf_puts(out, "null");
    } else if (form->include == KL_INCLUDE_OBJECT) {
        kl_value_encode(object, out);
    } else {
        kl_buf_puts(
            out, "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":");
        kl_value_encode(kl_value_get(object, "metadata"), out);
        kl_buf_putc(out, '}');
    }
    kl_buf_putc(out, '}');
}
