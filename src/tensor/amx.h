/* amx.h - Intel's matrix unit (AMX): eight tiles of 16 rows of 64 bytes, of which one instruction
 * multiplies two and adds to a third.
 *
 * In assembly of our own: the intrinsics of GCC 12 say neither that loading and storing a tile read
 * and write memory nor what the configuration reads. Numbers of tiles are literals. Intel 64 and
 * IA-32 Architectures Software Developer's Manual, volume 1, chapter 18. tests/tensor/avx512_mock
 * has the same in plain C.
 */
#ifndef LS_TENSOR_AMX_H
#define LS_TENSOR_AMX_H

#include <stdint.h>

typedef struct ls_amx_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_nbytes[16];
    uint8_t rows[16];
} ls_amx_config;

/* All tiles have 16 rows of 64 bytes. */
static inline ls_amx_config ls_amx_whole_tiles(void) {
    ls_amx_config c = {.palette = 1};
    for (int i = 0; i < 8; i++) c.rows[i] = 16, c.row_nbytes[i] = 64;
    return c;
}
static inline void ls_amx_begin(ls_amx_config c) {
    __asm__ volatile("ldtilecfg %0" ::"m"(c) : "memory");
}
/* The system saves no tiles at a switch of threads any more. */
static inline void ls_amx_end(void) { __asm__ volatile("tilerelease" ::: "memory"); }

/* stride: bytes between rows. */
#define LS_AMX_LOAD(tile, p, stride)                                                               \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile ::"r"((const void *)(p)),                  \
                     "r"((int64_t)(stride))                                                        \
                     : "memory")
#define LS_AMX_STORE(tile, p, stride)                                                              \
    __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)" ::"r"((void *)(p)),                    \
                     "r"((int64_t)(stride))                                                        \
                     : "memory")
#define LS_AMX_ZERO(tile) __asm__ volatile("tilezero %%tmm" #tile ::: "memory")
/* c [16, 16] f32 += a [16, 32] . b [32, 16], in bf16: rows of b are pairs of values of k. */
#define LS_AMX_BF16(c, a, b)                                                                       \
    __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #c ::: "memory")
/* c [16, 16] int32 += a [16, 64] . b [64, 16], of signed and of unsigned bytes: rows of b are four
 * values of k each. Where tiles have fewer rows or bytes, so has the product. */
#define LS_AMX_INT8(c, a, b)                                                                       \
    __asm__ volatile("tdpbsud %%tmm" #b ", %%tmm" #a ", %%tmm" #c ::: "memory")

#endif
