/* random.h - counter-based random numbers: a function of (seed, stream, index), never of a worker.
 *
 * Philox4x32-10. Source: Salmon, Moraes, Dror & Shaw, "Parallel random numbers: as easy as 1, 2,
 * 3", SC 2011. There is no state; any place of any stream is computed directly. The normal deviates
 * use only IEEE operations and our own logarithm, so they have the same bits on every machine.
 */
#ifndef LS_BASE_RANDOM_H
#define LS_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/* The use of a stream. Each use has its own keys, so that no two uses share numbers. */
typedef enum ls_stream {
    LS_STREAM_INIT = 1,       /* initial weights */
    LS_STREAM_ORDER = 2,      /* order of samples */
    LS_STREAM_SAMPLE = 3,     /* generated tokens */
    LS_STREAM_FAKE = 4,       /* checks and tests */
    LS_STREAM_DROPOUT = 5,    /* masks of dropout */
    LS_STREAM_SPLIT = 6,      /* samples that are held out for validation */
    LS_STREAM_BLOCKS = 7,     /* order of blocks of samples */
    LS_STREAM_WINDOWS = 8,    /* keys of the orders within windows of blocks */
    LS_STREAM_AUGMENT = 9,    /* changes of images */
    LS_STREAM_MIX = 10,       /* keys of the orders of a mixture's sources */
    LS_STREAM_ROWS = 11,      /* initial values of a table's rows */
    LS_STREAM_COMPRESS = 12,  /* places and factors of compressed sums */
    LS_STREAM_NOISE = 13,     /* signs of projections, for the noise scale */
    LS_STREAM_GOSSIP = 14,    /* partners of replicas in random graphs */
    LS_STREAM_STALENESS = 15, /* how old a gradient's parameters are */
    LS_STREAM_TRIALS = 16,    /* values of a search's trials */
    LS_STREAM_NEGATIVES = 20, /* items that a user has not chosen */
    LS_STREAM_PARTS = 21      /* parts of images, where several may not fit */
} ls_stream;

/* The key of a seed and a stream. */
static inline uint64_t ls_random_key(uint64_t seed, ls_stream stream) {
    return seed ^ ((uint64_t)stream << 56);
}
/* The four 32-bit words at place `index` of (seed, stream, substream). */
void ls_random_words(uint64_t seed, ls_stream stream, uint64_t substream, uint64_t index,
                     uint32_t out[4]);

/* Uniform in [0, 1), 53 bits. */
double ls_random_uniform(uint64_t seed, ls_stream stream, uint64_t substream, uint64_t index);

/* A place in a stream of numbers. */
typedef struct ls_random_place {
    uint64_t seed;
    ls_stream stream;
    uint64_t substream, index;
} ls_random_place;

/* The words of 16 places from `first` on: word k of place first.index + i is out[k][i]. */
void ls_random_words16(ls_random_place first, uint32_t out[4][16]);

/* out[i], uniform in [-bound, bound): from the words of place first.index + i, for i in [0, n). */
void ls_random_uniform_f32(ls_random_place first, size_t n, float bound, float *out);

/* out[i] = std * N(0, 1) at place first.index + i, for i in [0, n). Marsaglia's polar method. */
void ls_random_normal(ls_random_place first, size_t n, float std, float *out);

#endif
