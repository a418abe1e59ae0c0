/* cells_pod.c - what `kubectl get pods` says: the state of a pod in one word, worked out from its
 * containers.
 *
 * Init containers that are not through come first, then the first container with something to tell, then
 * the phase; a deletion hides all but an end that was reached. */
#include "show/cells.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "model/object.h"

const kl_value *kl_cell_condition(const kl_value *o, const char *type)
{
    const kl_value *list = kl_value_at(o, "status", "conditions", NULL);
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const char *have = kl_value_str_at(kl_value_item(list, i), "type", NULL);
        if (have && !strcmp(have, type))
            return kl_value_item(list, i);
    }
    return NULL;
}

static bool condition_true(const kl_value *o, const char *type)
{
    const char *status = kl_value_str_at(kl_cell_condition(o, type), "status", NULL);
    return status && !strcmp(status, "True");
}

void kl_cell_pod_ready(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    const kl_value *list = kl_value_at(o, "status", "containerStatuses", NULL);
    size_t ready = 0;
    for (size_t i = 0; i < kl_value_len(list); i++)
        ready += kl_value_bool(kl_value_get(kl_value_item(list, i), "ready"), false)
            && kl_value_at(kl_value_item(list, i), "state", "running", NULL);
    kl_buf_printf(out, "\"%zu/%zu\"", ready, kl_value_len(kl_value_at(o, "spec", "containers", NULL)));
}

/* Why the init containers still hold the pod: a new string, or NULL when they are done. */
static char *init_reason(const kl_value *o)
{
    const kl_value *list = kl_value_at(o, "status", "initContainerStatuses", NULL);
    size_t all = kl_value_len(kl_value_at(o, "spec", "initContainers", NULL));
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *state = kl_value_get(kl_value_item(list, i), "state"),
                       *ended = kl_value_get(state, "terminated");
        if (ended && kl_value_int_at(ended, 0, "exitCode", NULL) == 0)
            continue;
        const char *why = kl_value_str_at(ended ? ended : kl_value_get(state, "waiting"), "reason", NULL);
        if (ended && (!why || !*why)) {
            int64_t signal = kl_value_int_at(ended, 0, "signal", NULL);
            return signal ? kl_sprintf("Init:Signal:%" PRId64, signal)
                          : kl_sprintf("Init:ExitCode:%" PRId64, kl_value_int_at(ended, 0, "exitCode", NULL));
        }
        if (why && *why && strcmp(why, "PodInitializing"))
            return kl_sprintf("Init:%s", why);
        return kl_sprintf("Init:%zu/%zu", i, all);
    }
    return NULL;
}

void kl_cell_pod_status(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    const char *phase = kl_value_str_at(o, "status", "phase", NULL),
               *why = kl_value_str_at(o, "status", "reason", NULL);
    char *reason = kl_strdup(why && *why ? why : phase ? phase : ""), *init = init_reason(o);
    const kl_value *gated = kl_cell_condition(o, "PodScheduled"),
                   *list = kl_value_at(o, "status", "containerStatuses", NULL);
    const char *gate = kl_value_str_at(gated, "reason", NULL);
    bool running = false;
    if (gate && !strcmp(gate, "SchedulingGated")) {
        kl_free(reason);
        reason = kl_strdup(gate);
    }
    if (init) {
        kl_free(reason);
        reason = init;
    } else {
        for (size_t i = kl_value_len(list); i-- > 0;) {
            const kl_value *c = kl_value_item(list, i), *ended = kl_value_at(c, "state", "terminated", NULL);
            const char *waits = kl_value_str_at(c, "state", "waiting", "reason", NULL),
                       *end = kl_value_str_at(ended, "reason", NULL);
            char *next = NULL;
            if (waits && *waits)
                next = kl_strdup(waits);
            else if (ended && end && *end)
                next = kl_strdup(end);
            else if (ended)
                next = kl_value_int_at(ended, 0, "signal", NULL)
                    ? kl_sprintf("Signal:%" PRId64, kl_value_int_at(ended, 0, "signal", NULL))
                    : kl_sprintf("ExitCode:%" PRId64, kl_value_int_at(ended, 0, "exitCode", NULL));
            else if (kl_value_bool(kl_value_get(c, "ready"), false)
                && kl_value_at(c, "state", "running", NULL))
                running = true;
            if (next) {
                kl_free(reason);
                reason = next;
            }
        }
        if (!strcmp(reason, "Completed") && running) {
            kl_free(reason);
            reason = kl_strdup(condition_true(o, "Ready") ? "Running" : "NotReady");
        }
    }
    if (kl_object_deleting(o)) {
        bool lost = why && !strcmp(why, "NodeLost");
        if (lost || !phase || (strcmp(phase, "Succeeded") && strcmp(phase, "Failed"))) {
            kl_free(reason);
            reason = kl_strdup(lost ? "Unknown" : "Terminating");
        }
    }
    kl_cell_text(reason, out);
    kl_free(reason);
}

void kl_cell_pod_restarts(const kl_value *o, kl_time now, kl_buf *out)
{
    const kl_value *list = kl_value_at(o, "status", "containerStatuses", NULL);
    int64_t count = 0;
    const char *last = NULL;
    char text[80], ago[40];
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const char *at = kl_value_str_at(
            kl_value_item(list, i), "lastState", "terminated", "finishedAt", NULL);
        count += kl_value_int_at(kl_value_item(list, i), 0, "restartCount", NULL);
        if (at && (!last || strcmp(at, last) > 0))
            last = at;
    }
    if (count && kl_cell_since(last, now, ago, sizeof ago))
        snprintf(text, sizeof text, "%" PRId64 " (%s ago)", count, ago);
    else
        snprintf(text, sizeof text, "%" PRId64, count);
    kl_cell_text(text, out);
}

void kl_cell_pod_ip(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    const char *ip = kl_value_str_at(o, "status", "podIP", NULL);
    kl_cell_text(ip && *ip ? ip : "<none>", out);
}
void kl_cell_pod_node(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    const char *node = kl_value_str_at(o, "spec", "nodeName", NULL);
    kl_cell_text(node && *node ? node : "<none>", out);
}
void kl_cell_pod_nominated(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    const char *node = kl_value_str_at(o, "status", "nominatedNodeName", NULL);
    kl_cell_text(node && *node ? node : "<none>", out);
}
void kl_cell_pod_gates(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    const kl_value *gates = kl_value_at(o, "spec", "readinessGates", NULL);
    size_t good = 0;
    for (size_t i = 0; i < kl_value_len(gates); i++) {
        const char *type = kl_value_str_at(kl_value_item(gates, i), "conditionType", NULL);
        good += type && condition_true(o, type);
    }
    if (kl_value_len(gates))
        kl_buf_printf(out, "\"%zu/%zu\"", good, kl_value_len(gates));
    else
        kl_cell_text("<none>", out);
}
