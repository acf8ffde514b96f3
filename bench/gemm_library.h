/* gemm_library.h - the GEMM of another library, if it is installed: the reference in measurements.
 *
 * Libraries are opened on demand, so that nothing depends on them.
 */
#ifndef BENCH_GEMM_LIBRARY_H
#define BENCH_GEMM_LIBRARY_H

#include "tensor/gemm.h"

enum { GEMM_OPENBLAS, GEMM_ONEDNN, GEMM_LIBRARIES };

/* "openblas", "onednn". */
extern const char *const gemm_library_names[GEMM_LIBRARIES];

typedef struct gemm_library {
    const char *name;
    int which;
    bool bf16; /* products in bf16 */
    void *handle, *function;
    char version[64];
} gemm_library;

/* With one thread. LS_EINVAL: it is not installed, and the error names the package; or it has no
 * products in bf16. */
ls_status gemm_library_open(int which, bool bf16, gemm_library *, ls_error *);
void gemm_library_close(gemm_library *);

/* Computes the product of a job whose chains start at 0 or continue from c. Each matrix has a
 * stride of 1 in one direction; in bf16 a and b are in bf16. */
void gemm_library_run(const gemm_library *, const ls_gemm_job *);

#endif
