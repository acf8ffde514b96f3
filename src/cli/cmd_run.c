/* cmd_run.c - lockstep run */
#include "base/cores.h"
#include "base/log.h"
#include "cli/cli.h"
#include "net/launch/child.h"
#include "net/launch/launch.h"

enum { WORKERS, RESTARTS, ARENA, NO_BIND, INSECURE };

static int run(const ls_args *a) {
    int64_t workers = ls_cores(), arena = 64, restarts = 0;
    if (!cli_integer(&cmd_run, a, WORKERS, 1, 4096, &workers) ||
        !cli_integer(&cmd_run, a, RESTARTS, 0, 1000000, &restarts) ||
        !cli_integer(&cmd_run, a, ARENA, 4, 1 << 20, &arena))
        return CLI_USAGE;
    ls_launch_options o = {.nworkers = (int)workers,
                           .arena_nbytes = (size_t)arena << 20,
                           .argv = a->rest,
                           .restarts = (int)restarts};
    o.bind = !cli_given(a, NO_BIND);
    ls_error e = {0};
    int code = 0;
    if (cli_given(a, INSECURE)) cli_make_insecure();
    ls_process_heed_usr1();
    if (ls_launch_run(&o, &code, &e) != LS_OK) return cli_fail(&e);
    if (code) ls_log("%s", e.msg);
    return code;
}

const ls_command cmd_run = {
    .name = "run",
    .words = "PROGRAM [ARGUMENTS...]",
    .min_words = 1,
    .max_words = 1,
    .takes_rest = true,
    .outlives_output = true,
    .summary = "start a program as workers of this host",
    .about =
        "Each worker finds its group with ls_group_open() and shares memory with the others.\n"
        "If one fails, the others are ended, and its exit code becomes this command's, unless\n"
        "--restarts is given.",
    .options =
        {[WORKERS] = {"workers", 'n', "N", "number of workers (default: one per core)"},
         [RESTARTS] = {"restarts", 0, "N",
                       "if a worker fails, start all again, at most N times (default: 0); programs "
                       "that write checkpoints continue from these"},
         [ARENA] = {"arena", 0, "MIB", "shared memory for each worker's buffers (default: 64)"},
         [NO_BIND] = {"no-bind", 0, NULL,
                      "don't bind workers to cores; by default each worker has its own core "
                      "if there are enough"},
         [INSECURE] = {"insecure", 0, NULL,
                       "TCP without a key and encryption: anyone who reaches a port can join, "
                       "read and change what is sent"}},
    .run = run,
};
