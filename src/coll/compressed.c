/* compressed.c - sums whose contributions are encoded (compress/codec.h): see
 * lockstep/compress.h.
 *
 * Each worker adds the errors to its contributions and encodes them. Then, by the codec:
 *
 *  - gathered: an all-gather of all messages; each worker decodes them all, and adds them up in
 *    tree order;
 *  - two hops: the vector is cut into a range of blocks for each worker. An all-to-all takes the
 *    messages of a range to its worker, which adds them up and encodes the sum, and an all-gather
 *    takes it to all;
 *  - summed: sums over virtual workers of the codec's values, one for each round.
 *
 * A header from each worker comes first, or with its messages: what it was asked for, and whether
 * its values are finite. All workers read all headers, so they all fail, or none does. Only then
 * are out and the state written.
 */
#define LS_NO_CALL_SITES
#include "base/round_up.h"
#include "lockstep/compress.h"

#include <stdlib.h>
#include <string.h>

#include "base/floats.h"
#include "base/hash.h"
#include "coll/algo/tree.h"
#include "coll/request.h"
#include "coll/virtual.h"
#include "compress/codec.h"

enum { MAX_DEPTH = 34, ALIGN = 64 };

typedef struct compressed_sum {
    const float *in; /* [own contributions, count] */
    float *out;      /* [count] */
    size_t count;
    const ls_compression *how;
    const int *first; /* [size + 1] ranges of contributions (algo/tree.h); NULL: even ones */
    ls_compression_state *state;
} compressed_sum;

/* What a worker sends before its messages. */
typedef struct header {
    uint64_t print;       /* of the settings and the count */
    int32_t contribution; /* the first one that is not finite; -1: none */
    uint32_t element;     /* of it */
} header;

typedef struct sum {
    ls_group *g;
    const compressed_sum *x;
    const ls_codec *codec;
    ls_compression how; /* complete */
    const ls_kernels *k;
    int V, n, a, b; /* contributions, workers, this worker's range of contributions */
    size_t count;
    ls_codec_job job; /* of a whole vector */
    header head;
    float *p;          /* [b - a, count] contributions with their errors */
    size_t *counts;    /* [n] */
    size_t *more;      /* [n] */
    const void **from; /* [V] messages, in the order of contributions */
    ls_node *nodes;    /* [V] */
    unsigned char *send, *receive;
    float *partial; /* two hops: [own range]; summed: [leaves + 1][largest message] */
    float (*scratch)[LS_CODEC_PIECE]; /* [MAX_DEPTH] */
} sum;

static size_t own(const sum *s) { return (size_t)(s->b - s->a); }

static size_t contributions_of(const sum *s, int worker) {
    int a = 0, b = 0;
    ls_tree_range(s->V, s->x->first, worker, s->n, &a, &b);
    return (size_t)(b - a);
}

/* ---- set-up ---- */

static ls_status check(ls_group *g, const compressed_sum *x, ls_error *e) {
    LS_TRY(ls_group_check(g, "all_reduce_compressed", e));
    if (!x->how) return ls_fail(e, LS_EINVAL, "all_reduce_compressed: no settings");
    if (x->count && (!x->in || !x->out))
        return ls_fail(e, LS_EINVAL,
                       "all_reduce_compressed: in or out is NULL, but has %zu elements", x->count);
    if (x->how->virtual_workers && x->how->virtual_workers < g->size)
        return ls_fail(e, LS_EINVAL, "all_reduce_compressed: %d virtual workers for %d workers",
                       x->how->virtual_workers, g->size);
    return LS_OK;
}

static ls_status check_state(const sum *s, ls_error *e) {
    const ls_compression_state *state = s->x->state;
    if (s->count == 0) return LS_OK;
    if (s->how.feedback != LS_FEEDBACK_NONE && (!state || !state->errors))
        return ls_fail(e, LS_EINVAL,
                       "all_reduce_compressed: state has no errors; give zeros, or "
                       "LS_FEEDBACK_NONE");
    size_t shared = ls_compression_shared(&s->how, s->count);
    if (shared && (!state || !state->shared))
        return ls_fail(e, LS_EINVAL,
                       "all_reduce_compressed: state has no shared part; it has %zu "
                       "elements, zeros at first",
                       shared);
    return LS_OK;
}

