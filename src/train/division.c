/* division.c - see division.h. */
#include "train/division.h"

#include <stdlib.h>

#include "base/plural.h"
#include "config/relations.h"

/* Below this share of the cores' time another number of virtual workers is looked for; one that
 * uses this much more is worth a line. */
static const double ENOUGH = 0.9, MORE = 0.05;

/* The share of the cores' time that has work, where V virtual workers take the same time each. */
static double use_of(const ls_config *c, int64_t V, int cores) {
    ls_config with = *c;
    with.train.virtual_workers = V;
    int64_t most = ls_config_most_workers(&with), ranks = most / V;
    int workers = ls_config_workers_on(&with, cores);
    if (workers > most) workers = (int)most;
    if (workers < ranks) return 0;
    int64_t groups = workers / ranks, rounds = (V + groups - 1) / groups;
    double busy = (double)(workers * ls_config_threads(&with, workers, cores));
    return busy / cores * (double)V / (double)(groups * rounds);
}

static bool is_possible(const ls_config *c, int64_t V) {
    ls_config *with = LS_NEW(ls_config);
    *with = *c;
    with->train.virtual_workers = V;
    bool possible = ls_config_check(with, "", NULL) == LS_OK;
    free(with);
    return possible;
}

/* The smallest of those that use the cores best. Only more than there are: fewer would limit the
 * workers that the run can ever have. */
int64_t ls_division_better(const ls_config *c, const ls_division *d) {
    int64_t own = c->train.virtual_workers, best = 0;
    double use = use_of(c, own, d->cores), most = use + MORE;
    if (!d->free || !d->all || use >= ENOUGH) return 0;
    for (int64_t V = own + 1; V <= c->train.batch && V <= 4 * (int64_t)d->cores; V++) {
        double x = c->train.batch % V ? 0 : use_of(c, V, d->cores);
        if (x <= most || !is_possible(c, V)) continue;
        most = x;
        best = V;
    }
    return best;
}

/* More threads than cores take turns: steps get slower, not faster. */
static void write_crowded(const ls_division *d, ls_buf *out) {
    int fit = d->cores / d->workers;
    ls_buf_printf(out,
                  "warning: %d worker%s with %d thread%s each, on %d core%s: they take turns; ",
                  d->workers, ls_plural(d->workers), d->threads, ls_plural(d->threads), d->cores,
                  ls_plural(d->cores));
    if (fit > 0)
        ls_buf_printf(out, "parallel.threads=%d would fit", fit);
    else
        ls_buf_printf(out, "%d worker%s would fit", d->cores, ls_plural(d->cores));
}

void ls_division_write(const ls_config *c, const ls_division *d, ls_buf *out) {
    int used = d->workers * d->threads;
    int64_t better = ls_division_better(c, d);
    if (used > d->cores) {
        write_crowded(d, out);
        return;
    }
    ls_buf_printf(out, "%d worker%s x %d thread%s = %d", d->workers, ls_plural(d->workers),
                  d->threads, ls_plural(d->threads), used);
    if (used < d->cores) ls_buf_printf(out, " of %d", d->cores);
    ls_buf_printf(out, " core%s%s", ls_plural(d->cores), d->all ? "" : " of this machine");
    if (better)
        ls_buf_printf(out, "; train.virtual_workers=%lld would use them better", (long long)better);
}
