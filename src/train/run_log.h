/* run_log.h - RUN/log.txt: what is printed in a run, by all processes of worker 0's host. */
#ifndef LS_TRAIN_RUN_LOG_H
#define LS_TRAIN_RUN_LOG_H

#include "train/run.h"

/* On worker 0, which has the directory: from here on what this host prints is in the log, and what
 * it has printed since ls_transcript_begin(), after a line with the host, the process and the
 * command. pid: the process that holds the run's lock, which metrics.jsonl and `lockstep status`
 * name, too. */
void ls_run_log_open(const ls_run *, int pid);

#endif
