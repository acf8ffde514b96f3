/* noise.h - the gradient noise scale: how large a batch may be before samples are wasted.
 *
 * With B samples, the squared norm of the mean gradient is on average |G|^2 + tr(S) / B: |G|^2 of
 * the gradient itself, and S the covariance of one sample's gradient. The simple noise scale is
 * tr(S) / |G|^2, in samples: far below it, twice the batch takes almost half the steps; far above,
 * almost as many. McCandlish, Kaplan, Amodei et al., "An empirical model of large-batch training",
 * arXiv 1812.06162.
 *
 * The scale is measured in each step from the gradients of the virtual workers:
 *   - by two points: |gradient|^2 of a virtual worker, the mean of all, and that of the batch;
 *   - by a line through all levels of the tree of sums: the means over 1, 2, 4 ... virtual workers.
 *     Norms of the sums between are estimated from a projection on LS_NOISE_DIMS numbers, with
 *     random signs, that each virtual worker's gradient has. The line's misfit shows gradients
 *     whose mean does not behave as that of independent samples.
 * Squares are summed over blocks of LS_BLOCK elements, and these sums exactly (LS_NOISE_BINS); so
 * the figures have the same bits for any number of workers, also where each has other blocks. In a
 * large model each step measures one of several groups of blocks, in turn.
 *
 * The ratio of two noisy numbers is biased, so both are averaged over steps first.
 */
#ifndef LS_OPTIM_NOISE_H
#define LS_OPTIM_NOISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LS_NOISE_DIMS = 32,
    LS_NOISE_TURNS = 8,   /* at most: steps in which each block is taken once */
    LS_NOISE_BLOCKS = 64, /* taken in a step, at least, if there are as many */
    LS_NOISE_LEVELS = 14, /* of the tree, at most: 4096 virtual workers */
    LS_NOISE_SIGNS = 1024 /* floats; of a block */
};

/* ---- a virtual worker's gradient ---- */

/* The random signs by which a step multiplies gradients, for the projection. */
typedef struct ls_noise_signs {
    float signs[LS_NOISE_SIGNS]; /* of a block's elements, 1 or -1 */
    uint64_t key[2];             /* of the blocks' signs */
} ls_noise_signs;
void ls_noise_draw(uint64_t seed, int64_t step, ls_noise_signs *);

/* The number of steps in which all blocks of a model of nblocks blocks are measured. */
static inline size_t ls_noise_turns(size_t nblocks) {
    size_t turns = nblocks / LS_NOISE_BLOCKS;
    return turns < 1 ? 1 : turns < LS_NOISE_TURNS ? turns : LS_NOISE_TURNS;
}
/* Is the block measured in this step? */
static inline bool ls_noise_takes(size_t turns, size_t block, int64_t step) {
    return (block + (size_t)step) % turns == 0;
}

/* Numbers of a virtual worker: the sum of squares, then its projection.
 *
 * Each is a sum of floats, and has a bin for each 32 binary digits of a float's range. A float is
 * divided between two bins at most, and a bin's part of it is a whole number of the bin's units,
 * less than 2^32: so sums of 2^21 of them are exact in doubles, and bins can be added in any order.
 * What is smaller than the lowest bin's unit, 2^-96, is left out. */
enum {
    LS_NOISE_NUMBERS = 1 + LS_NOISE_DIMS,
    LS_NOISE_BINS = 7,
    LS_NOISE_SUMS = LS_NOISE_NUMBERS * LS_NOISE_BINS
};
/* Adds a block, of the model's nblocks, that the step takes. sums: of the squares of its elements,
 * and of its elements times their signs. */
void ls_noise_add_block(const ls_noise_signs *, size_t nblocks, size_t block, const float sums[2],
                        double bins[LS_NOISE_SUMS]);
/* Adds up the bins, when all blocks have been added. */
void ls_noise_add_up(const double bins[LS_NOISE_SUMS], double numbers[LS_NOISE_NUMBERS]);

/* ---- a step ---- */

typedef struct ls_noise_step {
    bool known;           /* else the step's virtual workers had different numbers of samples */
    double samples;       /* of a virtual worker */
    double trace, square; /* estimates of tr(S) and |G|^2 */
    double norms[LS_NOISE_LEVELS]; /* mean |gradient|^2 of each level */
} ls_noise_step;

/* The number of levels of V virtual workers, and the number of virtual workers over which a mean of
 * a level is. */
int ls_noise_nlevels(int V);
int ls_noise_level_size(int V, int level);

/* numbers [V][LS_NOISE_NUMBERS], of gradients whose sum is the batch's, times `scale`; whole: the
 * squares of that sum. samples: of the batch. */
typedef struct ls_noise_sums {
    int V;
    const double *numbers;
    double whole, scale;
    uint64_t samples;
} ls_noise_sums;
void ls_noise_of(const ls_noise_sums *, ls_noise_step *out);

/* ---- a run ---- */

/* Averages over about the last 100 steps. All 0 at the beginning. */
typedef struct ls_noise_mean {
    double trace, square;
    double samples; /* of a virtual worker; with another batch the levels begin anew */
    double norms[LS_NOISE_LEVELS];
    int64_t steps; /* that were measured */
} ls_noise_mean;
void ls_noise_add(ls_noise_mean *, const ls_noise_step *);

/* Noise scales in samples; NAN: not known, e.g. where noise hides the gradient. */
typedef struct ls_noise_scale {
    double simple; /* by two points */
    double fit;    /* by the line */
    double misfit; /* root mean square of the levels' relative distances from the line */
} ls_noise_scale;
ls_noise_scale ls_noise_scale_of(const ls_noise_mean *, int V);

#endif
