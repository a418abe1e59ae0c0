/* watched.c - what rules make of the frames of one watch.
 *
 *   frame --> passed | kept until its time | dropped (a bookmark) | the watch ends
 *
 * Kept frames leave in their order; late bookmarks alone are overtaken. Rules that come later count from the
 * next look on, and rules that are cleared let go of everything at once. */
#include "faults/faults_impl.h"

#include "base/mem.h"

/* So many bytes may be kept of a watch; then it ends. */
#define KEPT_MOST ((size_t)4 << 20)
/* Frames that an old one is drawn from. */
#define REMEMBERED 8

typedef struct frame {
    kl_list link;
    kl_time due;
    bool bookmark, late; /* late: others need not wait for it */
    kl_buf text;
} frame;

struct kl_fault_watch {
    kl_faults *f;
    kl_fault_call call;
    char *ns, *path, *agent; /* of the call */
    kl_fault_write *write;
    void *arg;
    kl_httpd_stream *stream;
    uint_fast64_t edition; /* the edition of the rules that were last read */
    kl_fault_plan plan;
    kl_random chance;
    kl_time began; /* when the watch began, or met its latest rule */
    kl_time last;  /* when the latest kept frame leaves */
    kl_time until; /* the end of a stall */
    bool stalled, expired;
    int64_t sent; /* events since then */
    size_t kept_bytes;
    kl_list kept;
    kl_buf seen[REMEMBERED]; /* events that were sent, if old ones are wanted */
    size_t nseen;
};

kl_fault_watch *kl_fault_watch_new(kl_faults *f, const kl_fault_call *c, const kl_fault_plan *plan,
    kl_fault_write *write, void *arg, kl_httpd_stream *stream)
{
    kl_fault_watch *w = kl_new(kl_fault_watch);
    w->f = f;
    w->ns = kl_strdup(c->ns);
    w->path = kl_strdup(c->path);
    w->agent = kl_strdup(c->agent);
    w->call = (kl_fault_call){
        .kind = c->kind, .ns = w->ns, .verb = "watch", .path = w->path, .agent = w->agent};
    w->write = write;
    w->arg = arg;
    w->stream = stream;
    w->plan = *plan;
    w->plan.what &= FAULT_OF_WATCHES;
    w->chance = (kl_random){plan->seed};
    w->began = kl_clock_now(f->clock);
    kl_list_init(&w->kept);
    return w;
}

static void frame_free(kl_fault_watch *w, frame *x)
{
    kl_list_remove(&x->link);
    w->kept_bytes -= x->text.len;
    kl_buf_fini(&x->text);
    kl_free(x);
}

void kl_fault_watch_free(kl_fault_watch *w)
{
    if (!w)
        return;
    while (!kl_list_empty(&w->kept))
        frame_free(w, KL_CONTAINER(w->kept.next, frame, link));
    for (size_t i = 0; i < REMEMBERED; i++)
        kl_buf_fini(&w->seen[i]);
    kl_free(w->ns);
    kl_free(w->path);
    kl_free(w->agent);
    kl_free(w);
}

bool kl_fault_watch_expired(const kl_fault_watch *w) { return w->expired; }

/* Reads the rules again, if they changed since the last look. */
static void refresh(kl_fault_watch *w)
{
    uint_fast64_t edition = atomic_load(&w->f->edition);
    if (edition == w->edition)
        return;
    w->edition = edition;
    kl_lock(&w->f->mu);
    if (w->f->clears != w->plan.clears) {
        w->plan = (kl_fault_plan){.known = w->plan.known};
        w->until = w->last = 0;
        w->stalled = false;
        for (kl_list *l = w->kept.next; l != &w->kept; l = l->next)
            KL_CONTAINER(l, frame, link)->due = 0;
    }
    unsigned had = w->plan.what;
    kl__faults_judge(w->f, &w->call, FAULT_OF_WATCHES, &w->plan, NULL);
    if (!had)
        w->chance = (kl_random){w->plan.seed};
    kl_unlock(&w->f->mu);
    if (w->plan.what == had)
        return;
    w->began = kl_clock_now(w->f->clock);
    w->sent = 0;
}

static bool reached(const kl_fault_watch *w, const kl_fault_moment *m, kl_time now)
{
    return w->sent >= m->events && now - w->began >= m->after;
}

static bool is_cut(const kl_fault_watch *w, kl_time now)
{
    return w->plan.cut && reached(w, &w->plan.cut_at, now);
}

