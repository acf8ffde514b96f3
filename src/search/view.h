/* view.h - a search as it is shown: tables of trials, for people and programs. */
#ifndef LS_SEARCH_VIEW_H
#define LS_SEARCH_VIEW_H

#include "base/json.h"
#include "search/methods.h"

typedef struct ls_search_view {
    const ls_space *space;
    const ls_search *search;
    const char *dir;
} ls_search_view;

/* The run directory of a part of a trial: free() it. */
char *ls_search_part_dir(const ls_search_view *, int trial, int part);

/* Logs one line: the method, its trials, and the values that are tried. */
void ls_search_log_plan(const ls_search_view *);
/* Trials and their values, before any is trained. */
void ls_search_print_trials(const ls_search_view *, ls_buf *out);
/* Appends trials, the best first, and how many came to each rung. */
void ls_search_print_table(const ls_search_view *, ls_buf *out);
/* One line: how far the search is. */
void ls_search_print_progress(const ls_search_view *, ls_buf *out);
/* The table's contents and the files of the best trial; the caller frees them. */
ls_json *ls_search_json(const ls_search_view *);

#endif
