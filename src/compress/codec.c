/* codec.c - the table of codecs, and their settings. */
#include "compress/codec.h"

#include <math.h>

#include "base/floats.h"
#include "base/math.h"

static const ls_codec *const codecs[LS_NCOMPRESSIONS] = {
    [LS_COMPRESS_TOPK] = &ls_codec_topk,         [LS_COMPRESS_ONEBIT] = &ls_codec_onebit,
    [LS_COMPRESS_INT8] = &ls_codec_int8,         [LS_COMPRESS_INT4] = &ls_codec_int4,
    [LS_COMPRESS_POWERSGD] = &ls_codec_powersgd, [LS_COMPRESS_BF16] = &ls_codec_bf16,
};

const ls_codec *ls_codec_of(ls_compression_kind kind) { return codecs[kind]; }

const char *ls_compression_name(ls_compression_kind kind) {
    return (unsigned)kind < LS_NCOMPRESSIONS ? codecs[kind]->name : "?";
}

size_t ls_codec_none(const ls_compression *how, size_t n) {
    (void)how, (void)n;
    return 0;
}
void ls_codec_prepare_nothing(const ls_codec_job *j) { (void)j; }
void ls_codec_absorb_nothing(const ls_codec_job *j, int round, const void *sum, int contributions) {
    (void)j, (void)round, (void)sum, (void)contributions;
}

size_t ls_codec_nbytes(const ls_codec *c, const ls_compression *how, size_t n) {
    size_t sum = 0;
    for (int r = 0; r < (c->rounds ? c->rounds : 1); r++) sum += c->nbytes(how, n, r);
    return sum;
}

size_t ls_codec_piece(const ls_codec *c, const ls_compression *how) {
    return LS_CODEC_PIECE - LS_CODEC_PIECE % c->unit(how);
}

/* ---- settings ---- */

static ls_status check_words(const ls_compression *c, ls_error *e) {
    if ((unsigned)c->kind >= LS_NCOMPRESSIONS)
        return ls_fail(e, LS_EINVAL, "compression: kind %d does not exist", (int)c->kind);
    const ls_codec *codec = codecs[c->kind];
    if ((unsigned)c->feedback >= LS_NFEEDBACKS)
        return ls_fail(e, LS_EINVAL, "compression: feedback %d does not exist", (int)c->feedback);
    if ((unsigned)c->sign_scale >= LS_NSIGN_SCALES)
        return ls_fail(e, LS_EINVAL, "compression: sign_scale %d does not exist",
                       (int)c->sign_scale);
    if (c->op != LS_SUM && c->op != LS_AVG)
        return ls_fail(e, LS_EINVAL, "compression: only sums and averages can be compressed");
    if (codec->rounds && c->feedback == LS_FEEDBACK_EF21)
        return ls_fail(e, LS_EINVAL,
                       "compression: EF21 needs each worker's own encoding, and %s has only that "
                       "of the mean; use LS_FEEDBACK_ERROR",
                       codec->name);
    if (c->two_hops && !codec->blocks)
        return ls_fail(e, LS_EINVAL,
                       "compression: two_hops is for onebit, int8, int4 and bf16, not for %s",
                       codec->name);
    if (c->two_hops && c->feedback == LS_FEEDBACK_EF21)
        return ls_fail(e, LS_EINVAL, "compression: EF21 can't be used with two_hops");
    return LS_OK;
}

static ls_status check_numbers(const ls_compression *c, size_t n, ls_error *e) {
    if (n > UINT32_MAX)
        return ls_fail(e, LS_EINVAL, "compression: %zu elements are too many; at most %u", n,
                       UINT32_MAX);
    if (!(c->decay >= 0 && c->decay < 1))
        return ls_fail(e, LS_EINVAL, "compression: decay %g is not in [0, 1)", (double)c->decay);
    if (!(c->ratio >= 0 && c->ratio <= 1))
        return ls_fail(e, LS_EINVAL, "compression: ratio %g is not in (0, 1]", c->ratio);
    if (c->block % LS_PACK)
        return ls_fail(e, LS_EINVAL, "compression: block %zu is not a multiple of %d", c->block,
                       LS_PACK);
    if (c->rank < 0 || c->rank > LS_CODEC_MOST_RANK)
        return ls_fail(e, LS_EINVAL, "compression: rank %d is not in 1..%d", c->rank,
                       LS_CODEC_MOST_RANK);
    return LS_OK;
}

static size_t default_block(ls_compression_kind kind) {
    switch (kind) {
    case LS_COMPRESS_ONEBIT: return 4096;
    case LS_COMPRESS_INT8: return 256;
    default: return 64;
    }
}

/* The number of elements that topk sends. */
static size_t elements_sent(const ls_compression *c, size_t n) {
    double share = c->ratio > 0 ? c->ratio : 0.01;
    size_t k = c->k ? c->k : (size_t)ceil(ls_math_times(share, (double)n));
    return k < n ? k : n;
}

static void fill_matrix(ls_compression *c, size_t n) {
    if (!c->rows) c->rows = (size_t)sqrt((double)n);
    if (c->rows > n) c->rows = n;
    if (!c->rows) c->rows = 1;
    size_t cols = (n + c->rows - 1) / c->rows, least = cols < c->rows ? cols : c->rows;
    if (!c->rank) c->rank = LS_CODEC_RANK;
    if ((size_t)c->rank > least) c->rank = least ? (int)least : 1;
}

ls_status ls_compression_complete(const ls_compression *given, size_t n, ls_compression *complete_p,
                                  ls_error *e) {
    LS_TRY(check_words(given, e));
    LS_TRY(check_numbers(given, n, e));
    ls_compression c = *given;
    if (!c.block) c.block = default_block(c.kind);
    if (c.kind == LS_COMPRESS_TOPK) c.k = elements_sent(&c, n);
    if (c.kind == LS_COMPRESS_POWERSGD) fill_matrix(&c, n);
    *complete_p = c;
    return LS_OK;
}

size_t ls_compression_nbytes(const ls_compression *given, size_t n) {
    LS_FLOATS();
    ls_compression c;
    ls_error e;
    if (ls_compression_complete(given, n, &c, &e) != LS_OK) return 0;
    return ls_codec_nbytes(codecs[c.kind], &c, n);
}

size_t ls_compression_shared(const ls_compression *given, size_t n) {
    LS_FLOATS();
    ls_compression c;
    ls_error e;
    if (ls_compression_complete(given, n, &c, &e) != LS_OK) return 0;
    return codecs[c.kind]->nshared(&c, n) + (c.feedback == LS_FEEDBACK_EF21 ? n : 0);
}
