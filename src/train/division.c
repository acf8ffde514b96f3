/* division.c - see division.h. */
#include "train/division.h"

#include <stdlib.h>

#include "base/plural.h"
#include "config/relations.h"

/* Below this share of the cores' time another number of virtual workers is looked for; one that
 * uses this many times as much is worth a line. */
static const double ENOUGH = 0.9, MORE = 1.05;

/* The share of the cores' time that has work with n workers, where V virtual workers take the same
 * time each. */
static double use_with(const ls_config *c, int64_t V, int n, int cores) {
    ls_config with = *c;
    with.train.virtual_workers = V;
    int64_t ranks = ls_config_most_workers(&with) / V;
    if (n < ranks) return 0;
    int64_t groups = n / ranks, rounds = (V + groups - 1) / groups;
    double busy = (double)(n * ls_config_threads(&with, n, cores));
    return busy / cores * (double)V / (double)(groups * rounds);
}

/* With as many workers as a run with V virtual workers chooses. */
static double use_of(const ls_config *c, int64_t V, int cores) {
    ls_config with = *c;
    with.train.virtual_workers = V;
    int64_t most = ls_config_most_workers(&with), n = ls_config_workers_on(&with, cores);
    return use_with(c, V, (int)(n < most ? n : most), cores);
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
    double use = use_of(c, own, d->cores), most = use * MORE;
    if (!d->free || !d->all || use >= ENOUGH) return 0;
    for (int64_t V = own + 1; V <= c->train.batch && V <= 4 * (int64_t)d->cores; V++) {
        double x = c->train.batch % V ? 0 : use_of(c, V, d->cores);
        if (x <= most || !is_possible(c, V)) continue;
        most = x;
        best = V;
    }
    return best;
}

/* Not fewer than half: threads divide each product, and wait for each other in each. */
int ls_division_fewer(const ls_config *c, const ls_division *d) {
    int64_t V = c->train.virtual_workers;
    double use = use_of(c, V, d->cores), most = use * MORE;
    int best = 0;
    if (!d->free || !d->all || use >= ENOUGH || ls_config_ranks(c) > 1) return 0;
    for (int n = d->workers - 1; 2 * n >= d->workers; n--) {
        double x = use_with(c, V, n, d->cores);
        if (x <= most) continue;
        most = x;
        best = n;
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
    bool talks = d->talks && (d->used || d->workers * (d->threads + 1) <= d->cores);
    int each = d->threads + talks, used = d->used ? d->used : d->workers * each;
    int64_t better = ls_division_better(c, d);
    int fewer = better ? 0 : ls_division_fewer(c, d);
    if (used > d->cores) {
        write_crowded(d, out);
        return;
    }
    ls_buf_printf(out, "%d worker%s x %d", d->workers, ls_plural(d->workers), each);
    if (d->most > each) ls_buf_printf(out, " to %d", d->most);
    ls_buf_printf(out, " thread%s%s = %d", ls_plural(d->most > each ? d->most : each),
                  talks ? " (one for communication)" : "", used);
    if (used < d->cores) ls_buf_printf(out, " of %d", d->cores);
    ls_buf_printf(out, " core%s%s", ls_plural(d->cores), d->all ? "" : " of this machine");
    if (better)
        ls_buf_printf(out, "; train.virtual_workers=%lld would use them better", (long long)better);
    if (fewer) ls_buf_printf(out, "; -n %d would use them better", fewer);
}