static uint64_t print_of(const sum *s) {
    const ls_compression *c = &s->how;
    const double words[] = {
        c->kind,          c->feedback,      c->op,   (double)c->k,    c->ratio,
        (double)c->block, c->sign_scale,    c->rank, (double)c->rows, (double)c->decay,
        c->two_hops,      (double)s->count, s->V};
    const uint64_t numbers[] = {c->seed, c->step};
    return ls_hash_bytes(words, sizeof words).lo ^ 31 * ls_hash_bytes(numbers, sizeof numbers).lo;
}

/* The elements that worker r sums in two hops. */
static void range_of(const ls_compression *how, size_t count, int r, int n, size_t range[2]) {
    size_t blocks = (count + how->block - 1) / how->block;
    for (int i = 0; i < 2; i++) {
        size_t at = (size_t)((uint64_t)blocks * (uint64_t)(r + i) / (uint64_t)n) * how->block;
        range[i] = at < count ? at : count;
    }
}

static size_t range_nbytes(const sum *s, int r) {
    size_t range[2];
    range_of(&s->how, s->count, r, s->n, range);
    return s->codec->nbytes(&s->how, range[1] - range[0], 0);
}

static size_t rounded_up(size_t nbytes) { return ls_round_up(nbytes, ALIGN); }

/* The bytes of the buffers that messages are sent from and received into, and of `partial`. */
static void size_up(const sum *s, size_t *send_p, size_t *receive_p, size_t *partial_p) {
    size_t heads = (size_t)s->n * sizeof(header), b = s->codec->nbytes(&s->how, s->count, 0);
    if (s->codec->rounds) {
        for (int r = 1; r < s->codec->rounds; r++) {
            size_t other = s->codec->nbytes(&s->how, s->count, r);
            b = other > b ? other : b;
        }
        *send_p = own(s) * b;
        *receive_p = heads;
        *partial_p = (own(s) + 1) * b;
    } else if (s->how.two_hops) {
        size_t range[2], all = 0;
        range_of(&s->how, s->count, s->g->rank, s->n, range);
        for (int r = 0; r < s->n; r++) all += range_nbytes(s, r);
        *send_p = heads + own(s) * all;
        *receive_p = heads + (size_t)s->V * range_nbytes(s, s->g->rank);
        if (heads + all > *receive_p) *receive_p = heads + all; /* the second hop */
        *partial_p = (range[1] - range[0]) * sizeof(float);
    } else {
        *send_p = 0; /* from its place in what is received */
        *receive_p = heads + (size_t)s->V * b;
        *partial_p = 0;
    }
}

static ls_status lay_out(sum *s, ls_error *e) {
    size_t send = 0, receive = 0, partial = 0;
    size_up(s, &send, &receive, &partial);
    const size_t sizes[] = {own(s) * s->count * sizeof(float),
                            (size_t)s->n * sizeof(size_t),
                            (size_t)s->n * sizeof(size_t),
                            (size_t)s->V * sizeof(void *),
                            (size_t)s->V * sizeof(ls_node),
                            send,
                            receive,
                            partial,
                            s->codec->nwork(&s->how, s->count),
                            MAX_DEPTH * sizeof *s->scratch};
    enum { PARTS = sizeof sizes / sizeof *sizes };
    unsigned char *at[PARTS], *next = NULL;
    size_t all = 0;
    for (int i = 0; i < PARTS; i++) all += rounded_up(sizes[i]);
    LS_TRY(ls_group_grow_work(s->g, all + ALIGN, "all_reduce_compressed", e));
    next = s->g->work;
    for (int i = 0; i < PARTS; next += rounded_up(sizes[i++])) at[i] = next;
    s->p = (float *)at[0];
    s->counts = (size_t *)at[1];
    s->more = (size_t *)at[2];
    s->from = (const void **)at[3];
    s->nodes = (ls_node *)at[4];
    s->send = at[5];
    s->receive = at[6];
    s->partial = (float *)at[7];
    s->job = (ls_codec_job){s->k, &s->how, s->count, NULL, at[8]};
    s->scratch = (float(*)[LS_CODEC_PIECE])(void *)at[9];
    if (s->x->state && s->x->state->shared) s->job.shared = s->x->state->shared;
    return LS_OK;
}

