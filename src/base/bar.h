/* bar.h - a line on the terminal that says how much of a long work is done:
 *
 *     predicting  12800 of 60000 (21%), left 0:14
 *
 * It stands on standard error, is drawn anew at most five times a second, and is removed at the
 * end. Where standard error is no terminal nothing is written. One thread at a time. */
#ifndef LS_BASE_BAR_H
#define LS_BASE_BAR_H

#include <stdint.h>

typedef struct ls_bar {
    const char *what;
    uint64_t all;
    int64_t began_ns, drawn_ns;
    int columns; /* of the line on the terminal; 0: there is none */
} ls_bar;

ls_bar ls_bar_begin(const char *what, uint64_t all);
void ls_bar_at(ls_bar *, uint64_t done);
void ls_bar_end(ls_bar *);

#endif
