-- mutant_equals.lua - mutants that need no judgement, by file and changed line, each with the reason: nobody
-- could see a difference, or a release build could not.
local LEAK = "it only leaks, which a release build does not show"

return {
  ["core/base/hangup.c: if (epoll_ctl(h->epoll, EPOLL_CTL_ADD, fd, &ev) || errno == EEXIST)"] =
    "the second call sets what the first set, or fails as it did",
  ["core/base/pattern.c: for (size_t i = 0; i <= n; i++)"] =
    "the only caller has a string of Lua, whose last byte is no special one",
  ["core/builtin/jobs.c: for (size_t i = 1; i < n; i++)"] =
    "no file of time zones begins so, and the message for an unknown one is the same",
  ["core/cache/informer.c: for (size_t k = 1; k < i->n_active; k++)"] = LEAK,
  ["core/client/discovery.c: for (size_t i = 1; i < f->n_parts; i++) {"] = LEAK,
  ["core/control/control.c: c->routes = kl_realloc(c->routes, (c->n + 2) * sizeof *c->routes);"] =
    "the array is longer than needed",
  ["core/metrics/custom.c: size_t lines = is(f, \"histogram\") ? f->n_le + 4 : 1;"] =
    "the length is an estimate",
  ["core/queue/agenda.c: return a->number < b->number || (a->number == b->number && a->seq <= b->seq);"] =
    "no two entries have the same seq",
  ["core/queue/items.c: while (n <= exact)"] = "an item takes more memory than needed",
  ["core/run/program.c: for (size_t i = 1; i < s->n_fields; i++) {"] = LEAK,
  ["core/value/arena.c: enum { FINE = FINE_MAX / 8, COARSE = 5 * 4, RUNS = 21 * 4, "
    .. "CLASSES = FINE + COARSE + RUNS };"] = "the array is longer than needed",
}
