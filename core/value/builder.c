/* builder.c - nested values from the outside in.
 *
 * All open containers share one stack of references; a frame remembers where its container begins. Closing
 * a container turns the part above its base into a node and pushes that. kl__stack and kl__seen are shared
 * with the decoder. */
#include "value/intern.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "base/hash.h"
#include "base/mem.h"

/* --- the stack ---------------------------------------------------------------------------- */

void kl__stack_push(kl__stack *s, const kl_value *v)
{
    if (s->len == s->cap) {
        s->cap = s->cap ? s->cap * 2 : 128;
        s->v = kl_realloc(s->v, s->cap * sizeof *s->v);
    }
    s->v[s->len++] = v;
}

void kl__stack_cut(kl__stack *s, size_t len)
{
    while (s->len > len)
        kl_value_unref(s->v[--s->len]);
}

void kl__stack_fini(kl__stack *s)
{
    kl__stack_cut(s, 0);
    kl_free(s->v);
    *s = (kl__stack){0};
}

/* --- keys of open objects ----------------------------------------------------------------- */

static kl__seen_entry *seen_slot(kl__seen *seen, uint64_t serial, const kl_value *key)
{
    uint64_t words[2] = {serial, (uintptr_t)key};
    size_t at = kl_quick_hash(words, sizeof words) & (seen->cap - 1);
    while (seen->v[at].key && (seen->v[at].key != key || seen->v[at].serial != serial))
        at = (at + 1) & (seen->cap - 1);
    return &seen->v[at];
}

static void seen_enter(kl__seen *seen, uint64_t serial, const kl_value *key, size_t place)
{
    if (2 * (seen->len + 1) > seen->cap) {
        kl__seen old = *seen;
        seen->cap = old.cap ? old.cap * 2 : 128;
        seen->v = kl_new_array(kl__seen_entry, seen->cap);
        for (size_t i = 0; i < old.cap; i++)
            if (old.v[i].key)
                *seen_slot(seen, old.v[i].serial, old.v[i].key) = old.v[i];
        kl_free(old.v);
    }
    *seen_slot(seen, serial, key) = (kl__seen_entry){serial, key, place};
    seen->len++;
}

size_t kl__seen_check(kl__seen *seen, uint64_t serial, const kl__stack *s, size_t base, const kl_value *key)
{
    size_t members = (s->len - base) / 2;
    if (members < KL__INDEXED_ABOVE) {
        for (size_t i = 0; i < members; i++)
            if (s->v[base + 2 * i] == key)
                return i;
        return SIZE_MAX;
    }
    if (members == KL__INDEXED_ABOVE && (!seen->cap || !seen_slot(seen, serial, s->v[base])->key))
        for (size_t i = 0; i < members; i++)
            seen_enter(seen, serial, s->v[base + 2 * i], i);
    kl__seen_entry *e = seen_slot(seen, serial, key);
    if (e->key)
        return e->place;
    seen_enter(seen, serial, key, members);
    return SIZE_MAX;
}

void kl__seen_fini(kl__seen *seen)
{
    kl_free(seen->v);
    *seen = (kl__seen){0};
}

/* --- the builder -------------------------------------------------------------------------- */

#define NO_PLACE SIZE_MAX

typedef struct frame {
    kl_type type;
    size_t base; /* where the container's slots begin on the stack */
    uint64_t serial;
    size_t replaces; /* the member whose key the pending key repeats */
    bool keyed;      /* a key waits for its value */
} frame;

struct kl_builder {
    kl__stack stack;
    kl__seen seen;
    frame *frames;
    size_t depth, cap;
    uint64_t serials;
};

/* The only check for misuse of a builder. Release builds keep it, since misuse would corrupt memory. */
static void must(bool ok, const char *what)
{
    assert(ok && what);
    if (!ok)
        kl_mem_die(what);
}

kl_builder *kl_builder_new(void) { return kl_new(kl_builder); }

void kl_builder_free(kl_builder *b)
{
    if (!b)
        return;
    kl__stack_fini(&b->stack);
    kl__seen_fini(&b->seen);
    kl_free(b->frames);
    kl_free(b);
}

const kl_value *kl_builder_done(kl_builder *b)
{
    must(b->depth == 0 && b->stack.len == 1, "kl_builder_done: needs exactly one closed value");
    const kl_value *v = b->stack.v[--b->stack.len];
    kl_builder_free(b);
    return v;
}

