/* folder.h - a run's folder on disk: made, taken up again, and held by one program at a time.
 *
 * Worker 0 alone changes it; the others read from it, so on several hosts it lies on a file system
 * that they share.
 */
#ifndef LS_TRAIN_FOLDER_H
#define LS_TRAIN_FOLDER_H

#include "train/metrics.h"

typedef struct ls_folder {
    const ls_run *run;
    int lock;     /* a descriptor, or -1: not held */
    bool fresh;   /* made now: goes again unless kept */
    int64_t step; /* steps complete at the newest checkpoint; 0: none */
} ls_folder;

/* A new one: config, tokenizer and tokens. Nothing is written until everything but the disk is
 * known to be right. */
ls_status ls_folder_create(ls_folder *f_p, const ls_run *, ls_error *);
/* An old one, whose config must be compatible; changes nothing. One that is not there is created,
 * and one without a checkpoint begins again. */
ls_status ls_folder_reopen(ls_folder *f_p, const ls_run *, ls_error *);
/* That of a run whose workers were lost, as it is. */
ls_status ls_folder_enter(ls_folder *f_p, const ls_run *, ls_error *);
/* The same where the run ends on this host; another host may have it for a few seconds: LS_EINVAL
 * if it keeps it. */
ls_status ls_folder_hold(ls_folder *f_p, const ls_run *, ls_error *);
/* Before a checkpoint: what was taken away of the folder is made again, as far as it is known. */
ls_status ls_folder_mend(ls_folder *, const ls_corpus *, ls_error *);
/* Training begins: from here on a fresh one stays; an old one gets the new config, and loses the
 * metrics of steps that will be done again. */
ls_status ls_folder_keep(ls_folder *, ls_logged *logged_p, ls_error *);
void ls_folder_close(ls_folder *);

/* The checkpoint of a step: free() it. */
char *ls_folder_checkpoint(const ls_run *, int64_t step);

#endif
