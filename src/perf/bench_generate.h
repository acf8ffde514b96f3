/* bench_generate.h - measures how fast a model generates tokens on this machine, beside the speed
 * at which memory delivers its weights.
 */
#ifndef LS_PERF_BENCH_GENERATE_H
#define LS_PERF_BENCH_GENERATE_H

#include "base/error.h"
#include "tensor/dtype.h"

typedef struct ls_bench_generate_request {
    const char *config; /* the file, or a published model */
    const char *const *set;
    int nset; /* keys of the config, as KEY=VALUE */
    int64_t nprompt, ntokens;
    const char *device; /* NULL: cores */
} ls_bench_generate_request;

typedef struct ls_bench_generate {
    size_t parameters;
    ls_dtype type;
    int nthreads;
    int64_t nprompt;  /* tokens, as far as the context has room */
    char stored[128]; /* types of a published model's weights; "": random weights */
    double prompt_s, token_s, decode_s; /* decode_s: without sampling the token */
    char device[96];                    /* its name; "": cores, of which alone the next are known */
    double weights_nbytes, cache_nbytes;
    double read_per_s; /* bytes of memory read per second */
} ls_bench_generate;

ls_status ls_bench_generate_run(const ls_bench_generate_request *, ls_bench_generate *f_p,
                                ls_error *);

#endif