/* EF21's sum of estimates, after what the codec shares. */
static float *estimates_sum(const sum *s) {
    return s->x->state->shared + s->codec->nshared(&s->how, s->count);
}

/* p = what is to be encoded. */
static void add_errors(sum *s) {
    const ls_compress_kernels *k = &s->k->compress;
    s->head = (header){print_of(s), -1, 0};
    for (size_t i = 0; i < own(s); i++) {
        const float *in = s->x->in + i * s->count;
        float *p = s->p + i * s->count, *errors = NULL;
        int64_t n = (int64_t)s->count, bad = 0;
        if (s->how.feedback != LS_FEEDBACK_NONE) errors = s->x->state->errors + i * s->count;
        if (s->how.feedback == LS_FEEDBACK_EF21)
            bad = k->add_error(n, -1.0f, errors, in, p);
        else
            bad = k->add_error(n, 1.0f - s->how.decay, errors, in, p);
        if (bad >= 0 && s->head.contribution < 0) {
            s->head.contribution = s->a + (int32_t)i;
            s->head.element = (uint32_t)bad;
        }
    }
}

/* ---- headers ---- */

static ls_status check_header(const sum *s, int worker, const void *at, ls_error *e) {
    header h;
    memcpy(&h, at, sizeof h);
    if (h.print != s->head.print)
        return ls_fail(e, LS_EINVAL,
                       "all_reduce_compressed: worker %d has other settings or another count than "
                       "this worker, %d; give the same on all",
                       worker, s->g->rank);
    if (h.contribution < 0) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "all_reduce_compressed: element %u of worker %d (contribution %d) is not finite "
                   "or, with its error, above the range of f32; nothing was changed",
                   h.element, worker, h.contribution);
}

/* Checks the headers at the beginning of each worker's bytes; all workers fail in the same way, by
 * the first bad header. */
static ls_status check_headers(const sum *s, const size_t *counts, ls_error *e) {
    const unsigned char *at = s->receive;
    for (int r = 0; r < s->n; at += counts[r++]) LS_TRY(check_header(s, r, at, e));
    return LS_OK;
}

/* ---- decoding ---- */

/* A job of a range; the rest as for the whole vector. */
static ls_codec_job job_of(const sum *s, size_t n) {
    ls_codec_job j = s->job;
    j.n = n;
    return j;
}

typedef struct walk {
    const sum *s;
    const ls_codec_job *job;
    size_t first, count;
    float (*scratch)[LS_CODEC_PIECE]; /* [MAX_DEPTH] of the group's work memory */
} walk;

/* out = the sum of the decoded messages [lo, hi), in tree order. */
static void walk_node(walk *w, int lo, int hi, int depth, float *out) {
    if (hi - lo == 1) {
        w->s->codec->decode(w->job, w->s->from[lo], w->first, w->count, out);
        return;
    }
    int middle = ls_tree_split(lo, hi);
    walk_node(w, lo, middle, depth, out);
    walk_node(w, middle, hi, depth + 1, w->scratch[depth]);
    w->s->k->combine(LS_F32, LS_SUM, w->count, out, w->scratch[depth], out);
}

/* Calls fn for each piece of a vector of n elements. */
typedef void piece_fn(walk *, void *arg);
static void each_piece(const sum *s, const ls_codec_job *job, piece_fn *fn, void *arg) {
    size_t most = ls_codec_piece(s->codec, &s->how);
    walk w;
    w.s = s;
    w.job = job;
    w.scratch = s->scratch;
    for (w.first = 0; w.first < job->n; w.first += w.count) {
        w.count = job->n - w.first < most ? job->n - w.first : most;
        fn(&w, arg);
    }
}

static void average(const sum *s, size_t n, float *out) {
    if (s->how.op == LS_AVG) s->k->average(LS_F32, n, s->V, out);
}

static void sum_piece(walk *w, void *arg) {
    const sum *s = w->s;
    float *out = (float *)arg + w->first;
    walk_node(w, 0, s->V, 0, out);
    if (s->how.feedback == LS_FEEDBACK_EF21) {
        float *all = estimates_sum(s) + w->first;
        s->k->combine(LS_F32, LS_SUM, w->count, all, out, all);
        memcpy(out, all, w->count * sizeof *out);
    }
    average(s, w->count, out);
}

