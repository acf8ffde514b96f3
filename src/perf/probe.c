/* probe.c - see probe.h. */
#include "perf/probe.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "perf/machine.h"
#include "tensor/gemm.h"

const ls_update_scalars ls_probe_adamw = {.lr = 1e-3f,
                                          .beta1 = 0.9f,
                                          .beta2 = 0.95f,
                                          .eps = 1e-8f,
                                          .weight_decay = 0.1f,
                                          .correct1 = 1,
                                          .correct2 = 1,
                                          .grad_scale = 1};

enum {
    PART = 4 << 20,  /* floats of an operand */
    RING = 16 << 20, /* floats: weights of successive runs, one after the other: */
    PLACES = 24,     /* at most as many as a model has of one size */
    PARTS = 4,
    WIDTH = 256,  /* of rows */
    WORDS = 2048, /* of logits */
    QUERIES = 64
};

static float *part(const ls_probe_bench *b, int i) { return b->memory + (size_t)i * PART; }

ls_status ls_probe_open(ls_probe_bench *b, ls_error *e) {
    void *p = NULL;
    *b = (ls_probe_bench){0};
    LS_TRY(ls_compute_init(&b->compute, 1, 0, e));
    size_t floats = (size_t)PARTS * PART + RING;
    LS_TRY(ls_map(floats * sizeof(float), "measuring", &p, e));
    b->memory = p;
    for (size_t i = 0; i < floats; i++)
        b->memory[i] = (float)((i * 2654435761u >> 8) & 0xffff) / 65536.0f - 0.5f;
    LS_TRY(ls_map(RING * sizeof(uint16_t), "measuring", &p, e));
    b->weights_bf16 = p;
    b->compute.k->narrow(LS_BF16, RING, part(b, PARTS), p);
    LS_TRY(ls_map(PART * sizeof(uint16_t), "measuring", &p, e));
    b->first_bf16 = p;
    b->compute.k->narrow(LS_BF16, PART, part(b, 0), p);
    int file = memfd_create("lockstep", 0);
    if (file < 0 || ftruncate(file, PART * sizeof(float)) != 0)
        return ls_fail(e, LS_ENOMEM, "no shared memory to measure with");
    p = mmap(NULL, PART * sizeof(float), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (p == MAP_FAILED) return ls_fail(e, LS_ENOMEM, "no shared memory to measure with");
    b->pages = p;
    return LS_OK;
}

void ls_probe_close(ls_probe_bench *b) {
    if (b->pages) munmap(b->pages, PART * sizeof(float));
    if (b->first_bf16) ls_unmap(b->first_bf16, PART * sizeof(uint16_t));
    if (b->weights_bf16) ls_unmap(b->weights_bf16, RING * sizeof(uint16_t));
    if (b->memory) ls_unmap(b->memory, ((size_t)PARTS * PART + RING) * sizeof(float));
    ls_compute_close(&b->compute);
}

double ls_probe_units(const ls_probe *p) {
    if (p->kind < LS_NPRODUCTS) return 2.0 * (double)p->M * (double)p->N * (double)p->K;
    if (!ls_work_is_softmax(p->kind)) return (double)p->n;
    double first = (double)(p->n - QUERIES); /* the last block of queries sees this many keys */
    return QUERIES * (first + (QUERIES + 1) / 2.0);
}

/* The next place in the ring for `floats` elements. */
static int64_t next_place(ls_probe_bench *b, int64_t floats) {
    int64_t places = RING / floats < PLACES ? RING / floats : PLACES;
    return b->turn++ % places * floats;
}

/* The next weights [rows, width]; in bf16 layers read them as they are stored. */
static ls_matrix next_weights(ls_probe_bench *b, bool bf16, int64_t rows, int64_t width) {
    int64_t at = next_place(b, rows * width);
    return bf16 ? ls_matrix_bf16(b->weights_bf16 + at, width)
                : ls_matrix_of(part(b, PARTS) + at, width);
}

/* The first operand [rows, width], of which layers keep most in bf16 for products in bf16. */
static ls_matrix first_operand(const ls_probe_bench *b, bool bf16, int64_t width) {
    return bf16 ? ls_matrix_bf16(b->first_bf16, width) : ls_matrix_of(part(b, 0), width);
}

static void run_product(ls_probe_bench *b, const ls_probe *p) {
    int64_t M = p->M, N = p->N, K = p->K;
    bool bf16 = p->kind >= LS_WORK_PRODUCT_BF16;
    ls_gemm_job g = {
        .M = M, .N = N, .K = K, .bf16 = bf16, .c = part(b, 1), .ldc = N, .bias = part(b, 2)};
    if (p->kind == LS_WORK_PRODUCT_DW || p->kind == LS_WORK_PRODUCT_DW_BF16) {
        g.a = ls_matrix_across(first_operand(b, bf16, M));
        g.b = ls_matrix_of(part(b, 1), N);
        g.c = part(b, PARTS) + next_place(b, M * N);
        g.start = LS_GEMM_ADD;
    } else {
        bool dx = p->kind == LS_WORK_PRODUCT_DX || p->kind == LS_WORK_PRODUCT_DX_BF16;
        g.a = first_operand(b, bf16, K);
        g.b = dx ? ls_matrix_across(next_weights(b, bf16, N, K)) : next_weights(b, bf16, K, N);
        g.start = dx ? LS_GEMM_ZERO : LS_GEMM_BIAS;
    }
    ls_gemm_in_thread(&b->compute, 0, &g);
}

static void run_rows(ls_probe_bench *b, const ls_probe *p) {
    const ls_kernels *k = b->compute.k;
    int64_t rows = p->n / WIDTH;
    float *x = part(b, 0), *y = part(b, 1), *z = part(b, 2), *side = part(b, PARTS);
    float *mean = side + 4 * WIDTH, *rstd = mean + rows;
    if (p->kind == LS_WORK_NORM)
        k->layernorm(rows, WIDTH, x, side, side + WIDTH, y, mean, rstd);
    else if (p->kind == LS_WORK_NORM_DX)
        k->layernorm_dx(rows, WIDTH, y, x, side, mean, rstd, z, part(b, 3));
    else if (p->kind == LS_WORK_NORM_DPARAMS)
        k->layernorm_dparams(rows, WIDTH, 0, WIDTH, y, x, mean, rstd, side, side + WIDTH);
    else
        k->column_sum(rows, WIDTH, 0, WIDTH, x, side);
}

/* Runs softmax in place again and again. Values grow, so that slow denormal numbers do not
 * appear. */
static void run_softmax(ls_probe_bench *b, const ls_probe *p) {
    const ls_kernels *k = b->compute.k;
    int64_t first = p->n - QUERIES;
    float *s = part(b, 0), *dp = part(b, 1), *stat = part(b, PARTS);
    if (p->kind == LS_WORK_SOFTMAX)
        k->softmax_causal(QUERIES, p->n, first, 0.5f, s, stat);
    else if (p->kind == LS_WORK_SOFTMAX_AGAIN)
        k->softmax_causal_again(QUERIES, p->n, first, 0.5f, s, stat);
    else
        k->softmax_causal_dx(QUERIES, p->n, 4.0f, part(b, 2), dp);
}

static void run_logits(ls_probe_bench *b, const ls_probe *p) {
    const ls_kernels *k = b->compute.k;
    for (int64_t i = 0; i + WORDS <= p->n; i += WORDS) {
        float stat[2] = {1.0f, 0.001f};
        if (p->kind == LS_WORK_LOSS)
            k->cross_entropy(WORDS, part(b, 0) + i, stat);
        else
            k->cross_entropy_dx(WORDS, part(b, 0) + i, stat, 1, 0.01f);
    }
}

static void run_flat(ls_probe_bench *b, const ls_probe *p) {
    const ls_kernels *k = b->compute.k;
    float *x = part(b, 0), *y = part(b, 1), *z = part(b, 2), *const states[] = {z, part(b, 3)};
    float sum = 0;
    switch (p->kind) {
    case LS_WORK_GELU: k->gelu(p->n, x, y); break;
    case LS_WORK_GELU_BACK: k->gelu_back(p->n, x, y, z, part(b, 3)); break;
    case LS_WORK_ADD: k->add(p->n, x, y, z); break;
    case LS_WORK_WIDEN: k->widen(LS_BF16, (size_t)p->n, x, y); break;
    case LS_WORK_NARROW: k->narrow(LS_BF16, (size_t)p->n, x, y); break;
    case LS_WORK_UPDATE: k->update[LS_RULE_ADAMW](p->n, &ls_probe_adamw, x, y, states); break;
    default:
        for (int64_t i = 0; i < p->n; i += 1024) sum += k->sum_squares(1024, x + i);
        part(b, 3)[0] = sum; /* so that the compiler keeps the work */
    }
}

static void run_pages(ls_probe_bench *b, const ls_probe *p) {
    int64_t nbytes = p->n * (int64_t)sizeof(float);
    madvise(b->pages, (size_t)nbytes, MADV_REMOVE);
    for (int64_t i = 0; i < nbytes; i += 4096) b->pages[i] = 1;
}

void ls_probe_run(ls_probe_bench *b, const ls_probe *p) {
    switch (p->kind) {
    case LS_WORK_PRODUCT:
    case LS_WORK_PRODUCT_DX:
    case LS_WORK_PRODUCT_DW:
    case LS_WORK_PRODUCT_BF16:
    case LS_WORK_PRODUCT_DX_BF16:
    case LS_WORK_PRODUCT_DW_BF16: run_product(b, p); break;
    case LS_WORK_NORM:
    case LS_WORK_NORM_DX:
    case LS_WORK_NORM_DPARAMS:
    case LS_WORK_COLUMN_SUM: run_rows(b, p); break;
    case LS_WORK_SOFTMAX:
    case LS_WORK_SOFTMAX_AGAIN:
    case LS_WORK_SOFTMAX_DX: run_softmax(b, p); break;
    case LS_WORK_LOSS:
    case LS_WORK_LOSS_DX: run_logits(b, p); break;
    case LS_WORK_GELU:
    case LS_WORK_GELU_BACK:
    case LS_WORK_ADD:
    case LS_WORK_WIDEN:
    case LS_WORK_NARROW:
    case LS_WORK_SQUARES:
    case LS_WORK_UPDATE: run_flat(b, p); break;
    case LS_WORK_PAGES: run_pages(b, p); break;
    case LS_NWORK_KINDS: break;
    }
}
