/* safetensors_fuzz.c - a file of tensors: every tensor that it lists can be read. Inputs are whole
 * files, and headers without their length. */
#include "fuzz.h"
#include "weights/safetensors.h"

static void read_file(const uint8_t *data, size_t nbytes) {
    ls_safetensors s;
    ls_error e = {0};
    if (ls_safetensors_open_any(fuzz_file(data, nbytes), &s, &e) != LS_OK) {
        FUZZ_CHECK(e.msg[0]);
        FUZZ_CHECK(ls_safetensors_open(fuzz_file(data, nbytes), &s, &e) != LS_OK);
        return;
    }
    uint32_t sum = 0;
    for (size_t i = 0; i < s.n; i++) {
        const ls_tensor *t = &s.tensors[i];
        FUZZ_CHECK(t->ndims >= 0 && t->ndims <= LS_TENSOR_MAX_DIMS);
        FUZZ_CHECK(ls_safetensors_find(&s, t->name));
        if (t->type == LS_NBLOCK_TYPES) continue;
        for (size_t k = 0; k < ls_tensor_nbytes(t); k++) sum += ((const uint8_t *)t->data)[k];
    }
    FUZZ_CHECK(sum != 1 || s.n);
    ls_safetensors_close(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
    static uint8_t file[8 + 4096 + 64];
    uint64_t n = nbytes;
    read_file(data, nbytes);
    if (nbytes > 4096) return 0;
    memcpy(file, &n, 8);
    memcpy(file + 8, data, nbytes);
    for (size_t i = 0; i <= 64; i += 4) read_file(file, 8 + nbytes + i);
    return 0;
}