/* `next` NULL: there is none, and a watch that is cut within a frame goes on. */
static bool cut(kl_fault_watch *w, const kl_buf *next)
{
    if (w->plan.cut == KL_CUT_HALF && !next)
        return true;
    if (w->plan.cut == KL_CUT_HALF)
        kl_httpd_stream_write(w->stream, next->data, next->len / 2);
    else if (w->plan.cut == KL_CUT_RESET)
        kl_httpd_stream_cut(w->stream);
    w->expired = w->plan.cut == KL_CUT_EXPIRED;
    return false;
}

static bool strikes(kl_fault_watch *w, unsigned what, double probability)
{
    return (w->plan.what & what) && kl_random_unit(&w->chance) < probability;
}

static bool pass_event(kl_fault_watch *w, const kl_buf *text)
{
    bool ok = w->write(w->arg, text);
    w->sent++;
    if (ok && strikes(w, FAULT_TWICE, w->plan.twice))
        ok = w->write(w->arg, text);
    size_t known = w->nseen < REMEMBERED ? w->nseen : REMEMBERED;
    if (ok && known && strikes(w, FAULT_OLD, w->plan.old))
        ok = w->write(w->arg, &w->seen[kl_random_next(&w->chance) % known]);
    if (w->plan.what & FAULT_OLD) {
        kl_buf *last = &w->seen[w->nseen++ % REMEMBERED];
        kl_buf_clear(last);
        kl_buf_add(last, text->data, text->len);
    }
    return ok;
}

static bool pass(kl_fault_watch *w, const kl_buf *text, bool bookmark, kl_time now)
{
    if (is_cut(w, now))
        return cut(w, text);
    if (bookmark)
        return w->write(w->arg, text);
    return pass_event(w, text) && !(is_cut(w, now) && !cut(w, NULL));
}

static bool keep(kl_fault_watch *w, const kl_buf *text, bool bookmark, bool late, kl_time due)
{
    if (w->kept_bytes + text->len > KEPT_MOST)
        return false;
    frame *x = kl_new(frame);
    kl_list_init(&x->link);
    kl_buf_init(&x->text, 0);
    kl_buf_add(&x->text, text->data, text->len);
    w->kept_bytes += x->text.len;
    x->due = due;
    x->bookmark = bookmark;
    x->late = late;
    kl_list_push(&w->kept, &x->link);
    return true;
}

/* Sends what is due; *waits: a frame that others have to wait for is not. */
static bool flush(kl_fault_watch *w, kl_time now, kl_time *next, bool *waits)
{
    *waits = false;
    for (kl_list *l = w->kept.next, *after; l != &w->kept; l = after) {
        frame *x = KL_CONTAINER(l, frame, link);
        after = l->next;
        if (x->due > now || (*waits && !x->late)) {
            *waits |= !x->late;
            *next = x->due < *next ? x->due : *next;
            continue;
        }
        bool ok = pass(w, &x->text, x->bookmark, now);
        frame_free(w, x);
        if (!ok)
            return false;
    }
    return true;
}

bool kl_fault_watch_put(kl_fault_watch *w, const kl_buf *text, bool bookmark)
{
    refresh(w);
    if (!w->plan.what && kl_list_empty(&w->kept))
        return w->write(w->arg, text);
    kl_time now = kl_clock_now(w->f->clock), next = KL_NEVER;
    bool waits;
    if (!flush(w, now, &next, &waits))
        return false;
    if (bookmark && w->plan.late == KL_NEVER)
        return true;
    if (bookmark && w->plan.late)
        return keep(w, text, true, true, now + w->plan.late);
    if ((w->plan.what & FAULT_STALL) && !w->stalled && reached(w, &w->plan.stall_at, now)) {
        w->stalled = true;
        w->until = now + w->plan.stall;
    }
    kl_time due = now + w->plan.lag;
    due = due < w->until ? w->until : due;
    due = due < w->last ? w->last : due;
    if (due <= now && !waits)
        return pass(w, text, bookmark, now);
    w->last = due;
    return keep(w, text, bookmark, false, due);
}

bool kl_fault_watch_look(kl_fault_watch *w, kl_time *next)
{
    *next = KL_NEVER;
    refresh(w);
    if (!w->plan.what && kl_list_empty(&w->kept))
        return true;
    kl_time now = kl_clock_now(w->f->clock);
    bool waits;
    if (is_cut(w, now) && !cut(w, NULL))
        return false;
    if (!flush(w, now, next, &waits))
        return false;
    kl_time end = w->began + w->plan.cut_at.after;
    if (w->plan.cut && w->plan.cut != KL_CUT_HALF && end > now && w->sent >= w->plan.cut_at.events)
        *next = end < *next ? end : *next;
    return true;
}
