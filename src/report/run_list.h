/* run_list.h - the run directories below a directory.
 *
 * The search does not enter runs, links, or directories whose names begin with a dot. Directories
 * that can't be read are left out, and counted.
 */
#ifndef LS_REPORT_RUN_LIST_H
#define LS_REPORT_RUN_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum { LS_RUN_LIST_DEPTH = 8, LS_RUN_LIST_MOST = 200000 /* names */ };

typedef struct ls_run_list {
    char **runs; /* [n] paths, which begin with that of the directory; sorted */
    size_t n;
    size_t nnames;  /* names that were looked at */
    bool cut;       /* there are more than LS_RUN_LIST_MOST: the rest was not looked at */
    size_t nunread; /* directories that can't be read */
    char *unread;   /* the first of these; NULL: none */
    int why;        /* errno of it */
} ls_run_list;

/* Adds the runs below a directory, or the directory itself if it is a run. LS_EIO: it can't be
 * read, or is no directory. The caller frees *l with ls_run_list_free(), also after an error. */
ls_status ls_run_list_add(const char *dir, ls_run_list *l, ls_error *);
void ls_run_list_free(ls_run_list *);

#endif
