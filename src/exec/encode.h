/* encode.h - replaces a virtual worker's gradient by what its code holds (compress/codec.h). */
#ifndef LS_EXEC_ENCODE_H
#define LS_EXEC_ENCODE_H

#include <stdatomic.h>

#include "share/share.h"

/* What threads work in: a code, then what its codec needs. In whole cache lines. */
typedef struct ls_encode_room {
    size_t message_nbytes, each_nbytes; /* each: of a thread */
    void *memory;                       /* [threads][each_nbytes] */
} ls_encode_room;

/* Without its memory. */
ls_encode_room ls_encode_room_of(const ls_share *);

/* One bucket of one virtual worker. */
typedef struct ls_encode {
    const ls_share *share;
    int bucket;
    int64_t step;
    float *grads;        /* [nfloats] */
    const float *errors; /* [nfloats] before this step; NULL: the plan has no errors */
    float *next;         /* [nfloats] after it */
    /* [nfloats] the first moment, which is encoded with the gradient (ls_share_compress.momentum);
     * NULL: the gradient alone */
    const float *moment;
    const ls_encode_room *room;
    unsigned char *code; /* [ls_bucket.code_nbytes] the bucket's; NULL: it is not sent */
    atomic_bool *bad;    /* set if a value is not finite */
} ls_encode;

/* A piece with a value that is not finite stays as it is, and its code is that of nothing. */
void ls_encode_bucket(const ls_encode *, const ls_compute *);

#endif
