/* child.h - runs another program, takes what it writes, and ends it where it takes too long. */
#ifndef LS_CLI_CHILD_H
#define LS_CLI_CHILD_H

#include "base/mem.h"

/* argv[0] is looked up in PATH; standard input is empty. *code_p: its exit code, or 128 + the
 * signal that ended it. out, err: what it wrote is appended, also where this fails.
 *
 * The program leads a process group of its own. After limit_s, and on SIGINT, SIGTERM or SIGHUP to
 * this process, all of the group are told to end, and killed 2 s later. No thread may use signals
 * meanwhile.
 *
 * Errors   LS_EIO: it can't be started. LS_ETIMEOUT: it was ended after limit_s. LS_EABORT: this
 *          process was told to end by the signal *code_p - 128. */
ls_status cli_child_run(char *const *argv, double limit_s, ls_buf *out, ls_buf *err, int *code_p,
                        ls_error *);

#endif
