/* division.h - how a machine's cores are divided among workers and their threads, for people.
 *
 * ls_config_threads() decides how many threads a worker has. The bits depend on neither.
 */
#ifndef LS_TRAIN_DIVISION_H
#define LS_TRAIN_DIVISION_H

#include "config/config.h"

/* One machine of a run. */
typedef struct ls_division {
    int workers, threads; /* on the machine; of each of them */
    int cores;
    bool all;  /* the run has no other machine */
    bool free; /* a new run that chose its number of workers: it could have other virtual workers */
    bool talks; /* each worker has one more thread, for communication */
    /* Where a launcher has bound workers to more cores than others; else 0. */
    int most, used; /* threads of the worker that has most, and of all, both with those for
                       communication; `threads` is that of the worker that has fewest */
} ls_division;

/* Virtual workers with which such a run would use the cores better; 0: there are none. */
int64_t ls_division_better(const ls_config *, const ls_division *);

/* Fewer workers with more threads, with which it would; 0: there are none. */
int ls_division_fewer(const ls_config *, const ls_division *);

/* Appends "4 workers x 2 threads = 8 cores", with the advice if there is any; if there are more
 * threads than cores, a warning. */
void ls_division_write(const ls_config *, const ls_division *, ls_buf *out);

#endif
