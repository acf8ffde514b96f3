/* environment.h - this process's rank, size and address, from the variables that its launcher set.
 *
 *     launcher      rank                  size                  local rank and size
 *     lockstep      LOCKSTEP_RANK         LOCKSTEP_SIZE         LOCKSTEP_LOCAL_RANK, ..._SIZE
 *     torchrun      RANK                  WORLD_SIZE            LOCAL_RANK, LOCAL_WORLD_SIZE
 *     Open MPI      OMPI_COMM_WORLD_RANK  OMPI_COMM_WORLD_SIZE  ..._LOCAL_RANK, ..._LOCAL_SIZE
 *     PMI (MPICH)   PMI_RANK              PMI_SIZE              MPI_LOCALRANKID, MPI_LOCALNRANKS
 *     PMIx          PMIX_RANK             (see environment.c)
 *     Slurm         SLURM_PROCID          SLURM_STEP_NUM_TASKS  SLURM_LOCALID
 *
 * If the ranks of several launchers are set, the launcher that started this process decides: the
 * one that is nearest among its parents. If that is not clear and they contradict each other, they
 * are refused; if they agree, the first in this order decides. Ranks that are set by hand under a
 * launcher must agree with it, or be more. Without any, the program is alone, a group of one;
 * WORLD_SIZE other than 1 is then refused.
 *
 * With each launcher, LOCKSTEP_ADDR (host:port or [ipv6]:port), else MASTER_ADDR and MASTER_PORT,
 * say where worker 0 listens, unless they came with the rank of a launcher that does not decide.
 * Tasks of srun, with PMI or PMIx too, have an address without them: the step's first node, and a
 * port made of the job's number.
 */
#ifndef LS_NET_LAUNCH_ENVIRONMENT_H
#define LS_NET_LAUNCH_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* More workers than this are a mistake in a variable. */
#define LS_MAX_WORKERS 1048576

typedef enum ls_launcher {
    LS_LAUNCHER_NONE, /* alone */
    LS_LAUNCHER_LOCKSTEP,
    LS_LAUNCHER_TORCHRUN,
    LS_LAUNCHER_OPENMPI,
    LS_LAUNCHER_PMI,
    LS_LAUNCHER_PMIX,
    LS_LAUNCHER_SLURM
} ls_launcher;

typedef struct ls_environment {
    ls_launcher launcher;
    int rank, size;             /* 0, 1 unless a variable says otherwise */
    int local_rank, local_size; /* among the workers of this host; -1: unknown */
    char host[256];             /* where worker 0 listens; "" and port 0: unknown */
    int port;
    bool port_taken; /* torchrun's own agent listens on `port`: worker 0 takes one after it */
} ls_environment;

/* Reads and checks the environment; changes nothing. Must not run while another thread calls
 * setenv(). LS_EINVAL: a variable is wrong or missing; the message names it, its value and what was
 * expected. */
ls_status ls_environment_read(ls_environment *env_p, ls_error *);

/* "none", "lockstep", "torchrun", "Open MPI", "PMI", "PMIx", "Slurm". */
const char *ls_launcher_name(ls_launcher launcher);
/* The same for messages; "the environment" if the launcher's variables were set by hand. */
const char *ls_launcher_title(ls_launcher launcher);

/* The first host of a list as Slurm writes it: "node[003-007,010],other-[1-2]x" gives "node003".
 * The whole list is checked. host_p [n] is left as it was on failure: LS_EINVAL, the list is
 * malformed or the name doesn't fit. */
ls_status ls_nodelist_first(const char *list, char *host_p, size_t n, ls_error *);

#endif
