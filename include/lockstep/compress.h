/* compress.h - all-reduces that send few bytes.
 *
 *     ls_compression how = {.kind = LS_COMPRESS_TOPK, .ratio = 0.01, .op = LS_AVG};
 *     ls_compression_state state = {.errors = calloc(n, sizeof(float))};
 *     for (how.step = 0;; how.step++) {
 *         ...
 *         ls_all_reduce_compressed(g, grad, grad, n, &how, &state, &e);
 *     }
 *
 * Each contribution is encoded by itself, and what the encoding loses is added to the next
 * contribution (error feedback), so that nothing is lost for good. docs/reference/compression.md
 * has the formulas, and what each method is good for.
 */
#ifndef LOCKSTEP_COMPRESS_H
#define LOCKSTEP_COMPRESS_H

#include "lockstep/group.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ls_compression_kind {
    LS_COMPRESS_TOPK,   /* the elements of largest magnitude, among equals those that come first */
    LS_COMPRESS_ONEBIT, /* signs, and one scale for each block */
    LS_COMPRESS_INT8,   /* integers of 8 bits, and one scale for each block */
    LS_COMPRESS_INT4,   /* of 4 bits */
    LS_COMPRESS_POWERSGD, /* a matrix of low rank */
    LS_COMPRESS_BF16,     /* the upper 16 bits of each element, rounded */
    LS_NCOMPRESSIONS
} ls_compression_kind;

/* What becomes of the error that an encoding makes. */
typedef enum ls_feedback {
    LS_FEEDBACK_ERROR, /* the error is added to the next contribution */
    LS_FEEDBACK_EF21,  /* the change since the last estimate of the contribution is encoded */
    LS_FEEDBACK_NONE,  /* the error is dropped */
    LS_NFEEDBACKS
} ls_feedback;

/* The scale of signs. */
typedef enum ls_sign_scale {
    LS_SCALE_MEAN, /* the mean magnitude of the block's elements */
    LS_SCALE_ROOT, /* the root of the mean of their squares */
    LS_NSIGN_SCALES
} ls_sign_scale;

/* How a sum is compressed. Fields that are 0 have their default; those that a kind doesn't name are
 * not read. All workers must give the same settings. */
typedef struct ls_compression {
    ls_compression_kind kind LS_UNSET;
    ls_feedback feedback LS_UNSET;
    ls_op op LS_UNSET;     /* LS_SUM or LS_AVG (over the contributions) */
    size_t k LS_UNSET;     /* topk: elements that are sent; 0: by ratio */
    double ratio LS_UNSET; /* topk: share of the elements, rounded up; 0: 0.01 */
    /* onebit, int8, int4: elements of a block, a multiple of 32; 0: 4096, 256, 64 */
    size_t block LS_UNSET;
    ls_sign_scale sign_scale LS_UNSET; /* onebit */
    int rank LS_UNSET;                 /* powersgd; 0: 4; 64 at most */
    /* powersgd: rows of the matrix, whose last row is filled up with zeros; 0: about the square
     * root of the count */
    size_t rows LS_UNSET;
    float decay LS_UNSET; /* share of the error that is dropped in each call, below 1 */
    /* onebit, int8, int4, bf16: workers sum a range of the vector each, and send the sum
     * encoded as well. Fewer bytes for more than two contributions */
    bool two_hops LS_UNSET;
    uint64_t seed LS_UNSET; /* powersgd: of the first factor */
    uint64_t step LS_UNSET; /* the number of this call; powersgd: of the first factor, too */
    /* contributions in all, at least one for each worker; 0: one each. Worker r of n has those from
     * r * V / n up to (r + 1) * V / n */
    int virtual_workers LS_UNSET;
} ls_compression;

/* The state that is carried from call to call: zeros before the first call. It belongs to the
 * caller, who may save and move it; it depends on contributions and elements, never on workers.
 *
 * errors   [own contributions, count] what each has yet to send, or with EF21 the estimate of it.
 *          NULL if the feedback is LS_FEEDBACK_NONE
 * shared   [ls_compression_shared()] the same on all workers: powersgd's factor, EF21's sum of
 *          estimates. NULL if that is 0
 * sums     [count] with two_hops: what the encoded sums have yet to pass on. A worker reads and
 *          writes its own range (ls_compression_range()) alone. NULL: that is dropped */
typedef struct ls_compression_state {
    float *errors LS_UNSET, *shared LS_UNSET, *sums LS_UNSET;
} ls_compression_state;

/* "topk", "onebit", "int8", "int4", "powersgd", "bf16". */
const char *ls_compression_name(ls_compression_kind kind);

/* Bytes of one encoded contribution of `count` elements, exactly; of powersgd both factors. 0 if
 * the settings are refused. */
size_t ls_compression_nbytes(const ls_compression *how, size_t count);

/* Floats of ls_compression_state.shared. */
size_t ls_compression_shared(const ls_compression *how, size_t count);

/* With two_hops: the elements [*first_p, *end_p) that worker `rank` of `size` sums. */
ls_status ls_compression_range(const ls_compression *how, size_t count, int rank, int size,
                               size_t *first_p, size_t *end_p, ls_error *e);

/* out [count] = the sum, or the average, of the encoded contributions, at all workers. Collective
 * on g, blocking.
 *
 * in     [own contributions, count]
 * out    may be in, else they don't overlap
 * state  see above; NULL: {NULL, NULL, NULL}
 *
 * Order   Each contribution is encoded by itself, and what was encoded is added in the fixed tree
 *         over the contributions. So with the same contributions, settings and state, out and state
 *         have the same bits for any number of workers, transport, algorithm and processor.
 * Cost    With m contributions on each of n workers, and b bytes each (ls_compression_nbytes()), a
 *         worker sends (n - 1) * (16 + m * b) bytes. With two_hops and equal ranges of which a
 *         contribution takes r bytes: (n - 1) * (32 + m * r + r). powersgd: (n - 1) * 16
 *         bytes, and all-reduces of b bytes.
 * Errors  LS_EINVAL: also on all workers if one's values are not finite, or exceed what f32 holds
 *         after the error was added; its element is named. out and state are untouched.
 *         LS_EDISAGREE: settings, count or op differ. */
ls_status ls_all_reduce_compressed(ls_group *g, const float *in, float *out, size_t count,
                                   const ls_compression *how, ls_compression_state *state,
                                   ls_error *e);

#ifndef LS_NO_CALL_SITES
#define ls_all_reduce_compressed(g, ...) ls_all_reduce_compressed(LS_CALL_SITE(g), __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
