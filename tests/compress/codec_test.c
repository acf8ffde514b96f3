/* codec_test.c - each codec against its formula, computed in another way, and the known outcomes of
 * error feedback; with every variant of the kernels. */
/* ctest: seconds=10 */
#include "compress/codec.h"

#include <math.h>

#include "base/random.h"
#include "test.h"

/* ---- one vector there and back ---- */

typedef struct box {
    const ls_codec *codec;
    ls_compression how;
    ls_codec_job job;
    float *shared;
    void *work, *message;
} box;

static box open_box(const ls_kernels *k, const ls_compression *given, size_t n) {
    box b = {.codec = ls_codec_of(given->kind)};
    ls_error e;
    assert_ls_ok(ls_compression_complete(given, n, &b.how, &e), e);
    b.shared = calloc(b.codec->nshared(&b.how, n) + 1, sizeof(float));
    assert_int_equal(posix_memalign(&b.work, 64, b.codec->nwork(&b.how, n) + 64), 0);
    size_t most = b.codec->nbytes(&b.how, n, 0);
    if (b.codec->rounds > 1 && b.codec->nbytes(&b.how, n, 1) > most)
        most = b.codec->nbytes(&b.how, n, 1);
    b.message = malloc(most + 4);
    b.job = (ls_codec_job){k, NULL, n, b.shared, b.work};
    return b;
}
static void close_box(box *b) {
    free(b->shared);
    free(b->work);
    free(b->message);
}

/* y = decoded x; a word behind the message must stay as it is. */
static void there_and_back(box *b, const float *x, float *y) {
    static const uint32_t guard = 0x5ca1ab1e;
    b->job.how = &b->how;
    b->codec->prepare(&b->job);
    for (int r = 0; r < (b->codec->rounds ? b->codec->rounds : 1); r++) {
        unsigned char *end = (unsigned char *)b->message + b->codec->nbytes(&b->how, b->job.n, r);
        memcpy(end, &guard, sizeof guard);
        b->codec->encode(&b->job, r, x, b->message);
        assert_memory_equal(end, &guard, sizeof guard);
        b->codec->absorb(&b->job, r, b->message, 1);
    }
    size_t piece = ls_codec_piece(b->codec, &b->how);
    for (size_t at = 0; at < b->job.n; at += piece)
        b->codec->decode(&b->job, b->message, at, b->job.n - at < piece ? b->job.n - at : piece,
                         y + at);
}

static void once(const ls_kernels *k, ls_compression how, size_t n, const float *x, float *y) {
    box b = open_box(k, &how, n);
    there_and_back(&b, x, y);
    close_box(&b);
}

typedef void variant_fn(const ls_kernels *);
static void each_variant(variant_fn *fn) {
    const ls_kernels *k = NULL;
    for (int i = 0; (k = ls_kernels_at(i)); i++) fn(k);
}

static float *normals(size_t n, uint64_t stream) {
    float *x = malloc(n * sizeof *x + 1);
    ls_random_normal((ls_random_place){3, LS_STREAM_SAMPLE, stream, 0}, n, 1.0f, x);
    return x;
}

/* ---- topk ---- */

typedef struct element {
    float magnitude;
    size_t index;
} element;

static int by_magnitude(const void *a, const void *b) {
    const element *x = a, *y = b;
    if (x->magnitude != y->magnitude) return x->magnitude < y->magnitude ? 1 : -1;
    return x->index < y->index ? -1 : 1;
}

