/* staleness.c - see staleness.h. */
#include "async/staleness.h"

void ls_staleness_add(ls_staleness *s, int64_t staleness) {
    int64_t last = LS_STALENESS_PLACES - 1;
    s->counts[staleness < last ? staleness : last]++;
    s->n++;
    s->sum += staleness;
    if (staleness > s->most) s->most = staleness;
}

void ls_staleness_write(const ls_staleness *s, ls_buf *out) {
    double n = s->n ? (double)s->n : 1;
    ls_buf_printf(out, "mean %.2f, most %lld; ", (double)s->sum / n, (long long)s->most);
    for (int i = 0, shown = 0; i < LS_STALENESS_PLACES; i++) {
        if (!s->counts[i]) continue;
        const char *more = i == LS_STALENESS_PLACES - 1 ? " or more" : "";
        ls_buf_printf(out, "%s%d%s: %.1f%%", shown++ ? ", " : "", i, more,
                      100 * (double)s->counts[i] / n);
    }
}
