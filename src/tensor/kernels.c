/* kernels.c - which variant runs here. */
#include "tensor/kernels.h"

#ifdef LS_HAVE_AVX2
#include <cpuid.h>
#endif
#include <stdlib.h>
#include <string.h>

extern const ls_kernels ls_kernels_portable;
#ifdef LS_HAVE_AVX2
extern const ls_kernels ls_kernels_avx2;
#endif

/* The fastest first. */
static const ls_kernels *const variants[] = {
#ifdef LS_HAVE_AVX2
    &ls_kernels_avx2,
#endif
    &ls_kernels_portable,
};

#ifdef LS_HAVE_AVX2
/* clang 14 has no name for it in __builtin_cpu_supports(). */
static int has_f16c(void) {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
}
#endif

static int runs_here(const ls_kernels *k) {
#ifdef LS_HAVE_AVX2
    if (k == &ls_kernels_avx2)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
#endif
    return k == &ls_kernels_portable;
}

const ls_kernels *ls_kernels_named(const char *name) {
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
        if (strcmp(variants[i]->name, name) == 0 && runs_here(variants[i])) return variants[i];
    return NULL;
}

ls_status ls_kernels_pick(const ls_kernels **k_p, ls_error *e) {
    const char *forced = getenv("LOCKSTEP_CPU");
    if (forced && *forced) {
        const ls_kernels *k = ls_kernels_named(forced);
        if (!k)
            return ls_fail(e, LS_EINVAL,
                           "LOCKSTEP_CPU: no kernels '%s' on this processor; use portable or avx2, "
                           "or unset it",
                           forced);
        *k_p = k;
        return LS_OK;
    }
    size_t i = 0;
    while (!runs_here(variants[i])) i++;
    *k_p = variants[i];
    return LS_OK;
}