/* The k first of all elements in order; and |p - c|^2 <= (1 - k/d) |p|^2. */
static void check_topk(const ls_kernels *v, const float *x, size_t n, size_t k) {
    float *y = malloc(n * sizeof *y), *want = calloc(n, sizeof *want);
    element *all = malloc(n * sizeof *all);
    double lost = 0, whole = 0;
    for (size_t i = 0; i < n; i++) all[i] = (element){fabsf(x[i]), i};
    qsort(all, n, sizeof *all, by_magnitude);
    for (size_t i = 0; i < k && i < n; i++) want[all[i].index] = x[all[i].index];
    once(v, (ls_compression){.kind = LS_COMPRESS_TOPK, .k = k}, n, x, y);
    assert_memory_equal(y, want, n * sizeof *y);
    for (size_t i = 0; i < n; i++) {
        lost += ((double)x[i] - y[i]) * ((double)x[i] - y[i]);
        whole += (double)x[i] * x[i];
    }
    assert_true(lost <= (1 - (double)k / (double)n) * whole * (1 + 1e-12));
    free(y);
    free(want);
    free(all);
}

static void topk_of(const ls_kernels *v) {
    static const size_t sizes[] = {1, 2, 63, 64, 65, 1000, 8191, 8192, 50001};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        size_t n = sizes[s], ks[] = {1, 2, n / 100 + 1, n / 2 + 1, n - n / 50, n};
        float *x = normals(n, s);
        for (int way = 0; way < 5; way++) {
            for (size_t i = 0; i < n; i++) {
                if (way == 1) x[i] = rintf(x[i] * 2); /* many are equal */
                if (way == 2) x[i] = i % 97 ? 0.0f : x[i];
                if (way == 3) x[i] = i % (n / 4096 + 1) ? 1e-3f : 1.0f; /* misleads the sample */
                if (way == 4) x[i] = -2.0f;
            }
            for (int i = 0; i < 6; i++) check_topk(v, x, n, ks[i] < n ? ks[i] : n);
        }
        free(x);
    }
}

static void test_topk(void **state) {
    (void)state;
    each_variant(topk_of);
}

/* ---- signs, integers ---- */

static void onebit_of(const ls_kernels *v) {
    enum { N = 331, BLOCK = 64 };
    float *x = normals(N, 1), y[N];
    x[3] = 0.0f, x[4] = -0.0f;
    for (int root = 0; root < 2; root++) {
        once(v,
             (ls_compression){.kind = LS_COMPRESS_ONEBIT,
                              .block = BLOCK,
                              .sign_scale = root ? LS_SCALE_ROOT : LS_SCALE_MEAN},
             N, x, y);
        for (int at = 0; at < N; at += BLOCK) {
            int n = N - at < BLOCK ? N - at : BLOCK;
            double sum = 0;
            for (int i = at; i < at + n; i++)
                sum += root ? (double)x[i] * x[i] : fabs((double)x[i]);
            double scale = root ? sqrt(sum / n) : sum / n;
            for (int i = at; i < at + n; i++) {
                assert_true(fabs(fabs((double)y[i]) - scale) < 1e-6 * scale);
                assert_int_equal(y[i] > 0, x[i] >= 0); /* -0 counts as positive */
            }
        }
    }
    for (int i = 0; i < N; i++) x[i] = i % 2 ? 3e38f : -3e38f; /* the sum exceeds f32 */
    for (int root = 0; root < 2; root++) {
        once(v,
             (ls_compression){.kind = LS_COMPRESS_ONEBIT,
                              .sign_scale = root ? LS_SCALE_ROOT : LS_SCALE_MEAN},
             N, x, y);
        assert_memory_equal(x, y, sizeof y);
    }
    free(x);
}

static void test_onebit(void **state) {
    (void)state;
    each_variant(onebit_of);
}

static void check_integers(const ls_kernels *v, ls_compression_kind kind, int most) {
    enum { N = 1000, BLOCK = 96 };
    static const float scales[] = {1.0f, 1e-30f, 1e30f, 3e38f, 1e-20f, 0.0f};
    for (int s = 0; s < 6; s++) {
        float *x = normals(N, 5), y[N];
        for (int i = 0; i < N; i++) x[i] = fmaxf(-1.0f, fminf(1.0f, x[i])) * scales[s];
        once(v, (ls_compression){.kind = kind, .block = BLOCK}, N, x, y);
        for (int at = 0; at < N; at += BLOCK) {
            int n = N - at < BLOCK ? N - at : BLOCK;
            double absmax = 0;
            for (int i = at; i < at + n; i++) absmax = fmax(absmax, fabs((double)x[i]));
            for (int i = at; i < at + n; i++) {
                if (absmax < 0x1p-100)
                    assert_true(y[i] == 0);
                else
                    assert_true(fabs((double)x[i] - y[i]) <= absmax / (2 * most) * (1 + 1e-5));
                /* integers times the scale */
                double q = absmax > 0 ? y[i] / (absmax / most) : 0;
                assert_true(fabs(q - rint(q)) < 1e-4 && fabs(q) <= most + 1e-4);
            }
        }
        free(x);
    }
}