/* What a contribution, or a sum, leaves behind: p [n], its message, and where that goes. */
typedef struct rest {
    const void *message;
    const float *p;
    float *errors;
    bool estimate; /* errors is EF21's estimate */
} rest;

static void keep_piece(walk *w, void *arg) {
    const rest *r = arg;
    const ls_kernels *k = w->s->k;
    float *sent = w->scratch[0], *errors = r->errors + w->first;
    w->s->codec->decode(w->job, r->message, w->first, w->count, sent);
    if (r->estimate)
        k->combine(LS_F32, LS_SUM, w->count, errors, sent, errors);
    else
        k->compress.subtract((int64_t)w->count, r->p + w->first, sent, errors);
}

/* The error of elements from `first` on of own contribution i. */
static void keep_error(const sum *s, const ls_codec_job *job, size_t i, size_t first,
                       const void *message) {
    size_t at = i * s->count + first;
    if (s->how.feedback == LS_FEEDBACK_NONE) return;
    rest r = {message, s->p + at, s->x->state->errors + at, s->how.feedback == LS_FEEDBACK_EF21};
    each_piece(s, job, keep_piece, &r);
}

/* ---- gathered ---- */

/* Writes a message, or zeros where values are not finite. */
static void encode(const sum *s, const ls_codec_job *job, const float *p, void *message) {
    if (s->head.contribution >= 0)
        memset(message, 0, s->codec->nbytes(&s->how, job->n, 0));
    else
        s->codec->encode(job, 0, p, message);
}

static ls_status gather(sum *s, ls_error *e) {
    size_t b = s->codec->nbytes(&s->how, s->count, 0), before = 0;
    for (int r = 0; r < s->n; r++) {
        s->counts[r] = sizeof(header) + contributions_of(s, r) * b;
        if (r < s->g->rank) before += s->counts[r];
    }
    unsigned char *mine = s->receive + before, *next = mine + sizeof(header);
    memcpy(mine, &s->head, sizeof s->head);
    s->codec->prepare(&s->job);
    for (size_t i = 0; i < own(s); i++) encode(s, &s->job, s->p + i * s->count, next + i * b);
    LS_TRY(ls_all_gather_v(s->g, mine, s->receive, s->counts, LS_U8, e));
    LS_TRY(check_headers(s, s->counts, e));
    const unsigned char *at = s->receive;
    for (int r = 0, v = 0; r < s->n; at += s->counts[r++])
        for (size_t i = 0; i < contributions_of(s, r); i++)
            s->from[v++] = at + sizeof(header) + i * b;
    each_piece(s, &s->job, sum_piece, s->x->out);
    for (size_t i = 0; i < own(s); i++) keep_error(s, &s->job, i, 0, next + i * b);
    return LS_OK;
}

/* ---- two hops ---- */

/* To each worker: a header, and its range of each own contribution. */
static void encode_ranges(sum *s) {
    unsigned char *at = s->send;
    for (int r = 0; r < s->n; r++) {
        size_t range[2], b = range_nbytes(s, r);
        range_of(&s->how, s->count, r, s->n, range);
        ls_codec_job job = job_of(s, range[1] - range[0]);
        s->counts[r] = sizeof(header) + own(s) * b;
        memcpy(at, &s->head, sizeof s->head);
        at += sizeof(header);
        for (size_t i = 0; i < own(s); i++, at += b)
            encode(s, &job, s->p + i * s->count + range[0], at);
    }
}

static void keep_range_errors(const sum *s) {
    const unsigned char *at = s->send;
    for (int r = 0; r < s->n; r++) {
        size_t range[2], b = range_nbytes(s, r);
        range_of(&s->how, s->count, r, s->n, range);
        ls_codec_job job = job_of(s, range[1] - range[0]);
        at += sizeof(header);
        for (size_t i = 0; i < own(s); i++, at += b) keep_error(s, &job, i, range[0], at);
    }
}

