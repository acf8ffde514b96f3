/* runtime.h - the two ways in which workers live.
 *
 *                     plain                               supervised
 *     workers are     threads; one process that plays     processes that this one starts and
 *                     all; processes of a launcher        supervises (cluster/supervisor.h)
 *     their state     ends with them                      lies in memory that outlives them
 *     one is lost     the run ends                        the others continue in the next view
 *     checkpoints     worker 0 writes, the others wait    another process writes
 *     they stop       at a signal                         when the supervisor asks
 *
 * Both are tables of the same functions. Other code depends only on the bit `survives`.
 */
#ifndef LS_TRAIN_RUNTIME_H
#define LS_TRAIN_RUNTIME_H

#include "exec/exec.h"
#include "net/local/board.h"

struct ls_host;
struct ls_loop;
struct ls_member;
struct ls_verdict;

typedef struct ls_runtime {
    bool survives;         /* host->store and host->survival exist */
    const char *when_lost; /* ends the message about a worker that was killed */
    /* Called when the workers have ended without an error. stopped: one of them ended before the
     * last step. */
    ls_status (*finish)(const struct ls_host *, bool stopped, bool *unfinished_p, ls_error *);
    /* Sets the callbacks of the executor. */
    void (*connect)(struct ls_member *, ls_exec_config *);
    /* This worker has made its part of a new state; the others may not have made theirs yet. */
    void (*has_made)(const struct ls_member *);
    /* Collective. All parts of the state after m->first_step steps exist (found: earlier workers
     * left them): prepares the next step. */
    ls_status (*take_up)(struct ls_member *, bool found, ls_error *);
    /* What this worker is asked to do after a step. */
    ls_asked (*asked)(const struct ls_loop *);
    /* Collective. An audit found a worker that differs from the others in `what`. LS_OK: it leaves,
     * and the view ends. */
    ls_status (*evict)(const struct ls_loop *, const struct ls_verdict *, const char *what,
                       ls_error *);
    /* A worker's part of the view has ended. Does the process stay for the next view? */
    bool (*may_rest)(const struct ls_host *, ls_status how);
} ls_runtime;

extern const ls_runtime ls_runtime_plain, ls_runtime_supervised;

#endif
