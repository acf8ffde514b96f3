/* stored.c - see stored.h. */
#include "tensor/stored.h"

#include <assert.h>
#include <string.h>

static const struct {
    int elements, nbytes; /* of a block */
} sizes[LS_NBLOCK_TYPES] = {
    [LS_BLOCK_F32] = {1, 4},
    [LS_BLOCK_F16] = {1, 2},
    [LS_BLOCK_BF16] = {1, 2},
    [LS_BLOCK_Q8_0] = {32, 34},
    [LS_BLOCK_Q4_0] = {32, 18},
    [LS_BLOCK_Q4_1] = {32, 20},
    [LS_BLOCK_Q5_0] = {32, 22},
    [LS_BLOCK_Q5_1] = {32, 24},
    [LS_BLOCK_Q4_K] = {LS_BLOCK_MOST, 144},
    [LS_BLOCK_Q5_K] = {LS_BLOCK_MOST, 176},
    [LS_BLOCK_Q6_K] = {LS_BLOCK_MOST, 210},
    [LS_BLOCK_Q3_K] = {LS_BLOCK_MOST, 110},
    [LS_BLOCK_Q2_K] = {LS_BLOCK_MOST, 84},
    [LS_BLOCK_IQ4_NL] = {32, 18},
    [LS_BLOCK_IQ4_XS] = {LS_BLOCK_MOST, 136},
};

ls_block_type ls_block_of_dtype(ls_dtype type) {
    assert(type == LS_F32 || type == LS_BF16 || type == LS_F16);
    return type == LS_F32 ? LS_BLOCK_F32 : type == LS_BF16 ? LS_BLOCK_BF16 : LS_BLOCK_F16;
}

int64_t ls_block_elements(ls_block_type t) {
    assert((unsigned)t < LS_NBLOCK_TYPES);
    return sizes[t].elements;
}

size_t ls_block_nbytes(ls_block_type t, int64_t count) {
    assert(count % ls_block_elements(t) == 0);
    return (size_t)(count / sizes[t].elements) * (size_t)sizes[t].nbytes;
}

ls_stored ls_stored_at(ls_stored s, int64_t first) {
    return (ls_stored){.data = (const char *)s.data + ls_block_nbytes(s.type, first),
                       .type = s.type,
                       .strips = first == 0 ? s.strips : NULL,
                       .int8 = s.int8};
}

/* y [n] = elements from `first` on of one block. */
static void read_part(const ls_kernels *k, ls_block_type t, const uint8_t *block, int64_t first,
                      int64_t n, float *y) {
    float whole[LS_BLOCK_MOST];
    k->unpack[t](1, block, whole);
    memcpy(y, whole + first, (size_t)n * sizeof *y);
}

void ls_block_read(const ls_kernels *k, ls_block_type t, const uint8_t *data, int64_t first,
                   int64_t n, float *y) {
    int64_t elements = ls_block_elements(t), nbytes = sizes[t].nbytes, skip = first % elements;
    const uint8_t *at = data + first / elements * nbytes;
    if (n > 0 && skip) {
        int64_t part = n < elements - skip ? n : elements - skip;
        read_part(k, t, at, skip, part, y);
        y += part, n -= part, at += nbytes;
    }
    int64_t whole = n / elements;
    k->unpack[t](whole, at, y);
    n -= whole * elements;
    if (n > 0) read_part(k, t, at + whole * nbytes, 0, n, y + whole * elements);
}

void ls_stored_read(const ls_kernels *k, ls_stored s, int64_t first, int64_t n, float *y) {
    ls_block_read(k, s.type, s.data, first, n, y);
}
