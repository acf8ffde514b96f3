/* gemm_library.c - see gemm_library.h. */
#include "gemm_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const gemm_library_names[GEMM_LIBRARIES] = {"openblas", "onednn"};
static const char *const packages[] = {"libopenblas0-pthread", "libdnnl2"};
static const char *const files[] = {"libopenblas.so.0", "libdnnl.so.2"};

/* cblas_sgemm, of the standard C interface of BLAS. */
typedef void cblas_fn(int order, int ta, int tb, int M, int N, int K, float alpha, const float *a,
                      int lda, const float *b, int ldb, float beta, float *c, int ldc);
/* dnnl_sgemm, of oneDNN; row-major. */
typedef int dnnl_fn(char ta, char tb, int64_t M, int64_t N, int64_t K, float alpha, const float *a,
                    int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc);
/* The same of operands in bf16, as oneDNN 2 exports it beside its documented functions. */
typedef int dnnl_bf16_fn(char ta, char tb, int64_t M, int64_t N, int64_t K, float alpha,
                         const uint16_t *a, int64_t lda, const uint16_t *b, int64_t ldb, float beta,
                         float *c, int64_t ldc);
typedef char *config_fn(void);
typedef struct dnnl_version {
    int major, minor, patch;
} dnnl_version;
typedef const dnnl_version *version_fn(void);

/* A function of the library; ISO C can't cast an object pointer to a function pointer. */
#define CALL(type, symbol) (*(type **)&(void *){symbol})

static void find_version(gemm_library *l) {
    void *f = dlsym(l->handle, l->which == GEMM_OPENBLAS ? "openblas_get_config" : "dnnl_version");
    if (!f) return;
    if (l->which == GEMM_OPENBLAS) {
        snprintf(l->version, sizeof l->version, "%.60s", CALL(config_fn, f)());
        return;
    }
    const dnnl_version *v = CALL(version_fn, f)();
    snprintf(l->version, sizeof l->version, "oneDNN %d.%d.%d", v->major, v->minor, v->patch);
}

static const char *function_of(int which, bool bf16) {
    if (which == GEMM_OPENBLAS) return "cblas_sgemm";
    return bf16 ? "dnnl_gemm_bf16bf16f32" : "dnnl_sgemm";
}

ls_status gemm_library_open(int which, bool bf16, gemm_library *l_p, ls_error *e) {
    gemm_library l = {.name = gemm_library_names[which], .which = which, .bf16 = bf16};
    if (bf16 && which == GEMM_OPENBLAS)
        return ls_fail(e, LS_EINVAL, "--vs: openblas has no products in bf16; use onednn");
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    setenv("OMP_NUM_THREADS", "1", 1);
    l.handle = dlopen(files[which], RTLD_NOW | RTLD_LOCAL);
    if (l.handle) l.function = dlsym(l.handle, function_of(which, bf16));
    if (!l.function) {
        gemm_library_close(&l);
        return ls_fail(e, LS_EINVAL, "--vs: %s is not installed; install Debian's package %s",
                       gemm_library_names[which], packages[which]);
    }
    find_version(&l);
    *l_p = l;
    return LS_OK;
}

void gemm_library_close(gemm_library *l) {
    if (l->handle) dlclose(l->handle);
    *l = (gemm_library){0};
}

/* The distance between rows of the matrix in memory. */
static int64_t ld_of(ls_matrix m) { return m.cs == 1 ? m.rs : m.cs; }
static bool is_transposed(ls_matrix m) { return m.cs != 1; }

void gemm_library_run(const gemm_library *l, const ls_gemm_job *g) {
    enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111, TRANSPOSE = 112 };
    bool ta = is_transposed(g->a), tb = is_transposed(g->b);
    float beta = g->start == LS_GEMM_ADD ? 1.0f : 0.0f;
    if (l->which == GEMM_OPENBLAS) CALL(cblas_fn, l->function)
    (ROW_MAJOR, ta ? TRANSPOSE : NO_TRANSPOSE, tb ? TRANSPOSE : NO_TRANSPOSE, (int)g->M, (int)g->N,
     (int)g->K, 1.0f, g->a.p, (int)ld_of(g->a), g->b.p, (int)ld_of(g->b), beta, g->c, (int)g->ldc);
    else if (l->bf16) CALL(dnnl_bf16_fn, l->function)(ta ? 'T' : 'N', tb ? 'T' : 'N', g->M, g->N,
                                                      g->K, 1.0f, g->a.p, ld_of(g->a), g->b.p,
                                                      ld_of(g->b), beta, g->c, g->ldc);
    else CALL(dnnl_fn, l->function)(ta ? 'T' : 'N', tb ? 'T' : 'N', g->M, g->N, g->K, 1.0f, g->a.p,
                                    ld_of(g->a), g->b.p, ld_of(g->b), beta, g->c, g->ldc);
}
