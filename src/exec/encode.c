/* encode.c - see encode.h.
 *
 * With g the gradient of a piece, e its error, and D(c) what code c holds:
 *
 *     error feedback   p = g + e    c = code of p    e = p - D(c)    g = D(c)
 *     EF21             p = g - e    c = code of p    e = e + D(c)    g = e
 *     none             p = g        c = code of p                    g = D(c)
 *
 * With a momentum, g is first replaced by the virtual worker's part of the new first moment.
 *
 * Threads take pieces by turns. Each piece has the same bits in any thread.
 */
#include "exec/encode.h"

#include <string.h>

#include "base/round_up.h"
#include "compress/codec.h"
#include "share/codes.h"

enum { ALIGN = 64 };

static size_t rounded_up(size_t nbytes) { return ls_round_up(nbytes, ALIGN); }

ls_encode_room ls_encode_room_of(const ls_share *sh) {
    const ls_codec *codec = ls_codec_of(sh->compress.how.kind);
    ls_encode_room r = {0};
    size_t most = 0;
    for (int i = 0; i < sh->pieces_from[sh->nbuckets]; i++) {
        const ls_code_piece *x = &sh->pieces[i];
        ls_compression how = ls_share_piece_how(sh, x, 0);
        size_t message = rounded_up(x->code_nbytes);
        size_t work = rounded_up(codec->nwork(&how, x->end - x->first));
        if (message > r.message_nbytes) r.message_nbytes = message;
        if (work > most) most = work;
    }
    r.each_nbytes = r.message_nbytes + most;
    return r;
}

typedef struct job {
    const ls_encode *x;
    const ls_compute *c;
    const ls_code_piece *pieces;
    int npieces;
} job;

/* The buffers of a piece. */
typedef struct buffers {
    float *g, *next; /* next NULL: there are no errors */
    const float *errors;
} buffers;

/* Replaces g, and the errors, by what the code of p says. */
static void decode(const ls_codec_job *j, const void *message, const buffers *b) {
    float sent[LS_CODEC_PIECE];
    const ls_codec *codec = ls_codec_of(j->how->kind);
    bool estimates = j->how->feedback == LS_FEEDBACK_EF21;
    size_t most = ls_codec_piece(codec, j->how);
    for (size_t at = 0, n = 0; at < j->n; at += n) {
        n = j->n - at < most ? j->n - at : most;
        codec->decode(j, message, at, n, sent);
        if (estimates)
            j->k->combine(LS_F32, LS_SUM, n, b->errors + at, sent, b->next + at);
        else if (b->next)
            j->k->compress.subtract((int64_t)n, b->next + at, sent, b->next + at);
        memcpy(b->g + at, estimates ? b->next + at : sent, n * sizeof *sent);
    }
}

/* Replaces n elements of a gradient, from `first` on, by the virtual worker's part of the new first
 * moment. */
static void add_moment(const ls_encode *x, const ls_kernels *k, size_t first, size_t n) {
    const ls_share *sh = x->share;
    double old = sh->compress.momentum;
    float *g = x->grads + first;
    if (!x->moment) return;
    k->affine((int64_t)n, g, (float)(1 - old), 0.0f, g);
    k->compress.add_error((int64_t)n, (float)(old / sh->V), x->moment + first, g, g);
}

/* p is where the new errors will be, or without errors the gradient itself. */
static void encode_piece(const job *j, const ls_code_piece *piece, unsigned char *memory) {
    const ls_encode *x = j->x;
    const ls_codec *codec = ls_codec_of(x->share->compress.how.kind);
    size_t n = piece->end - piece->first;
    ls_compression how = ls_share_piece_how(x->share, piece, x->step);
    ls_codec_job code = {.k = j->c->k, .how = &how, .n = n};
    buffers b = {.g = x->grads + piece->first};
    if (x->errors) b.errors = x->errors + piece->first;
    if (x->errors) b.next = x->next + piece->first;
    float *p = b.next ? b.next : b.g;
    float keep = how.feedback == LS_FEEDBACK_EF21 ? -1.0f : 1.0f - how.decay;
    void *message = x->code ? x->code + piece->code_at : memory;
    add_moment(x, j->c->k, piece->first, n);
    int64_t bad = j->c->k->compress.add_error((int64_t)n, keep, b.errors, b.g, p);
    if (bad >= 0) {
        atomic_store(x->bad, true);
        memset(message, 0, piece->code_nbytes);
        b.g[bad] = p[bad];
        if (b.next) memset(b.next, 0, n * sizeof *b.next);
        return;
    }
    code.work = memory + x->room->message_nbytes;
    codec->prepare(&code);
    codec->encode(&code, 0, p, message);
    decode(&code, message, &b);
}

static void copy_piece(const job *j, const ls_code_piece *piece) {
    const ls_encode *x = j->x;
    add_moment(x, j->c->k, piece->first, piece->end - piece->first);
    if (x->code) memcpy(x->code + piece->code_at, x->grads + piece->first, piece->code_nbytes);
}

static void encode_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    unsigned char *memory =
        (unsigned char *)j->x->room->memory + (size_t)thread * j->x->room->each_nbytes;
    for (int i = thread; i < j->npieces; i += nthreads)
        if (j->pieces[i].plain)
            copy_piece(j, &j->pieces[i]);
        else
            encode_piece(j, &j->pieces[i], memory);
}

void ls_encode_bucket(const ls_encode *x, const ls_compute *c) {
    job j = {.x = x, .c = c};
    j.npieces = ls_share_pieces(x->share, x->bucket, &j.pieces);
    ls_range b = ls_share_range(x->share, x->bucket);
    ls_pool_run_sized(c->pool, (int64_t)(b.end - b.first), encode_run, &j);
}
