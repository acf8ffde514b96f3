/* bar.c - see bar.h. */
#include "base/bar.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"

enum { FIRST_NS = 500000000, NEXT_NS = 200000000 };

ls_bar ls_bar_begin(const char *what, uint64_t all) {
    int64_t now = ls_clock_ns();
    return (ls_bar){
        .what = what, .all = all, .began_ns = now, .drawn_ns = now + FIRST_NS - NEXT_NS};
}

static void clear(const ls_bar *p) {
    if (p->columns) fprintf(stderr, "\r%*s\r", p->columns, "");
}

void ls_bar_at(ls_bar *p, uint64_t done) {
    int64_t now = ls_clock_ns();
    if (!ls_log_is_terminal() || now - p->drawn_ns < NEXT_NS || done == 0 || p->all == 0) return;
    if (done > p->all) done = p->all;
    double left = (double)(now - p->began_ns) / 1e9 / (double)done * (double)(p->all - done);
    int64_t seconds = (int64_t)(left + 0.5);
    clear(p);
    p->columns =
        fprintf(stderr, "%s  %llu of %llu (%d%%), left %lld:%02d", p->what,
                (unsigned long long)done, (unsigned long long)p->all, (int)(100 * done / p->all),
                (long long)(seconds / 60), (int)(seconds % 60));
    if (p->columns < 0) p->columns = 0;
    fflush(stderr);
    p->drawn_ns = now;
}

void ls_bar_end(ls_bar *p) {
    clear(p);
    p->columns = 0;
}
