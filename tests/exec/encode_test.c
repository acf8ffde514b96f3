/* encode_test.c - pieces, and what encoding leaves of gradients and errors. */
#include "exec/encode.h"

#include <math.h>
#include <string.h>

#include "base/random.h"
#include "networks/gpt2.h"
#include "plan/plan.h"
#include "share/config.h"
#include "test.h"

enum { V = 2, THREADS = 3 };

/* A model whose embedding lies in several chunks. */
static void make_model(ls_model *m_p) {
    ls_error e = {0};
    ls_gpt_config c = {.layers = 1, .width = 96, .heads = 3, .context = 8, .vocab = 1500};
    assert_ls_ok(ls_gpt_create(&c, m_p, &e), e);
}

static void make_plan(const ls_model *m, ls_share_compress compress, size_t bucket_nbytes,
                      ls_plan *p_p) {
    ls_error e = {0};
    ls_share_config c = {.model = m,
                         .nworkers = 1,
                         .V = V,
                         .batch = V,
                         .micro_batch = 1,
                         .tree = true,
                         .bucket_nbytes = bucket_nbytes,
                         .compute = LS_F32,
                         .reduce = LS_F32,
                         .compress = compress};
    assert_ls_ok(ls_plan_make(&c, p_p, &e), e);
}

static ls_share_compress with(ls_compression_kind kind, ls_feedback feedback) {
    return (ls_share_compress){
        .on = true, .how = {.kind = kind, .feedback = feedback, .op = LS_SUM}, .min_count = 100};
}

/* ---- pieces ---- */

static int piece_with(const ls_plan *p, size_t at) {
    int n = p->share.pieces_from[p->share.nbuckets];
    for (int i = 0; i < n; i++)
        if (at >= p->share.pieces[i].first && at < p->share.pieces[i].end) return i;
    return -1;
}

/* Each element of each parameter is in one piece; none crosses a parameter or a chunk; and they are
 * the same for all sizes of buckets. */
static void test_pieces(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 300000, 600000, 25000000};
    ls_model m;
    ls_plan first, p;
    make_model(&m);
    make_plan(&m, with(LS_COMPRESS_TOPK, LS_FEEDBACK_ERROR), 4, &first);
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        make_plan(&m, with(LS_COMPRESS_TOPK, LS_FEEDBACK_ERROR), sizes[k], &p);
        size_t covered = 0, count = 0;
        for (int i = 0; i < p.share.pieces_from[p.share.nbuckets]; i++) {
            const ls_code_piece *x = &p.share.pieces[i];
            assert_true(x->first < x->end);
            size_t chunk = (m.nfloats - 1 - x->first) / 65536;
            assert_int_equal(chunk, (m.nfloats - x->end) / 65536);
            const ls_code_piece *same = &first.share.pieces[piece_with(&first, x->first)];
            assert_true(same->first == x->first && same->end == x->end);
            covered += x->end - x->first;
        }
        for (int i = 0; i < m.nparams; i++) {
            const ls_code_piece *x = &p.share.pieces[piece_with(&p, m.params[i].offset)];
            count += m.params[i].count;
            assert_int_equal(x->plain, m.params[i].count < 100);
            assert_true(x->end <= m.params[i].offset + m.params[i].count);
        }
        assert_int_equal(covered, count);
        assert_true(k > 0 || p.share.nbuckets > 2);
        ls_plan_free(&p);
    }
    ls_plan_free(&first);
    ls_model_free(&m);
}

/* ---- encoding ---- */

typedef struct vectors {
    float *g, *e, *next;
    const float *moment;
} vectors;

static vectors draw(const ls_model *m, float scale) {
    vectors v = {LS_NEW_ARRAY(float, m->nfloats), LS_NEW_ARRAY(float, m->nfloats),
                 LS_NEW_ARRAY(float, m->nfloats), NULL};
    for (int i = 0; i < m->nparams; i++) {
        const ls_param *p = &m->params[i];
        ls_random_place at = {7, LS_STREAM_SAMPLE, 1, p->offset};
        ls_random_normal(at, p->count, scale, v.g + p->offset);
        at.substream = 2;
        if (p->count >= 100) ls_random_normal(at, p->count, scale / 2, v.e + p->offset);
    }
    return v;
}

static void free_vectors(vectors *v) {
    free(v->g);
    free(v->e);
    free(v->next);
}

static void encode(const ls_plan *p, vectors *v, int threads) {
    ls_error e = {0};
    ls_compute c;
    ls_encode_room room = ls_encode_room_of(&p->share);
    assert_ls_ok(ls_compute_init(&c, threads, 0, &e), e);
    assert_int_equal(posix_memalign(&room.memory, 64, (size_t)threads * room.each_nbytes), 0);
    bool has = p->share.has_errors;
    atomic_bool bad = false;
    for (int k = 0; k < p->share.nbuckets; k++)
        ls_encode_bucket(&(ls_encode){.share = &p->share,
                                      .bucket = k,
                                      .step = 3,
                                      .grads = v->g,
                                      .errors = has ? v->e : NULL,
                                      .next = has ? v->next : NULL,
                                      .moment = v->moment,
                                      .room = &room,
                                      .bad = &bad},
                         &c);
    free(room.memory);
    ls_compute_close(&c);
}