/* The nearest number of 8 bits of precision, ties to even; the largest ones stay finite. */
static void bf16_of(const ls_kernels *v) {
    static const float x[] = {1,           -1.00390625f,    1.01171875f,
                              0x1.fep127f, 0x1.fffffep127f, -0x1.fffffep127f};
    static const float want[] = {1, -1, 1.015625f, 0x1.fep127f, 0x1.fep127f, -0x1.fep127f};
    enum { N = sizeof x / sizeof *x };
    float y[N];
    ls_compression how = {.kind = LS_COMPRESS_BF16};
    box b = open_box(v, &how, N);
    there_and_back(&b, x, y);
    for (int i = 0; i < N; i++) assert_true(y[i] == want[i]);
    close_box(&b);
}

static void test_bf16(void **state) {
    (void)state;
    each_variant(bf16_of);
}

static void integers_of(const ls_kernels *v) {
    check_integers(v, LS_COMPRESS_INT8, 127);
    check_integers(v, LS_COMPRESS_INT4, 7);
}

static void test_integers(void **state) {
    (void)state;
    each_variant(integers_of);
}

/* ---- powersgd ---- */

static double distance(const float *x, const float *y, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += ((double)x[i] - y[i]) * ((double)x[i] - y[i]);
    return sqrt(sum);
}
static double length(const float *x, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i] * x[i];
    return sqrt(sum);
}

/* x = a matrix [rows, cols] of rank `rank`. */
static void fill_rank(float *x, size_t rows, size_t cols, int rank) {
    memset(x, 0, rows * cols * sizeof *x);
    for (int r = 0; r < rank; r++) {
        float *u = normals(rows, 20 + (uint64_t)r), *w = normals(cols, 40 + (uint64_t)r);
        for (size_t i = 0; i < rows * cols; i++) x[i] += u[i / cols] * w[i % cols];
        free(u);
        free(w);
    }
}

/* A matrix of at most the rank is exact in one step, also where its rank is lower: up to f32's
 * rounding times the condition of the factor that is drawn. */
static void powersgd_of(const ls_kernels *v) {
    enum { ROWS = 37, COLS = 53, N = ROWS * COLS };
    static float x[N], y[N];
    for (int rank = 0; rank <= 4; rank++) {
        fill_rank(x, ROWS, COLS, rank);
        for (int r = rank ? rank : 1; r <= 4; r++) {
            once(v, (ls_compression){.kind = LS_COMPRESS_POWERSGD, .rows = ROWS, .rank = r}, N, x,
                 y);
            assert_true(distance(x, y, N) <= 3e-5 * length(x, N));
        }
    }
}

/* Rows that are multiplied three at a time, the last one only in part. */
static void powersgd_of_long_rows(const ls_kernels *v) {
    enum { ROWS = 8, COLS = 20000, N = ROWS * COLS - 5 };
    static float x[ROWS * COLS], y[N];
    fill_rank(x, ROWS, COLS, 2);
    memset(x + N, 0, (ROWS * COLS - N) * sizeof *x);
    once(v, (ls_compression){.kind = LS_COMPRESS_POWERSGD, .rows = ROWS, .rank = 4}, N, x, y);
    assert_true(distance(x, y, N) <= 3e-5 * length(x, N));
}

/* Steps on one matrix, whose singular values are known, approach its best approximation; after a
 * matrix of rank 1, the other columns come back. */
