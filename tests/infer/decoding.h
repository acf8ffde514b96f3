/* decoding.h - a model with random weights of a type, to be run over a whole text and token by
 * token. */
#ifndef LS_TEST_DECODING_H
#define LS_TEST_DECODING_H

#include "infer/decode.h"
#include "model/fixture.h"

/* The memory of both ways begins as NaN. */
typedef struct decoding {
    ls_model model;
    ls_compute compute;
    float *params;
    void *half;     /* the weights in the type, if it has 16 bits */
    uint32_t *text; /* the test's own, or NULL */
    ls_infer infer;
    ls_decode decode;
} decoding;

/* d->model is set. cpu: NULL, or the kernels by name. */
static inline void decoding_open(decoding *d, ls_dtype type, const char *cpu, int threads,
                                 uint64_t seed) {
    fix_compute(&d->compute, &d->model, threads, cpu);
    d->params = fix_params(&d->model, seed);
    const void *params = d->params;
    if (type != LS_F32) {
        d->half = malloc(d->model.nfloats * 2);
        d->compute.k->narrow(type, d->model.nfloats, d->params, d->half);
        params = d->half;
    }
    size_t infer = ls_infer_nbytes(&d->model, type, 1) / sizeof(float) + 1;
    size_t decode = ls_decode_nbytes(&d->model, type) / sizeof(float) + 1;
    d->infer = (ls_infer){.model = &d->model,
                          .compute = &d->compute,
                          .dtype = type,
                          .params = params,
                          .memory = fix_nans(infer),
                          .n = 1};
    d->decode = (ls_decode){.model = &d->model,
                            .compute = &d->compute,
                            .dtype = type,
                            .params = params,
                            .memory = fix_nans(decode)};
}

static inline void decoding_close(decoding *d) {
    free(d->infer.memory), free(d->decode.memory);
    free(d->params), free(d->half), free(d->text);
    ls_compute_close(&d->compute);
    ls_model_free(&d->model);
}

#endif
