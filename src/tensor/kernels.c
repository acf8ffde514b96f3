/* kernels.c - chooses the variant for this processor. */
#include "tensor/kernels.h"

#if defined LS_HAVE_AVX2 || defined LS_HAVE_AVX512
#include <cpuid.h>
#endif
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef LS_HAVE_AVX512
#include <sys/syscall.h>
#include <unistd.h>
#endif

typedef struct variant {
    const ls_kernels *k;
    bool (*runs_here)(void);
} variant;

extern const ls_kernels ls_kernels_portable;
static bool always(void) { return true; }

#ifdef LS_HAVE_AVX512
extern const ls_kernels ls_kernels_avx512;
/* gcc and clang check that the system saves the registers, too. */
static bool has_avx512(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
}

/* ---- units that are checked before they are used ---- */

typedef enum unit { ABSENT, FORBIDDEN, WRONG, RUNS } unit;

/* A number of few digits, which may be any bf16's. */
static float number(uint32_t i) { return (float)((int)(i * 2654435761u >> 24) - 128) / 64; }

/* Does a tile have the sums that the portable kernels compute? */
static bool sums_bf16_well(const ls_kernels *k) {
    enum { ROWS = 32, COLUMNS = 48, DEPTH = 2 * LS_SUM_BLOCK + 5, WORDS = 3 * LS_SUM_BLOCK };
    static float a[ROWS * DEPTH], b[DEPTH * COLUMNS], start[COLUMNS] = {0.5f};
    static float packed_a[ROWS * WORDS], packed_b[COLUMNS * WORDS];
    static float got[ROWS * COLUMNS], want[ROWS * COLUMNS];
    const int rows = k->bf16_m, columns = k->bf16_n;
    assert(rows <= ROWS && columns <= COLUMNS);
    for (int i = 0; i < ROWS * DEPTH; i++) a[i] = number((uint32_t)i);
    for (int i = 0; i < DEPTH * COLUMNS; i++) b[i] = number((uint32_t)i + 9999) * 0x1p-9f;
    const ls_kernels *both[] = {&ls_kernels_portable, k};
    float *c[] = {want, got};
    for (int i = 0; i < 2; i++) {
        const ls_kernels *one = both[i];
        int64_t strip = one->bf16_words(DEPTH);
        one->pack_a_bf16(rows, DEPTH, &(ls_gemm_lines){a, false, DEPTH, 1}, packed_a);
        one->pack_b_bf16(DEPTH, columns, &(ls_gemm_lines){b, false, 1, columns}, packed_b);
        for (int j = 0; j < columns; j += one->bf16_n)
            one->bf16_tiles(&(ls_gemm_tiles){.n = rows / one->bf16_m,
                                             .K = DEPTH,
                                             .a = packed_a,
                                             .b = packed_b + j * strip,
                                             .start = start + j,
                                             .c = c[i] + j,
                                             .ldc = columns,
                                             .ahead = &(ls_ahead){0}});
    }
    return memcmp(got, want, sizeof got) == 0;
}

/* ---- pairs of bf16 ---- */

void use_pairs_avx512(ls_kernels *);

static ls_kernels pairs; /* those of AVX-512, but for products in bf16 */
static unit of_pairs;

static void find_pairs(void) {
    if (!has_avx512() || !__builtin_cpu_supports("avx512bf16")) return;
    pairs = ls_kernels_avx512;
    use_pairs_avx512(&pairs);
    of_pairs = sums_bf16_well(&pairs) ? RUNS : WRONG;
}

static bool has_pairs(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_pairs);
    return of_pairs == RUNS;
}
/* VDPBF16PS does two multiply-adds. AMD's processors begin one as often as a multiply-add of f32,
 * Intel's half as often (measured on Zen 4 and on Emerald Rapids: 91 against 178 GFLOP/s a core);
 * others were not measured. */
static bool pairs_are_fast(void) { return has_pairs() && __builtin_cpu_is("amd"); }
static bool pairs_are_slow(void) { return has_pairs() && !__builtin_cpu_is("amd"); }

/* ---- AMX ---- */

void use_amx_avx512(ls_kernels *);

enum { LEAF = 7, AMX = 1 << 22 | 1 << 24 | 1 << 25 }; /* of CPUID; EDX: bf16, tiles, int8 */
enum { ASK_FOR_STATE = 0x1023, TILE_DATA = 18 };      /* of arch_prctl() */

static bool has_unit(void) {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return has_pairs() && __builtin_cpu_supports("avx512vnni") &&
           __get_cpuid_count(LEAF, 0, &a, &b, &c, &d) && (d & AMX) == AMX;
}

/* The system saves a process's tiles if it asks: an old kernel, or a sandbox, may refuse. */
static bool is_permitted(void) { return syscall(SYS_arch_prctl, ASK_FOR_STATE, TILE_DATA) == 0; }