/* Takes over the reference. */
static void add(kl_builder *b, const kl_value *v)
{
    if (!b->depth) {
        must(b->stack.len == 0, "kl_build: a second root value");
        kl__stack_push(&b->stack, v);
        return;
    }
    frame *f = &b->frames[b->depth - 1];
    if (f->type == KL_OBJECT) {
        must(f->keyed, "kl_build: a value without a key in an object");
        f->keyed = false;
        if (f->replaces != NO_PLACE) {
            const kl_value **slot = &b->stack.v[f->base + 2 * f->replaces + 1];
            kl_value_unref(*slot);
            *slot = v;
            return;
        }
    }
    kl__stack_push(&b->stack, v);
}

static void open_container(kl_builder *b, kl_type type)
{
    if (b->depth)
        must(b->frames[b->depth - 1].type == KL_ARRAY || b->frames[b->depth - 1].keyed,
            "kl_build: a value without a key in an object");
    else
        must(b->stack.len == 0, "kl_build: a second root value");
    if (b->depth == b->cap) {
        b->cap = b->cap ? b->cap * 2 : 16;
        b->frames = kl_realloc(b->frames, b->cap * sizeof *b->frames);
    }
    b->frames[b->depth++] = (frame){type, b->stack.len, b->serials++, NO_PLACE, false};
}

void kl_build_object(kl_builder *b) { open_container(b, KL_OBJECT); }

void kl_build_array(kl_builder *b) { open_container(b, KL_ARRAY); }

void kl_build_end(kl_builder *b)
{
    must(b->depth > 0, "kl_build_end: nothing is open");
    frame *f = &b->frames[--b->depth];
    must(!f->keyed, "kl_build_end: a key without a value");
    size_t n = b->stack.len - f->base;
    const kl_value *v = kl__intern_container(
        f->type, n ? b->stack.v + f->base : NULL, f->type == KL_OBJECT ? n / 2 : n);
    b->stack.len = f->base;
    add(b, v);
}

void kl_build_keyn(kl_builder *b, const char *key, size_t n)
{
    must(b->depth && b->frames[b->depth - 1].type == KL_OBJECT && !b->frames[b->depth - 1].keyed,
        "kl_build_key: not in an object, or after another key");
    frame *f = &b->frames[b->depth - 1];
    const kl_value *k = kl_value_of_strn(key, n);
    f->keyed = true;
    f->replaces = kl__seen_check(&b->seen, f->serial, &b->stack, f->base, k);
    if (f->replaces == NO_PLACE)
        kl__stack_push(&b->stack, k);
    else
        kl_value_unref(k);
}

void kl_build_key(kl_builder *b, const char *key) { kl_build_keyn(b, key, strlen(key)); }

void kl_build_value(kl_builder *b, const kl_value *v) { add(b, v ? kl_value_ref(v) : kl_value_null()); }

void kl_build_null(kl_builder *b) { add(b, kl_value_null()); }

void kl_build_bool(kl_builder *b, bool x) { add(b, kl_value_of_bool(x)); }

void kl_build_int(kl_builder *b, int64_t x) { add(b, kl_value_of_int(x)); }

void kl_build_uint(kl_builder *b, uint64_t x) { add(b, kl_value_of_uint(x)); }

void kl_build_double(kl_builder *b, double x) { add(b, kl_value_of_double(x)); }

void kl_build_str(kl_builder *b, const char *s) { add(b, kl_value_of_str(s)); }

void kl_build_strn(kl_builder *b, const char *s, size_t n) { add(b, kl_value_of_strn(s, n)); }

void kl_build_kstr(kl_builder *b, const char *key, const char *s)
{
    if (!s)
        return;
    kl_build_key(b, key);
    kl_build_str(b, s);
}

void kl_build_kint(kl_builder *b, const char *key, int64_t x)
{
    kl_build_key(b, key);
    kl_build_int(b, x);
}

void kl_build_kvalue(kl_builder *b, const char *key, const kl_value *v)
{
    if (!v)
        return;
    kl_build_key(b, key);
    kl_build_value(b, v);
}

const kl_value *kl_value_empty(kl_type type)
{
    kl_builder *b = kl_builder_new();
    if (type == KL_ARRAY)
        kl_build_array(b);
    else
        kl_build_object(b);
    kl_build_end(b);
    return kl_builder_done(b);
}
