/* run_log.c - see run_log.h. */
#include "train/run_log.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/escape.h"
#include "base/transcript.h"
#include "storage/folder.h"

void ls_run_log_open(const ls_run *r, int pid) {
    char host[128] = "", *path = ls_format("%s/" LS_FOLDER_LOG, r->dir);
    ls_buf first = {0};
    gethostname(host, sizeof host - 1);
    ls_buf_put(&first, "---- started on %s, process %d: %s", host, pid,
               r->command ? r->command : "by a program");
    ls_transcript_open(path, first.data);
    ls_buf_free(&first);
    free(path);
}