static bool sums_int8_well(const ls_kernels *k) {
    enum { R = 21, V = 16, C = 2 * LS_INT8_GROUP, NBYTES = LS_INT8_GROUP + 2 };
    static uint8_t w[V * C / LS_INT8_GROUP * NBYTES];
    static ls_int8_block x[R * C / LS_INT8_GROUP];
    static float row[C], got[R * V], want[R * V];
    for (uint32_t i = 0; i < sizeof w; i++)
        w[i] = i % NBYTES < 2 ? (uint8_t)(32 * (i % NBYTES)) : (uint8_t)(i * 2654435761u >> 24);
    for (uint32_t r = 0; r < R; r++) {
        for (uint32_t i = 0; i < C; i++) row[i] = number(r * C + i);
        ls_kernels_portable.int8_quantize(C, row, x + r, R);
    }
    ls_int8_job j = {
        .w = {.data = w, .type = LS_BLOCK_Q8_0}, .V = V, .C = C, .R = R, .x = x, .ldy = V};
    j.y = want, ls_kernels_portable.int8_rows(&j);
    j.y = got, k->int8_rows(&j);
    return memcmp(got, want, sizeof got) == 0;
}

static ls_kernels amx; /* those for pairs, but for products in bf16 and of int8 */
static unit of_tiles;

static void find_unit(void) {
    if (!has_unit()) return;
    amx = pairs;
    use_amx_avx512(&amx);
    if (!is_permitted())
        of_tiles = FORBIDDEN;
    else
        of_tiles = sums_bf16_well(&amx) && sums_int8_well(&amx) ? RUNS : WRONG;
}

static bool has_amx(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_unit);
    return of_tiles == RUNS;
}
#endif
#ifdef LS_HAVE_AVX2
extern const ls_kernels ls_kernels_avx2;
/* clang 14's __builtin_cpu_supports() does not know F16C. CPUID is read once, since it is slow in
 * virtual machines. */
static bool has_f16c(void) {
    static atomic_int answer; /* 1 no, 2 yes */
    if (!atomic_load(&answer)) {
        unsigned a = 0, b = 0, c = 0, d = 0;
        atomic_store(&answer, __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C ? 2 : 1);
    }
    return atomic_load(&answer) == 2;
}
static bool has_avx2(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
}
#endif
#ifdef LS_HAVE_NEON
extern const ls_kernels ls_kernels_neon;
#endif

/* The fastest first. */
static const variant variants[] = {
#ifdef LS_HAVE_AVX512
    {&amx, has_amx},
    {&pairs, pairs_are_fast},
    {&ls_kernels_avx512, has_avx512},
    {&pairs, pairs_are_slow},
#endif
#ifdef LS_HAVE_AVX2
    {&ls_kernels_avx2, has_avx2},
#endif
#ifdef LS_HAVE_NEON
    {&ls_kernels_neon, always}, /* every AArch64 has it */
#endif
    {&ls_kernels_portable, always},
};

const ls_kernels *ls_kernels_at(int i) {
    for (size_t v = 0; v < sizeof variants / sizeof *variants; v++)
        if (variants[v].runs_here() && i-- == 0) return variants[v].k;
    return NULL;
}

const ls_kernels *ls_kernels_named(const char *name) {
    const ls_kernels *k = NULL;
    for (int i = 0; (k = ls_kernels_at(i)); i++)
        if (strcmp(k->name, name) == 0) return k;
    return NULL;
}

const char *ls_kernels_unused(void) {
#ifdef LS_HAVE_AVX512
    has_amx();
    if (of_tiles == FORBIDDEN)
        return "the system does not permit this process the processor's matrix unit (AMX): a "
               "kernel before Linux 5.16, a sandbox, or a small sigaltstack()";
    if (of_tiles == WRONG)
        return "the processor's matrix unit (AMX) computes other sums than its description "
               "says";
    if (of_pairs == WRONG)
        return "the processor's instruction for pairs of bf16 (AVX512-BF16) computes other sums "
               "than its description says";
#endif
    return NULL;
}

const char *ls_kernels_why(const ls_kernels *k) {
    const char *forced = getenv("LOCKSTEP_CPU");
    if (forced && *forced) return "LOCKSTEP_CPU names them";
#ifdef LS_HAVE_AVX512
    if (k == &amx) return "the widest, with a matrix unit for products in bf16 and int8";
    if (k == &pairs) return "the widest, with a fast instruction for pairs of bf16";
    if (pairs_are_slow())
        return "the widest; products in bf16 use multiply-adds of f32, since only AMD's "
               "instruction for pairs of bf16 is faster";
#endif
    return k == &ls_kernels_portable ? "this processor has no vectors that others need"
                                     : "the widest that run here";
}

static ls_status fail_unknown(const char *name, ls_error *e) {
    char known[128] = "";
    const ls_kernels *k = NULL;
    for (int i = 0; (k = ls_kernels_at(i)); i++) {
        size_t n = strlen(known);
        snprintf(known + n, sizeof known - n, "%s%s", i ? " or " : "", k->name);
    }
    return ls_fail(e, LS_EINVAL,
                   "LOCKSTEP_CPU: no kernels '%s' on this processor; use %s, or unset it", name,
                   known);
}

ls_status ls_kernels_pick(const ls_kernels **k_p, ls_error *e) {
    const char *forced = getenv("LOCKSTEP_CPU");
    const ls_kernels *k = forced && *forced ? ls_kernels_named(forced) : ls_kernels_at(0);
    if (!k) return fail_unknown(forced, e);
    *k_p = k;
    return LS_OK;
}
