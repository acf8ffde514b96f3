/* tune_print.h - what `lockstep tune` shows: tables of trials, for people and programs. */
#ifndef LS_CLI_TUNE_PRINT_H
#define LS_CLI_TUNE_PRINT_H

#include "base/json.h"
#include "perf/search.h"

typedef struct cli_tune_view {
    const ls_space *space;
    const ls_search *search;
    const char *dir;
} cli_tune_view;

/* The run directory of a part of a trial: free() it. */
char *cli_tune_part_dir(const char *dir, const ls_search *, int trial, int part);

/* One line: the method, its trials, and the values that are tried. */
void cli_tune_print_plan(const cli_tune_view *, ls_buf *out);
/* Trials and their values, before any is trained. */
void cli_tune_print_trials(const cli_tune_view *, ls_buf *out);
/* Appends trials, the best first, and how many came to each rung. */
void cli_tune_print_table(const cli_tune_view *, ls_buf *out);
/* One line: how far the search is. */
void cli_tune_print_progress(const cli_tune_view *, ls_buf *out);
/* The same as the table, and the best one's files: the caller frees it. */
ls_json *cli_tune_json(const cli_tune_view *);

#endif
