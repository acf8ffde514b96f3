/* run_status.h - the state of a run, read from its run directory without changing it.
 *
 * It reads config.yaml, the text of the lock, the end of metrics.jsonl and the names of
 * checkpoints. Nothing is written, and the lock is not taken, not even for an instant. The run may
 * continue meanwhile, and its directory need not be writable.
 */
#ifndef LS_REPORT_RUN_STATUS_H
#define LS_REPORT_RUN_STATUS_H

#include "base/json.h"
#include "base/mem.h"
#include "config/config.h"

typedef enum ls_run_state {
    LS_RUN_RUNNING,  /* the process that the lock names is there and has the lock */
    LS_RUN_STOPPED,  /* no process has it; the run has a checkpoint, not of its last step */
    LS_RUN_COMPLETE, /* its last step, or the one where train.patience ended it, has a checkpoint */
    LS_RUN_DIVERGED, /* its loss was no number any more */
    LS_RUN_FAILED,   /* no process has it, and there is no checkpoint */
    LS_RUN_UNKNOWN   /* the lock names a process of another host; or config.yaml can't be read */
} ls_run_state;

const char *ls_run_state_name(ls_run_state);

/* A number that is not known is NAN, or negative. */
typedef struct ls_run_status {
    char *run; /* path */
    ls_run_state state;
    int pid;             /* of the process that the lock names; 0: none */
    char host[128];      /* its host; "": none */
    int64_t step, steps; /* complete, of those that the config asks for */
    double loss;         /* of the last step */
    double val_loss;     /* of the last evaluation, after val_step */
    int64_t val_step;
    double rate; /* of the last steps, in `unit` a second */
    char unit[16];
    double mfu;    /* of these steps: the share of the processor's peak */
    double left_s; /* of a run that is running: until its last step */
    int64_t workers, nbytes;
    int64_t checkpoint; /* the newest; -1: none */
    double age_s;       /* since metrics.jsonl was written last */
    ls_json *start;     /* the last line of a start (history.h); NULL: none */
    char *note;         /* what else is to be said; NULL: nothing */
} ls_run_status;

/* Is the directory that of a run? */
bool ls_run_status_is_run(const char *dir);
/* The caller frees *s_p with ls_run_status_free(). */
void ls_run_status_read(const char *run, ls_run_status *s_p);
/* The same by the last 20 steps of metrics.jsonl alone, of its last 32 kB, for callers that ask
 * often and know the last start (NULL: it has none) and the config (NULL: it can't be read, for the
 * reason `why`). An evaluation before them is not known. */
void ls_run_status_read_end(const char *run, const ls_json *start, const ls_config *,
                            const char *why, ls_run_status *s_p);
/* That of a run that was not read yet. */
void ls_run_status_unread(const char *run, ls_run_status *s_p);
void ls_run_status_free(ls_run_status *);
/* The status as JSON (docs/reference/json.md). The caller frees it. */
ls_json *ls_run_status_json(const ls_run_status *);

/* The lines of several runs, below each other, with names of the columns. */
void ls_run_status_print(const ls_run_status *, size_t n, ls_buf *out);

#endif
