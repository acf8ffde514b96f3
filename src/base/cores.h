/* cores.h - the cores that this process may use, as hwloc reports them, and which of them each of
 * several workers and their threads is bound to.
 *
 * HWLOC_SYNTHETIC and HWLOC_THISSYSTEM=0 describe another machine; then nothing is bound.
 */
#ifndef LS_BASE_CORES_H
#define LS_BASE_CORES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* LS_EINVAL: LOCKSTEP_CORES is no number of cores. */
ls_status ls_cores_check(ls_error *);

/* The number of cores in the process's affinity mask; two hyperthreads count as one core. Fewer if
 * a control group allows less processor time, or LOCKSTEP_CORES says so. At least 1. */
int ls_cores(void);

/* The number of cores that `workers` processes of this host have together, this one included. A
 * launcher such as mpirun may bind each process to cores of its own, and then each sees only
 * those. */
int ls_cores_among(int workers);

/* Are the cores those of another machine, that HWLOC_SYNTHETIC describes? What runs is timed on
 * this machine's cores all the same. */
bool ls_cores_are_described(void);

/* The cores of the machine, or of the container, that this process could use if no launcher and no
 * user had bound it to some; where processor time is limited, as ls_cores(). */
int ls_cores_unbound(void);

/* ---- which cores other workers have ---- */

/* What a process says of its cores, for others to compare with theirs. */
enum { LS_CORES_WORDS = 32 };
typedef struct ls_cores_seen {
    uint64_t machine; /* one boot of one kernel */
    uint64_t limit;   /* the control group that limits its processor time; 0: none does */
    uint64_t n;       /* cores */
    uint64_t cores[LS_CORES_WORDS]; /* a bit for each, by the number of its first hardware thread */
} ls_cores_seen;
void ls_cores_see(ls_cores_seen *);

/* A worker among others. */
typedef struct ls_cores_seat {
    int near;           /* workers on this machine, this one among them */
    int all;            /* cores of all of these together */
    int sharing, index; /* workers that may use cores of this one, itself among them; its number */
    int cores;          /* of this one */
    bool equal;         /* all that share with it may use the same cores */
} ls_cores_seat;
ls_cores_seat ls_cores_seat_of(const ls_cores_seen *workers, int n, int worker);

/* ---- binding ---- */

/* The NUMA nodes of these cores; those of several packages count for each. */
int ls_cores_nodes(void);

/* Sets worker_p [ls_cores()] to the worker that has each core (core_parts.h), for n workers of
 * `threads` threads each. False: they have no cores of their own: there are too few, or processor
 * time is limited, so that other processes may use the same cores. */
bool ls_cores_divide(int n, int threads, int *worker_p);

/* Sets node_p [n] to the NUMA node of each worker's first core. False as above. */
bool ls_cores_nodes_of(int n, int threads, int *node_p);

/* Binds the calling thread, and threads and processes that it starts, to the cores of worker i of n
 * that ls_cores_divide() gives it; does nothing if there are none. */
void ls_cores_bind_worker(int i, int n, int threads);
/* Binds the calling thread to all cores of the process again. */
void ls_cores_unbind(void);
/* Binds the calling thread to the core of the worker's thread t, of `threads`. */
void ls_cores_bind_thread(int i, int n, int threads, int t);

/* Where the system puts pages that nobody has touched yet: in turn on the NUMA nodes of the
 * process's cores; on those of the cores that the calling thread is bound to. False: it refuses. */
bool ls_cores_interleave(void *memory, size_t nbytes);
bool ls_cores_keep_near(void *memory, size_t nbytes);

/* NUMA nodes have numbers from 0 to ls_cores_nodes() - 1. Returns how many cores the node has. */
int ls_cores_of_node(int node);
/* Binds the calling thread to the node's t-th core. */
void ls_cores_bind_node(int node, int t);
/* Makes the system put untouched pages on the node, or nowhere. False: it refuses. */
bool ls_cores_place_on(void *memory, size_t nbytes, int node);

/* Binds this process, and the processes that it starts, to the cores of worker i of n. Binds
 * nothing if there are fewer than n cores, or if processor time is limited: then other processes
 * may use the same cores. Returns how many cores are the worker's; 0: less than one. */
int ls_cores_bind(int i, int n);

/* For tests, before any other call: where the files of control groups are (cgroup.h). */
void ls_cores_set_groups(const char *root, const char *self);

#endif
