/* tune.h - a search over configs: `lockstep tune`.
 *
 * Trials are run directories in DIR, trained by a runner (runner.h) from one rung to the next. The
 * result depends neither on the number of trials at once nor on their workers, since runs have the
 * same bits on any number of these. The command may be killed at any moment: what a trial came to
 * is in DIR/tune.jsonl (trial_journal.h), or else found again from its run directory, and the same
 * command, or `lockstep tune --resume DIR`, goes on from there (saved.h).
 */
#ifndef LS_SEARCH_TUNE_H
#define LS_SEARCH_TUNE_H

#include "search/runner.h"
#include "search/saved.h"
#include "search/view.h"

typedef struct ls_tune_request {
    const ls_config *config;
    const ls_search_saved *asked; /* what the config was made of, and the text of the space */
    const char *space, *dir;      /* the name of the space; the directory of trials */
    ls_sharing sharing;
} ls_tune_request;

typedef struct ls_tune ls_tune;

/* Reads the space, and checks the configs of all trials. The request lives as long as the
 * search. */
ls_status ls_tune_open(const ls_tune_request *, ls_tune **t_p, ls_error *);
void ls_tune_close(ls_tune *); /* NULL is allowed */
const ls_search_view *ls_tune_view(const ls_tune *);

/* Trains all trials as far as the search wants, logs what each comes to, and writes DIR/best.yaml,
 * a table and a picture. LS_EABORT: interrupted. LS_EINVAL: the losses of all trials are no
 * numbers. */
ls_status ls_tune_train(ls_tune *, ls_error *);

#endif
