/* amx.h - what src/tensor/amx.h has, in plain C: the compiler finds this header first. It does what
 * the Software Developer's Manual says of each instruction, and a tile that is used outside
 * ls_amx_begin() and ls_amx_end() ends the program, as it would on a processor. */
#ifndef LS_TEST_AMX_H
#define LS_TEST_AMX_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/bf16_chain.h"

typedef struct mock_tiles {
    int begun;
    uint32_t words[8][16][16];
} mock_tiles;
__attribute__((weak)) _Thread_local mock_tiles mock_amx;

static inline void ls_amx_begin(void) {
    memset(&mock_amx, 0, sizeof mock_amx);
    mock_amx.begun = 1;
}
static inline void ls_amx_end(void) { memset(&mock_amx, 0, sizeof mock_amx); }

static inline void mock_amx_begun(void) {
    if (!mock_amx.begun) abort();
}
static inline void mock_amx_load(int tile, const void *p, int64_t stride) {
    mock_amx_begun();
    for (int i = 0; i < 16; i++) memcpy(mock_amx.words[tile][i], (const char *)p + i * stride, 64);
}
static inline void mock_amx_store(int tile, void *p, int64_t stride) {
    mock_amx_begun();
    for (int i = 0; i < 16; i++) memcpy((char *)p + i * stride, mock_amx.words[tile][i], 64);
}
static inline void mock_amx_zero(int tile) {
    mock_amx_begun();
    memset(mock_amx.words[tile], 0, sizeof mock_amx.words[tile]);
}
static inline float mock_amx_half(uint32_t word, int upper) {
    return f32_of_u32(upper ? word & 0xffff0000u : word << 16);
}
static inline void mock_amx_bf16(int c, int a, int b) {
    mock_amx_begun();
    for (int m = 0; m < 16; m++)
        for (int n = 0; n < 16; n++) {
            float chains[2] = {0, 0};
            for (int k = 0; k < 16; k++)
                for (int half = 0; half < 2; half++)
                    chains[half] =
                        chain_step(mock_amx_half(mock_amx.words[a][m][k], half),
                                   mock_amx_half(mock_amx.words[b][k][n], half), chains[half]);
            float sum = flushed_sum(chains[0], chains[1]);
            uint32_t *to = &mock_amx.words[c][m][n];
            *to = u32_of_f32(flushed_sum(f32_of_u32(*to), sum));
        }
}

#define LS_AMX_LOAD(tile, p, stride)  mock_amx_load(tile, p, stride)
#define LS_AMX_STORE(tile, p, stride) mock_amx_store(tile, p, stride)
#define LS_AMX_ZERO(tile)             mock_amx_zero(tile)
#define LS_AMX_BF16(c, a, b)          mock_amx_bf16(c, a, b)

#endif
