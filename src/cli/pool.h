/* pool.h - several trainings at once: this program, started as other processes, whose output goes
 * to files.
 *
 * Each leads a process group of its own, and is killed when this process ends. While a pool is
 * open, SIGINT, SIGTERM and SIGHUP are taken from it by cli_pool_wait(). One pool, one thread.
 */
#ifndef LS_CLI_POOL_H
#define LS_CLI_POOL_H

#include "base/error.h"

typedef struct cli_pool cli_pool;

cli_pool *cli_pool_open(void);
/* Ends what still runs: SIGTERM, so that trainings write a checkpoint, and after 10 s SIGKILL. NULL
 * is allowed. */
void cli_pool_close(cli_pool *);

/* Starts `lockstep` with these arguments (argv[0] is any text). Its output is appended to the file
 * `output`. `tag` names it to the caller. */
ls_status cli_pool_start(cli_pool *, char *const *argv, const char *output, int tag, ls_error *);
/* Waits until one of those that run ends: its tag, and its exit code or 128 + its signal. LS_EABORT:
 * this process got a signal. */
ls_status cli_pool_wait(cli_pool *, int *tag_p, int *code_p, ls_error *);

#endif
