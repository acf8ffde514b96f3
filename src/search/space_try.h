/* space_try.h - the text of a search's file (space.h) from words of a command line:
 *
 *     optim.lr=1e-4,1e-3        these values
 *     optim.lr=log:1e-4,1e-1    numbers between these two, on a log scale; lin: on a linear one
 *     model.layers=int:2,8      whole numbers
 *
 * Values alone make a grid of all combinations; with a range numbers are drawn, by method random.
 */
#ifndef LS_SEARCH_SPACE_TRY_H
#define LS_SEARCH_SPACE_TRY_H

#include "search/space.h"

/* The name of the text in messages of ls_space_parse(). */
#define LS_SPACE_TRY "--try"

enum { LS_SPACE_TRY_TRIALS = 20 }; /* unless it is a grid */

typedef struct ls_space_tries {
    const char *const *words; /* [n] "KEY=VALUES" */
    int n;
    const char *method; /* NULL: grid or random, as above */
} ls_space_tries;

/* Appends the text. LS_EINVAL: the message names the word. */
ls_status ls_space_try(const ls_space_tries *, const ls_config *base, ls_buf *text, ls_error *);

#endif