static void powersgd_converges(const ls_kernels *v) {
    enum { SIDE = 12, N = SIDE * SIDE, R = 3 };
    static float x[N], y[N], low[N];
    double tail = 0;
    box b =
        open_box(v, &(ls_compression){.kind = LS_COMPRESS_POWERSGD, .rank = R, .rows = SIDE}, N);
    for (int i = 0; i < SIDE; i++) {
        x[i * SIDE + (i * 5) % SIDE] = (float)(1 << (SIDE - i)); /* a permuted diagonal */
        if (i >= R) tail += pow(4, SIDE - i);
    }
    for (int i = 0; i < N; i++) low[i] = 1.0f;
    for (b.how.step = 0; b.how.step < 20; b.how.step++) there_and_back(&b, x, y);
    assert_true(fabs(distance(x, y, N) - sqrt(tail)) < 1e-4 * sqrt(tail));
    there_and_back(&b, low, y);
    assert_true(distance(low, y, N) < 1e-5 * length(low, N));
    for (; b.how.step < 45; b.how.step++) there_and_back(&b, x, y);
    assert_true(fabs(distance(x, y, N) - sqrt(tail)) < 1e-4 * sqrt(tail));
    close_box(&b);
}

static void test_powersgd(void **state) {
    (void)state;
    each_variant(powersgd_of);
    each_variant(powersgd_of_long_rows);
    each_variant(powersgd_converges);
}

/* ---- error feedback: known outcomes ---- */

static const double A[3][3] = {{-3, 2, 2}, {2, -3, 2}, {2, 2, -3}};

/* The gradient of f_i = <a_i, x>^2 + |x|^2 / 4, times `scale`. */
static void gradient(int i, const double x[3], double scale, float g[3]) {
    double product = A[i][0] * x[0] + A[i][1] * x[1] + A[i][2] * x[2];
    for (int j = 0; j < 3; j++) g[j] = (float)(scale * (2 * product * A[i][j] + 0.5 * x[j]));
}

typedef enum feedback { NAIVE, ERROR, EF21 } feedback;

/* The magnitude of x, log10, after some steps of the mean of three top-1 contributions from
 * (1, 1, 1). x and the memory are scaled by powers of two as they shrink, which changes no other
 * bit. */
static double descend(feedback how, double rate, int steps) {
    double x[3] = {1, 1, 1}, scaled = 0;
    float memory[3][3] = {{0}};
    for (int t = 0; t < steps; t++) {
        double change[3] = {0};
        for (int i = 0; i < 3; i++) {
            float p[3], c[3];
            /* Errors are of steps, EF21's estimates of gradients. */
            gradient(i, x, how == EF21 ? 1 : rate, p);
            for (int j = 0; j < 3; j++) p[j] += how == EF21 ? -memory[i][j] : memory[i][j];
            once(ls_kernels_at(0), (ls_compression){.kind = LS_COMPRESS_TOPK, .k = 1}, 3, p, c);
            for (int j = 0; j < 3; j++) {
                if (how == ERROR) memory[i][j] = p[j] - c[j];
                if (how == EF21) memory[i][j] += c[j];
                change[j] += how == EF21 ? rate * memory[i][j] : c[j];
            }
        }
        for (int j = 0; j < 3; j++) x[j] -= change[j] / 3;
        double most = fmax(fabs(x[0]), fmax(fabs(x[1]), fabs(x[2])));
        if (most > 0x1p-40) continue;
        scaled += 40;
        for (int j = 0; j < 3; j++) {
            x[j] *= 0x1p40;
            for (int i = 0; i < 3; i++) memory[i][j] *= 0x1p40f;
        }
    }
    double most = fmax(fabs(x[0]), fmax(fabs(x[1]), fabs(x[2])));
    return log10(most) - scaled * log10(2);
}

