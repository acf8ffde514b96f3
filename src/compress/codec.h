/* codec.h - encodings of a vector of f32 that take fewer bytes.
 *
 * A codec is a table of functions. It keeps nothing: what it carries from step to step is memory of
 * the caller's (`shared`), and `work` is scratch for one job. Contributions of all workers are
 * encoded to the same number of bytes.
 *
 * Two families:
 *  - gathered: messages are sent to all workers, which decode each and add up what they decoded;
 *  - summed: messages are f32 values that are added element by element, in one round or more; after
 *    each round, absorb() takes the sum. Decoding is done once, of the last sum, and gives the mean
 *    over all contributions, which all lose the same part of it.
 *
 * Every function has the same bits for each variant of the kernels.
 */
#ifndef LS_COMPRESS_CODEC_H
#define LS_COMPRESS_CODEC_H

#include "lockstep/compress.h"
#include "tensor/kernels.h"

enum {
    LS_CODEC_PIECE = 1024, /* elements that decode() is asked for at most */
    LS_CODEC_RANK = 4,     /* of powersgd, if none is given */
    LS_CODEC_MOST_RANK = 64
};

/* One vector to be encoded or decoded. Settings are complete (ls_compression_complete). */
typedef struct ls_codec_job {
    const ls_kernels *k;
    const ls_compression *how;
    size_t n;
    float *shared; /* [nshared] */
    void *work;    /* [nwork] bytes, 64-byte aligned; filled by prepare(), valid for one step */
} ls_codec_job;

typedef struct ls_codec {
    const char *name;
    int rounds;  /* of sums; 0: gathered */
    bool blocks; /* each block is encoded by itself, so ranges of blocks may be encoded apart */
    size_t (*nshared)(const ls_compression *, size_t n);           /* floats */
    size_t (*nwork)(const ls_compression *, size_t n);             /* bytes */
    size_t (*nbytes)(const ls_compression *, size_t n, int round); /* of a message: exact */
    size_t (*unit)(const ls_compression *); /* decode() begins at multiples of it */
    void (*prepare)(const ls_codec_job *);
    /* x [n] is finite. message [nbytes], 4-byte aligned. */
    void (*encode)(const ls_codec_job *, int round, const float *x, void *message);
    /* sum [nbytes] over `contributions`; only of summed codecs. */
    void (*absorb)(const ls_codec_job *, int round, const void *sum, int contributions);
    /* out [count] = elements [first, first + count) of what the message of the last round holds. */
    void (*decode)(const ls_codec_job *, const void *message, size_t first, size_t count,
                   float *out);
} ls_codec;

extern const ls_codec ls_codec_topk, ls_codec_onebit, ls_codec_int8, ls_codec_int4,
    ls_codec_powersgd, ls_codec_bf16;

const ls_codec *ls_codec_of(ls_compression_kind);

/* The settings with their defaults for vectors of n elements. LS_EINVAL: one is out of range. */
ls_status ls_compression_complete(const ls_compression *, size_t n, ls_compression *complete_p,
                                  ls_error *);

/* All rounds together. */
size_t ls_codec_nbytes(const ls_codec *, const ls_compression *, size_t n);

/* Elements that decode() should be asked for at once. */
size_t ls_codec_piece(const ls_codec *, const ls_compression *);

/* What a codec does where there is nothing to do. */
size_t ls_codec_none(const ls_compression *, size_t n);
void ls_codec_prepare_nothing(const ls_codec_job *);
void ls_codec_absorb_nothing(const ls_codec_job *, int round, const void *sum, int contributions);

#endif