/* The messages of this worker's range, from all. */
static ls_status exchange(sum *s, ls_error *e) {
    size_t b = range_nbytes(s, s->g->rank);
    for (int r = 0; r < s->n; r++) s->more[r] = sizeof(header) + contributions_of(s, r) * b;
    LS_TRY(ls_all_to_all_v(s->g, s->send, s->counts, s->receive, s->more, LS_U8, e));
    LS_TRY(check_headers(s, s->more, e));
    const unsigned char *at = s->receive;
    for (int r = 0, v = 0; r < s->n; r++) {
        at += sizeof(header);
        for (size_t i = 0; i < contributions_of(s, r); i++, at += b) s->from[v++] = at;
    }
    return LS_OK;
}

static float *sums_errors(const sum *s, size_t first) {
    bool has = s->x->state && s->x->state->sums && s->how.feedback != LS_FEEDBACK_NONE;
    return has ? s->x->state->sums + first : NULL;
}

/* The sum of this worker's range in `partial`, with its error, is encoded and gathered. *mine_p:
 * this worker's message. */
static ls_status gather_sums(sum *s, const ls_codec_job *job, size_t first,
                             const unsigned char **mine_p, ls_error *e) {
    size_t before = 0;
    int64_t bad = s->k->compress.add_error((int64_t)job->n, 1.0f - s->how.decay,
                                           sums_errors(s, first), s->partial, s->partial);
    if (bad >= 0) {
        s->head.contribution = s->a;
        s->head.element = (uint32_t)(first + (size_t)bad);
    }
    for (int r = 0; r < s->n; r++) {
        s->more[r] = sizeof(header) + range_nbytes(s, r);
        if (r < s->g->rank) before += s->more[r];
    }
    unsigned char *mine = s->receive + before;
    memcpy(mine, &s->head, sizeof s->head);
    encode(s, job, s->partial, mine + sizeof(header));
    *mine_p = mine + sizeof(header);
    LS_TRY(ls_all_gather_v(s->g, mine, s->receive, s->more, LS_U8, e));
    return check_headers(s, s->more, e);
}

typedef struct copy {
    const void *message;
    float *out;
} copy;

static void copy_piece(walk *w, void *arg) {
    const copy *c = arg;
    w->s->codec->decode(w->job, c->message, w->first, w->count, c->out + w->first);
}

static ls_status in_two_hops(sum *s, ls_error *e) {
    size_t range[2];
    const unsigned char *mine = NULL, *at = s->receive;
    range_of(&s->how, s->count, s->g->rank, s->n, range);
    ls_codec_job job = job_of(s, range[1] - range[0]);
    encode_ranges(s);
    LS_TRY(exchange(s, e));
    each_piece(s, &job, sum_piece, s->partial);
    LS_TRY(gather_sums(s, &job, range[0], &mine, e));
    keep_range_errors(s);
    if (sums_errors(s, range[0])) {
        rest r = {mine, s->partial, sums_errors(s, range[0]), false};
        each_piece(s, &job, keep_piece, &r);
    }
    for (int r = 0; r < s->n; at += s->more[r++]) {
        range_of(&s->how, s->count, r, s->n, range);
        job = job_of(s, range[1] - range[0]);
        copy c = {at + sizeof(header), s->x->out + range[0]};
        each_piece(s, &job, copy_piece, &c);
    }
    return LS_OK;
}

/* ---- summed ---- */

static ls_status exchange_headers(sum *s, ls_error *e) {
    unsigned char *mine = s->receive + (size_t)s->g->rank * sizeof(header);
    memcpy(mine, &s->head, sizeof s->head);
    for (int r = 0; r < s->n; r++) s->counts[r] = sizeof(header);
    LS_TRY(ls_all_gather(s->g, mine, s->receive, sizeof(header), LS_U8, e));
    return check_headers(s, s->counts, e);
}

