/* dump.c - reads what lua_dump writes. The format and the instructions are those of Lua 5.4 (ldump.c,
 * lopcodes.h); the header is checked. */
#include "state/dump.h"

#include <string.h>

#include "base/mem.h"

typedef struct input {
    const unsigned char *at, *end;
    bool is_bad;
} input;

static const unsigned char *bytes(input *in, size_t n)
{
    const unsigned char *p = in->at;
    if (n > (size_t)(in->end - in->at)) {
        in->is_bad = true;
        in->at = in->end;
        return NULL;
    }
    in->at += n;
    return p;
}

static unsigned byte(input *in)
{
    const unsigned char *p = bytes(in, 1);
    return p ? *p : 0;
}

/* Reads a number: seven bits a byte, the highest first; the last byte is marked. */
static size_t number(input *in)
{
    size_t x = 0;
    unsigned b = 0;
    while (!in->is_bad && !(b & 0x80)) {
        b = byte(in);
        x = x << 7 | (b & 0x7f);
    }
    return in->is_bad ? 0 : x;
}

/* Reads a count of things that take at least a byte each. */
static size_t count(input *in)
{
    size_t n = number(in);
    if (n > (size_t)(in->end - in->at))
        in->is_bad = true;
    return in->is_bad ? 0 : n;
}

static lkl_dump_text text(input *in)
{
    size_t n = number(in); /* 0: no text, else its length and one */
    if (!n)
        return (lkl_dump_text){NULL, 0};
    return (lkl_dump_text){(const char *)bytes(in, n - 1), n - 1};
}

static lkl_dump_text constant(input *in)
{
    switch (byte(in)) {
    case 0x03: /* an integer */
    case 0x13: /* a float */ (void)bytes(in, 8); break;
    case 0x04: /* a short text */
    case 0x14: /* a long one */ return text(in);
    default: break; /* nil and booleans have no content */
    }
    return (lkl_dump_text){NULL, 0};
}

/* Lines are stored as differences; a difference of -128 means that the next absolute line counts. */
static void read_lines(input *in, lkl_dumped *f, int line)
{
    size_t n = count(in);
    const unsigned char *steps = bytes(in, n);
    size_t n_absolute = count(in);
    f->lines = kl_new_array(int, f->n_code + 1);
    in->is_bad = in->is_bad || n != f->n_code;
    for (size_t pc = 0; !in->is_bad && pc < n; pc++) {
        if ((signed char)steps[pc] != -128) {
            line += (signed char)steps[pc];
        } else if (n_absolute) {
            (void)number(in);
            line = (int)number(in);
            n_absolute--;
        }
        f->lines[pc] = line;
    }
    for (; n_absolute; n_absolute--) {
        (void)number(in);
        (void)number(in);
    }
}

static void read_function(input *in, bool is_inner, lkl_dump_visit *visit, void *arg)
{
    lkl_dumped whole = {.inner = is_inner}, *f = &whole;
    (void)text(in); /* the chunk's name */
    int line = (int)number(in);
    (void)number(in);
    (void)bytes(in, 3);
    f->n_code = count(in);
    f->code = bytes(in, f->n_code * 4);
    f->n_constants = count(in);
    f->constants = kl_new_array(lkl_dump_text, f->n_constants + 1);
    for (size_t i = 0; i < f->n_constants; i++)
        f->constants[i] = constant(in);
    size_t n = count(in);
    (void)bytes(in, n * 3); /* upvalues */
    for (n = count(in); n && !in->is_bad; n--)
        read_function(in, true, visit, arg);
    read_lines(in, f, line);
    f->n_locals = count(in);
    f->locals = kl_new_array(struct lkl_dump_local, f->n_locals + 1);
    for (size_t i = 0; i < f->n_locals; i++) {
        (void)text(in);
        f->locals[i].from = (int)number(in);
        f->locals[i].to = (int)number(in);
    }
    for (n = count(in); n && !in->is_bad; n--)
        (void)text(in);
    if (!in->is_bad)
        visit(f, arg);
    kl_free(f->constants);
    kl_free(f->lines);
    kl_free(f->locals);
}

static bool read_header(input *in)
{
    static const unsigned char head[] = "\x1bLua\x54\x00\x19\x93\r\n\x1a\n\x04\x08\x08";
    const unsigned char *p = bytes(in, sizeof head - 1);
    const unsigned char *sample = bytes(in, 16);
    int64_t integer;
    double real;
    if (!p || !sample)
        return false;
    memcpy(&integer, sample, 8);
    memcpy(&real, sample + 8, 8);
    (void)byte(in); /* how many upvalues */
    return !memcmp(p, head, sizeof head - 1) && integer == 0x5678 && real == 370.5;
}

bool lkl_dump_read(const char *dump, size_t n, lkl_dump_visit *visit, void *arg)
{
    input in = {.at = (const unsigned char *)dump, .end = (const unsigned char *)dump + n};
    if (!read_header(&in))
        return false;
    read_function(&in, false, visit, arg);
    return !in.is_bad;
}

/* --- instructions ------------------------------------------------------------------------- */

#define A_SHIFT 7

lkl_instruction lkl_dump_at(const lkl_dumped *f, size_t pc)
{
    uint32_t i;
    memcpy(&i, f->code + pc * 4, 4);
    return (lkl_instruction){.op = i & 0x7f, .a = i >> A_SHIFT & 0xff, .b = i >> 16 & 0xff, .c = i >> 24};
}

void lkl_dump_set_a(unsigned char *code, unsigned a)
{
    uint32_t i;
    memcpy(&i, code, 4);
    i = (i & ~((uint32_t)0xff << A_SHIFT)) | (uint32_t)a << A_SHIFT;
    memcpy(code, &i, 4);
}
