/* cause.c - the names of causes. */
#include "run/cause.h"

const char *kl_why_name(kl_why why)
{
    static const char *const NAMES[] = {"unknown", "started", "added", "changed", "deleted", "resync",
        "trigger", "after", "retry", "reload", "leading", "by hand", "request"};
    return (size_t)why < sizeof NAMES / sizeof *NAMES ? NAMES[why] : NAMES[0];
}

void kl_cause_forget(uint32_t what) { kl_value_unref((const kl_value *)(uintptr_t)what); }
