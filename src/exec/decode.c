/* decode.c - see decode.h.
 *
 * Each run of elements is decoded from all codes and summed in the tree's order over the virtual
 * workers, before the next: so the sum has the bits that sums of the decoded gradients have, and
 * needs no memory for these. Threads take pieces by turns.
 */
#include "exec/decode.h"

#include <string.h>

#include "coll/algo/tree.h"
#include "compress/codec.h"
#include "share/codes.h"

enum { MAX_DEPTH = 13 }; /* of at most 4096 virtual workers */

typedef struct job {
    const ls_code_sum *x;
    const ls_compute *c;
    const ls_code_piece *pieces;
    int npieces;
    ls_range own;
} job;

/* A run of elements of a piece. */
typedef struct run {
    const job *j;
    const ls_code_piece *piece;
    const ls_codec_job *code;
    size_t first, count; /* within the piece */
    float scratch[MAX_DEPTH][LS_CODEC_PIECE];
} run;

/* What the code of one virtual worker holds: nothing, where it has none. */
static void decode_one(const run *r, int vw, float *out) {
    const ls_codec *codec = ls_codec_of(r->code->how->kind);
    size_t first = 0;
    if (!ls_share_is_coded(r->j->x->codes->share, vw)) {
        memset(out, 0, r->count * sizeof *out);
        return;
    }
    const unsigned char *part = ls_codes_got(r->j->x->codes, r->j->x->bucket, vw, &first);
    const unsigned char *message = part + (r->piece->code_at - first);
    if (r->piece->plain)
        memcpy(out, message + r->first * sizeof *out, r->count * sizeof *out);
    else
        codec->decode(r->code, message, r->first, r->count, out);
}

/* out = the sum over virtual workers [lo, hi). */
static void sum_node(run *r, int lo, int hi, int depth, float *out) {
    if (hi - lo == 1) {
        decode_one(r, lo, out);
        return;
    }
    int middle = ls_tree_split(lo, hi);
    sum_node(r, lo, middle, depth, out);
    sum_node(r, middle, hi, depth + 1, r->scratch[depth]);
    r->j->c->k->combine(LS_F32, LS_SUM, r->count, out, r->scratch[depth], out);
}

/* Runs begin at multiples of their length, as the codec needs it; only the worker's part is
 * written. */
static void decode_piece(const job *j, const ls_code_piece *x, void *work) {
    ls_compression how = ls_share_piece_how(j->x->codes->share, x, j->x->step);
    const ls_codec *codec = ls_codec_of(how.kind);
    ls_codec_job code = {.k = j->c->k, .how = &how, .n = x->end - x->first, .work = work};
    size_t from = x->first > j->own.first ? x->first : j->own.first;
    size_t to = x->end < j->own.end ? x->end : j->own.end;
    size_t most = ls_codec_piece(codec, &how);
    float out[LS_CODEC_PIECE];
    run r;
    r.j = j;
    r.piece = x;
    r.code = &code;
    if (!x->plain) codec->prepare(&code);
    for (r.first = from < to ? (from - x->first) / most * most : code.n; x->first + r.first < to;
         r.first += r.count) {
        r.count = code.n - r.first < most ? code.n - r.first : most;
        sum_node(&r, 0, j->x->codes->share->V, 0, out);
        size_t at = x->first + r.first, begin = at > from ? at : from;
        size_t end = at + r.count < to ? at + r.count : to;
        memcpy(j->x->sum + begin, out + (begin - at), (end - begin) * sizeof *out);
    }
}

static void decode_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    const ls_encode_room *room = j->x->room;
    unsigned char *memory = (unsigned char *)room->memory + (size_t)thread * room->each_nbytes;
    for (int i = thread; i < j->npieces; i += nthreads)
        decode_piece(j, &j->pieces[i], memory + room->message_nbytes);
}

void ls_decode_bucket(const ls_code_sum *x, const ls_compute *c) {
    const ls_share *sh = x->codes->share;
    job j = {.x = x, .c = c, .own = ls_share_owned(sh, x->bucket, x->codes->worker)};
    j.npieces = ls_share_pieces(sh, x->bucket, &j.pieces);
    ls_pool_run_sized(c->pool, (int64_t)(j.own.end - j.own.first) * sh->V, decode_run, &j);
}
