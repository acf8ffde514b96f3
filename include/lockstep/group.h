/* group.h - groups of workers, and the collectives that keep them in step.
 *
 *     ls_group *g;
 *     ls_error e;
 *     if (ls_group_open(NULL, &g, &e) != LS_OK) ...;      // who I am: from the environment
 *     ls_all_reduce(g, grad, grad, n, LS_F32, LS_AVG, &e);
 *     ls_group_close(g);
 *
 * The same program runs under `lockstep run -n 4`, under mpirun or srun, with RANK, WORLD_SIZE,
 * MASTER_ADDR and MASTER_PORT as torchrun sets them, and alone, as a group of one.
 *
 * Every collective is called by all workers of the group, in the same order, with the same count,
 * dtype, operation and root. If they differ, each gets LS_EINVAL with a message that says who called
 * what, from which file and line. One thread at a time may call a group; other groups (split or
 * duplicated) may be used by other threads.
 *
 * Errors: LS_EINVAL (a bad argument): this call failed, outputs are untouched, the group lives.
 * LS_EPEER, LS_ETIMEOUT, LS_EABORT and a disagreement: outputs are undefined, and the group can only
 * be closed.
 */
#ifndef LOCKSTEP_GROUP_H
#define LOCKSTEP_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/lockstep.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Types of elements. */
typedef enum ls_dtype {
    LS_F64,
    LS_F32,
    LS_BF16, /* the upper half of an f32; sums are made in f32 and rounded once */
    LS_F16,  /* IEEE binary16; the same */
    LS_I64,
    LS_I32,
    LS_I8,
    LS_U8,
    LS_NDTYPES
} ls_dtype;

/* What a reduction does with elements. Integers wrap around. LS_AVG is for floating point only: the
 * sum, divided by the number of workers. The minimum or maximum of a NaN and a number is a NaN, and
 * -0 is less than +0: so that no order matters. */
typedef enum ls_op { LS_SUM, LS_AVG, LS_PROD, LS_MIN, LS_MAX, LS_NOPS } ls_op;

/* Bytes of one element: 1 to 8. */
size_t ls_dtype_size(ls_dtype dtype);
/* "f64", "f32", "bf16", "f16", "i64", "i32", "i8", "u8"; "sum", "avg", "prod", "min", "max". */
const char *ls_dtype_name(ls_dtype dtype);
const char *ls_op_name(ls_op op);

#ifdef __cplusplus
}
#endif
#endif
