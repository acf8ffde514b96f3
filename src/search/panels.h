/* panels.h - a picture of a search whose trials all have the same steps: the metric by the values
 * of each key, a panel a key, a dot a trial. */
#ifndef LS_SEARCH_PANELS_H
#define LS_SEARCH_PANELS_H

#include "search/view.h"

typedef struct ls_keys_panel {
    const char *key;
    const double *x; /* [trials] the trial's value; NAN: it does not have this key */
    bool is_log;
    bool is_drawn;             /* values were drawn from a range: they are no round numbers */
    const char *const *labels; /* [nlabels] words: x is one's number; NULL: x is a number */
    int nlabels;
} ls_keys_panel;

typedef struct ls_keys_picture {
    const char *title, *metric;
    const double *values; /* [n] the trial's metric; INFINITY: it diverged; NAN: not known yet */
    int n, best;          /* best: a trial; -1: none */
    const ls_keys_panel *panels; /* [npanels] */
    int npanels;
} ls_keys_picture;

/* Self-contained, 800 wide. */
void ls_keys_svg(const ls_keys_picture *, ls_buf *out);
/* Writes that of a search, in place of an earlier one. */
ls_status ls_keys_write(const ls_search_view *, const char *path, ls_error *);

#endif