/* With error feedback, gradient and error together are what they were, to a rounding; a plain piece
 * has no error. With estimates, the gradient is the new estimate. */
static void check_sums(const ls_plan *p, const vectors *before, const vectors *after) {
    for (int i = 0; i < p->share.pieces_from[p->share.nbuckets]; i++)
        for (size_t k = p->share.pieces[i].first; k < p->share.pieces[i].end; k++) {
            double in = (double)before->g[k] + (double)before->e[k];
            double out = (double)after->g[k] + (double)after->next[k];
            if (p->share.pieces[i].plain) {
                assert_true(after->g[k] == before->g[k] && after->next[k] == 0);
            } else if (p->share.compress.how.feedback == LS_FEEDBACK_EF21) {
                assert_true(after->g[k] == after->next[k]);
            } else {
                assert_true(fabs(in - out) <= 1e-6 * (fabs(in) + fabs((double)after->g[k])));
            }
        }
}

static size_t count_changed(const ls_model *m, const vectors *a, const vectors *b) {
    size_t n = 0;
    for (size_t i = 0; i < m->nfloats; i++) n += a->g[i] != b->g[i];
    return n;
}

static void test_sums(void **state) {
    (void)state;
    static const ls_compression_kind kinds[] = {
        LS_COMPRESS_TOPK, LS_COMPRESS_ONEBIT, LS_COMPRESS_INT8, LS_COMPRESS_INT4, LS_COMPRESS_BF16};
    ls_model m;
    make_model(&m);
    for (int i = 0; i < 2 * (int)(sizeof kinds / sizeof *kinds); i++) {
        ls_plan p;
        ls_share_compress how = with(kinds[i / 2], i % 2 ? LS_FEEDBACK_EF21 : LS_FEEDBACK_ERROR);
        make_plan(&m, how, 300000, &p);
        vectors before = draw(&m, 1), one = draw(&m, 1), three = draw(&m, 1);
        encode(&p, &one, 1);
        encode(&p, &three, THREADS);
        check_sums(&p, &before, &one);
        assert_memory_equal(one.g, three.g, m.nfloats * sizeof *one.g);
        assert_memory_equal(one.next, three.next, m.nfloats * sizeof *one.g);
        assert_memory_equal(one.e, before.e, m.nfloats * sizeof *one.e);
        assert_true(count_changed(&m, &before, &one) > m.nfloats / 2);
        free_vectors(&before);
        free_vectors(&one);
        free_vectors(&three);
        ls_plan_free(&p);
    }
    ls_model_free(&m);
}

/* What is encoded is the virtual worker's part of the new first moment; small parameters get it as
 * it is. */
static void test_moment(void **state) {
    (void)state;
    ls_model m;
    ls_plan p;
    make_model(&m);
    ls_share_compress how = with(LS_COMPRESS_ONEBIT, LS_FEEDBACK_ERROR);
    how.momentum = 0.75;
    make_plan(&m, how, 300000, &p);
    vectors before = draw(&m, 1), v = draw(&m, 1);
    v.moment = before.e;
    encode(&p, &v, THREADS);
    for (int i = 0; i < p.share.pieces_from[p.share.nbuckets]; i++)
        for (size_t k = p.share.pieces[i].first; k < p.share.pieces[i].end; k++) {
            double new = 0.25 * (double)before.g[k] + 0.75 / V *(double)before.e[k];
            double out = (double)v.g[k] + (double)v.next[k];
            double error = p.share.pieces[i].plain ? 0 : (double)before.e[k];
            assert_true(fabs(new + error - out) < 1e-5);
        }
    free_vectors(&before);
    free_vectors(&v);
    ls_plan_free(&p);
    ls_model_free(&m);
}

/* What is not finite remains in the gradient, also if only the sum with the error is too large. */
static void test_not_finite(void **state) {
    (void)state;
    ls_model m;
    ls_plan p;
    make_model(&m);
    make_plan(&m, with(LS_COMPRESS_TOPK, LS_FEEDBACK_ERROR), 1000000, &p);
    for (int large = 0; large < 2; large++) {
        vectors v = draw(&m, 1);
        size_t at = m.params[0].offset + 5;
        v.g[at] = large ? 3e38f : NAN;
        v.e[at] = 3e38f;
        encode(&p, &v, 1);
        assert_true(isfinite(v.g[at]) == 0);
        assert_true(v.next[at] == 0);
        free_vectors(&v);
    }
    ls_plan_free(&p);
    ls_model_free(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_moment),
        cmocka_unit_test(test_not_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
