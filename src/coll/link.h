/* link.h - the speeds of the links between workers, in five numbers: measured, or from a file.
 *
 * All workers of an endpoint have the same numbers, to the bit: they choose algorithms by them,
 * each by itself (choose.h), and two that choose differently would wait for each other. So worker 0
 * decides whether they are measured or read, and when they are measured, the slowest worker's count
 * for all. That is done once, while the endpoint is opened, when all workers are there and nothing
 * else is on its way; groups that are split later, and other threads, find the numbers ready.
 */
#ifndef LS_COLL_LINK_H
#define LS_COLL_LINK_H

#include "coll/algo/cost.h"
#include "net/net.h"
#include "tensor/kernels.h"

/* For messages through shared memory, which are not measured: workers that share memory send none,
 * except where an algorithm is forced. */
extern const ls_link ls_link_default;

enum { LS_LINK_CARE = 2 }; /* while a group is opened */

typedef struct ls_link_plan {
    const char *path; /* worker 0: of a file of numbers; NULL or "": they are measured */
    const int *hosts; /* [size] a number for each worker's host */
    int care;         /* number of measurements; the least times count */
    int64_t timeout_ns;
} ls_link_plan;

/* *given_p: the numbers are from the file. Collective over the transport, on which nothing else is
 * on its way. Takes a few milliseconds where links are fast, and about thirty message times where
 * they are slow. LS_EINVAL: worker 0's file is wrong; all workers get this. */
ls_status ls_link_agree(ls_net *, const ls_kernels *, const ls_link_plan *, ls_link *link_p,
                        bool *given_p, ls_error *);

/* The file, which is YAML. Writing replaces it; `of` says in a comment what was measured. */
ls_status ls_link_read(const char *path, ls_link *link_p, ls_error *);
ls_status ls_link_write(const char *path, const ls_link *, const char *of, ls_error *);

#endif
