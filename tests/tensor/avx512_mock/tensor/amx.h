/* amx.h - what src/tensor/amx.h has, in plain C: the compiler finds this header first. It does what
 * the Software Developer's Manual says of each instruction, and a tile that is used outside
 * ls_amx_begin() and ls_amx_end() ends the program, as it would on a processor. */
#ifndef LS_TEST_AMX_H
#define LS_TEST_AMX_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/bf16_chain.h"

typedef struct ls_amx_config {
    uint8_t palette;
    uint16_t row_nbytes[16];
    uint8_t rows[16];
} ls_amx_config;

typedef struct mock_tiles {
    ls_amx_config config; /* palette 0: tiles may not be used */
    uint32_t words[8][16][16];
} mock_tiles;
__attribute__((weak)) _Thread_local mock_tiles mock_amx;

static inline ls_amx_config ls_amx_whole_tiles(void) {
    ls_amx_config c = {.palette = 1};
    for (int i = 0; i < 8; i++) c.rows[i] = 16, c.row_nbytes[i] = 64;
    return c;
}
static inline void ls_amx_begin(ls_amx_config c) {
    memset(&mock_amx, 0, sizeof mock_amx);
    mock_amx.config = c;
}
static inline void ls_amx_end(void) { memset(&mock_amx, 0, sizeof mock_amx); }

static inline int mock_amx_rows(int tile) {
    if (mock_amx.config.palette == 0) abort();
    return mock_amx.config.rows[tile];
}
static inline int mock_amx_words(int tile) { return mock_amx.config.row_nbytes[tile] / 4; }
static inline void mock_amx_zero(int tile) {
    (void)mock_amx_rows(tile);
    memset(mock_amx.words[tile], 0, sizeof mock_amx.words[tile]);
}
static inline void mock_amx_load(int tile, const void *p, int64_t stride) {
    mock_amx_zero(tile);
    for (int i = 0; i < mock_amx_rows(tile); i++)
        memcpy(mock_amx.words[tile][i], (const char *)p + i * stride,
               4u * (size_t)mock_amx_words(tile));
}
static inline void mock_amx_store(int tile, void *p, int64_t stride) {
    for (int i = 0; i < mock_amx_rows(tile); i++)
        memcpy((char *)p + i * stride, mock_amx.words[tile][i], 4u * (size_t)mock_amx_words(tile));
}
/* c = a . b of these tiles fits. */
static inline void mock_amx_fit(int c, int a, int b) {
    bool fits = mock_amx_rows(a) == mock_amx_rows(c) && mock_amx_words(a) == mock_amx_rows(b) &&
                mock_amx_words(b) == mock_amx_words(c);
    if (!fits) abort();
}
static inline float mock_amx_half(uint32_t word, int upper) {
    return f32_of_u32(upper ? word & 0xffff0000u : word << 16);
}
static inline void mock_amx_bf16(int c, int a, int b) {
    mock_amx_fit(c, a, b);
    for (int m = 0; m < mock_amx_rows(c); m++)
        for (int n = 0; n < mock_amx_words(c); n++) {
            float chains[2] = {0, 0};
            for (int k = 0; k < mock_amx_rows(b); k++)
                for (int half = 0; half < 2; half++)
                    chains[half] =
                        chain_step(mock_amx_half(mock_amx.words[a][m][k], half),
                                   mock_amx_half(mock_amx.words[b][k][n], half), chains[half]);
            float sum = flushed_sum(chains[0], chains[1]);
            uint32_t *to = &mock_amx.words[c][m][n];
            *to = u32_of_f32(flushed_sum(f32_of_u32(*to), sum));
        }
}
/* Signed bytes of a times unsigned ones of b. */
static inline void mock_amx_int8(int c, int a, int b) {
    mock_amx_fit(c, a, b);
    for (int m = 0; m < mock_amx_rows(c); m++)
        for (int n = 0; n < mock_amx_words(c); n++)
            for (int k = 0; k < mock_amx_rows(b); k++)
                for (int i = 0; i < 4; i++) {
                    int x = (int8_t)(uint8_t)(mock_amx.words[a][m][k] >> 8 * i);
                    int w = (uint8_t)(mock_amx.words[b][k][n] >> 8 * i);
                    mock_amx.words[c][m][n] += (uint32_t)(x * w);
                }
}

#define LS_AMX_LOAD(tile, p, stride)  mock_amx_load(tile, p, stride)
#define LS_AMX_STORE(tile, p, stride) mock_amx_store(tile, p, stride)
#define LS_AMX_ZERO(tile)             mock_amx_zero(tile)
#define LS_AMX_BF16(c, a, b)          mock_amx_bf16(c, a, b)
#define LS_AMX_INT8(c, a, b)          mock_amx_int8(c, a, b)

#endif