/* Naive top-1 grows as (1 + 11 rate / 6)^steps; with error feedback, x vanishes. */
static void test_top_one(void **state) {
    (void)state;
    double grown = pow(10, descend(NAIVE, 0.01, 50));
    assert_true(fabs(grown - 2.48026447534) < 1e-6);
    assert_true(fabs(grown - pow(1 + 11 * 0.01 / 6, 50)) < 1e-6);
    assert_true(descend(ERROR, 0.01, 20000) < -100);
    assert_true(descend(EF21, 0.01, 20000) < -100);
}

/* A gradient of 4 with probability 1/4, else -1: its mean is 1/4, that of its signs -1/2. Signs
 * alone climb; with error feedback what is sent is the mean. */
static void test_signs_climb(void **state) {
    enum { N = 512, STEPS = 2000 };
    static float error[N], g[N], p[N], y[N];
    (void)state;
    for (int with = 0; with < 2; with++) {
        double sent = 0, mean = 0;
        box b = open_box(ls_kernels_at(0), &(ls_compression){.kind = LS_COMPRESS_ONEBIT}, N);
        for (int t = 0; t < STEPS; t++) {
            for (int i = 0; i < N; i++) {
                double u = ls_random_uniform(1, LS_STREAM_SAMPLE, (uint64_t)t, (uint64_t)i);
                g[i] = u < 0.25 ? 4.0f : -1.0f;
                p[i] = g[i] + (with ? error[i] : 0.0f);
                mean += (double)g[i] / N / STEPS;
            }
            there_and_back(&b, p, y);
            for (int i = 0; i < N; i++) {
                error[i] = p[i] - y[i];
                sent += (double)y[i] / N / STEPS;
            }
        }
        close_box(&b);
        assert_true(fabs(mean - 0.25) < 0.01);
        if (with)
            assert_true(fabs(sent - mean) < 0.02);
        else
            assert_true(fabs(sent + 0.875) < 0.01); /* 1.75, the mean magnitude, times -1/2 */
    }
}

/* powersgd: one error of the mean gives the trajectory of an error for each contribution. */
static void test_one_error(void **state) {
    enum { N = 900, V = 3, STEPS = 10 };
    static float each[V][N], one[N], p[V][N], mean[N], y[N], z[N];
    const ls_kernels *k = ls_kernels_at(0);
    ls_compression how = {.kind = LS_COMPRESS_POWERSGD, .rank = 2};
    (void)state;
    box b = open_box(k, &how, N), c = open_box(k, &how, N);
    for (b.how.step = 0; b.how.step < STEPS; b.how.step++, c.how.step++) {
        memset(mean, 0, sizeof mean);
        for (int v = 0; v < V; v++) {
            float *g = normals(N, 100 * b.how.step + (uint64_t)v);
            for (int i = 0; i < N; i++) {
                p[v][i] = g[i] + each[v][i];
                mean[i] += g[i] / V;
            }
            free(g);
        }
        b.job.how = &b.how;
        b.codec->prepare(&b.job);
        for (int r = 0; r < 2; r++) {
            float sum[N] = {0}, part[N];
            size_t len = b.codec->nbytes(&b.how, N, r) / sizeof(float);
            for (int v = 0; v < V; v++) {
                b.codec->encode(&b.job, r, p[v], part);
                for (size_t i = 0; i < len; i++) sum[i] += part[i];
            }
            b.codec->absorb(&b.job, r, sum, V);
        }
        b.codec->decode(&b.job, NULL, 0, N, y);
        for (int v = 0; v < V; v++)
            for (int i = 0; i < N; i++) each[v][i] = p[v][i] - y[i];
        for (int i = 0; i < N; i++) mean[i] += one[i];
        there_and_back(&c, mean, z);
        for (int i = 0; i < N; i++) one[i] = mean[i] - z[i];
        assert_true(distance(y, z, N) < 1e-3 * length(z, N));
    }
    close_box(&b);
    close_box(&c);
}

/* ---- the same bits ---- */