/* The sum over all contributions of their messages in `send`, which have `len` floats each. */
static ls_status sum_round(sum *s, size_t len, const float **sum_p, ls_error *e) {
    ls_node nodes[LS_TREE_MAX_COVER];
    int leaves = ls_tree_cover(s->V, s->a, s->b, nodes);
    for (int i = 0; i < leaves; i++) {
        int size = nodes[i].hi - nodes[i].lo;
        for (int v = 0; v < size; v++) {
            s->nodes[v] = (ls_node){v, v + 1};
            s->from[v] = (float *)s->send + (size_t)(nodes[i].lo - s->a + v) * len;
        }
        const ls_tree_sum t = {LS_F32, LS_SUM, size, size, s->nodes, s->from, NULL};
        ls_tree_sum_run(&t, s->k, 0, len, s->partial + (size_t)(1 + i) * len);
    }
    *sum_p = s->partial;
    return ls_all_reduce_virtual_start(s->g,
                                       &(ls_virtual_sum){.V = s->V,
                                                         .first = s->x->first,
                                                         .in = s->partial + len,
                                                         .stride = len,
                                                         .out = s->partial,
                                                         .dtype = LS_F32,
                                                         .count = len},
                                       NULL, e);
}

/* arg: out. from[0]: the sum. */
static void decode_piece(walk *w, void *arg) {
    const sum *s = w->s;
    float *out = (float *)arg + w->first;
    s->codec->decode(w->job, s->from[0], w->first, w->count, out);
    if (s->how.op == LS_SUM) /* it is the mean */
        s->k->affine((int64_t)w->count, out, (float)s->V, 0.0f, out);
}

static ls_status sum_up(sum *s, ls_error *e) {
    const float *total = NULL;
    size_t len = 0;
    LS_TRY(exchange_headers(s, e));
    s->codec->prepare(&s->job);
    for (int round = 0; round < s->codec->rounds; round++) {
        len = s->codec->nbytes(&s->how, s->count, round) / sizeof(float);
        for (size_t i = 0; i < own(s); i++)
            s->codec->encode(&s->job, round, s->p + i * s->count, (float *)s->send + i * len);
        LS_TRY(sum_round(s, len, &total, e));
        s->codec->absorb(&s->job, round, total, s->V);
    }
    s->from[0] = total;
    each_piece(s, &s->job, decode_piece, s->x->out);
    for (size_t i = 0; i < own(s); i++) keep_error(s, &s->job, i, 0, total);
    return LS_OK;
}

/* ---- the call ---- */

static ls_status run(ls_group *g, const compressed_sum *x, ls_error *e) {
    sum s = {.g = g, .x = x, .k = g->end->k, .n = g->size, .count = x->count};
    LS_TRY(ls_compression_complete(x->how, x->count, &s.how, e));
    s.codec = ls_codec_of(s.how.kind);
    s.V = s.how.virtual_workers ? s.how.virtual_workers : g->size;
    ls_tree_range(s.V, x->first, g->rank, g->size, &s.a, &s.b);
    LS_TRY(check_state(&s, e));
    LS_TRY(lay_out(&s, e));
    add_errors(&s);
    if (s.how.two_hops) return in_two_hops(&s, e);
    return s.codec->rounds ? sum_up(&s, e) : gather(&s, e);
}

static ls_status checked_run(ls_group *g, const compressed_sum *x, ls_error *e) {
    LS_TRY(check(g, x, e));
    g->form = LS_FORM_COMPRESSED;
    ls_status s = run(g, x, e);
    g->form = LS_FORM_PLAIN;
    return s;
}

ls_status ls_all_reduce_compressed(ls_group *g, const float *in, float *out, size_t count,
                                   const ls_compression *how, ls_compression_state *state,
                                   ls_error *e) {
    LS_FLOATS();
    ls_error own_error;
    const compressed_sum x = {.in = in, .out = out, .count = count, .how = how, .state = state};
    return checked_run(g, &x, e ? e : &own_error);
}

ls_status ls_compression_range(const ls_compression *how, size_t count, int rank, int size,
                               size_t *first_p, size_t *end_p, ls_error *e) {
    LS_FLOATS();
    ls_compression c;
    ls_error own_error;
    size_t range[2];
    if (!e) e = &own_error;
    if (!how || rank < 0 || rank >= size)
        return ls_fail(e, LS_EINVAL, "compression_range: no settings, or rank %d is not in 0..%d",
                       rank, size - 1);
    LS_TRY(ls_compression_complete(how, count, &c, e));
    range_of(&c, count, rank, size, range);
    *first_p = range[0];
    *end_p = range[1];
    return LS_OK;
}
