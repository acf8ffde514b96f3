/* child.h - runs another program, collects its output, and ends it after a time limit. */
#ifndef LS_CLI_CHILD_H
#define LS_CLI_CHILD_H

#include "base/mem.h"

/* argv[0] is looked up in PATH; standard input is empty. *code_p: its exit code, or 128 + the
 * signal that ended it. out, err: its output is appended, even on an error.
 *
 * The program leads a process group of its own. After limit_s, and on SIGINT, SIGTERM or SIGHUP to
 * this process, the group gets SIGTERM, and SIGKILL 2 s later. If this process is killed, the
 * program gets SIGTERM. No other thread may use signals during the call.
 *
 * Errors   LS_EIO: it can't be started. LS_ETIMEOUT: it was ended after limit_s. LS_EABORT: this
 *          process got the signal *code_p - 128. */
ls_status cli_child_run(char *const *argv, double limit_s, ls_buf *out, ls_buf *err, int *code_p,
                        ls_error *);

#endif