/* Every codec and variant: messages and decoded values of the portable kernels. */
static void test_variants(void **state) {
    enum { N = 20011 };
    static float x[N], want[N], y[N];
    (void)state;
    float *r = normals(N, 77);
    for (int i = 0; i < N; i++) x[i] = r[i] * (i % 5 ? 1.0f : 1e-4f) * (i % 1000 ? 1.0f : 1e3f);
    for (int kind = 0; kind < LS_NCOMPRESSIONS; kind++) {
        const ls_kernels *k = NULL;
        ls_compression how = {.kind = (ls_compression_kind)kind};
        box b = open_box(ls_kernels_named("portable"), &how, N);
        there_and_back(&b, x, want);
        for (int i = 0; (k = ls_kernels_at(i)); i++) {
            box o = open_box(k, &how, N);
            there_and_back(&o, x, y);
            int rounds = b.codec->rounds ? b.codec->rounds : 1;
            assert_memory_equal(o.message, b.message, b.codec->nbytes(&b.how, N, rounds - 1));
            assert_memory_equal(y, want, sizeof y);
            close_box(&o);
        }
        close_box(&b);
    }
    free(r);
}

/* Bytes of messages, by hand. */
static void test_nbytes(void **state) {
    (void)state;
    static const struct {
        ls_compression how;
        size_t n, want;
    } cases[] = {
        {{.kind = LS_COMPRESS_TOPK}, 1000, 80},
        {{.kind = LS_COMPRESS_TOPK, .k = 3}, 1000, 24},
        {{.kind = LS_COMPRESS_TOPK, .k = 30}, 10, 80},
        {{.kind = LS_COMPRESS_TOPK, .ratio = 0.1}, 1001, 808},
        {{.kind = LS_COMPRESS_TOPK, .ratio = 0.07}, 100, 56},
        {{.kind = LS_COMPRESS_ONEBIT}, 8192, 1024 + 8},
        {{.kind = LS_COMPRESS_ONEBIT, .block = 64}, 65, 3 * 4 + 2 * 4},
        {{.kind = LS_COMPRESS_INT8}, 1024, 1024 + 16},
        {{.kind = LS_COMPRESS_INT4}, 1024, 512 + 64},
        {{.kind = LS_COMPRESS_BF16}, 1024, 2048},
        {{.kind = LS_COMPRESS_BF16}, 33, 128},
        {{.kind = LS_COMPRESS_POWERSGD}, 10000, 4 * 4 * 200},
        {{.kind = LS_COMPRESS_POWERSGD, .rank = 1, .rows = 10}, 10000, 4 * 1010},
        {{.kind = LS_COMPRESS_INT8, .block = 5}, 1024, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(ls_compression_nbytes(&cases[i].how, cases[i].n), cases[i].want);
}

/* A message with numbers out of range, as a faulty worker could send: decoding stays within out. */
static void test_wild_message(void **state) {
    enum { N = 1000 };
    ls_compression how = {.kind = LS_COMPRESS_TOPK};
    (void)state;
    box b = open_box(ls_kernels_at(0), &how, N);
    size_t nbytes = b.codec->nbytes(&b.how, N, 0);
    b.job.how = &b.how;
    b.codec->prepare(&b.job);
    for (uint64_t t = 0; t < 200; t++) {
        float *y = malloc(64 * sizeof *y);
        for (size_t i = 0; i < nbytes; i++) {
            uint32_t w[4];
            ls_random_words(t, LS_STREAM_SAMPLE, 0, i, w);
            ((unsigned char *)b.message)[i] = (unsigned char)(i % 4 ? w[0] & 3 : w[0]);
        }
        b.codec->decode(&b.job, b.message, 128, 64, y);
        free(y);
    }
    close_box(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_topk),         cmocka_unit_test(test_onebit),
        cmocka_unit_test(test_bf16),         cmocka_unit_test(test_integers),
        cmocka_unit_test(test_powersgd),     cmocka_unit_test(test_top_one),
        cmocka_unit_test(test_signs_climb),  cmocka_unit_test(test_one_error),
        cmocka_unit_test(test_variants),     cmocka_unit_test(test_nbytes),
        cmocka_unit_test(test_wild_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
