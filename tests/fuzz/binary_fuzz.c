/* binary_fuzz.c - a file of IDX, .npy, CIFAR-10 or tokens: the first byte chooses the format. */
#include "fuzz.h"
#include "source/formats/open.h"
#include "source/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
    static const char *const formats[] = {"idx", "npy", "cifar", "tokens"};
    if (nbytes == 0) return 0;
    ls_source_options o = {.format = formats[data[0] % 4],
                           .skip_damaged = data[0] & 4,
                           .window = 4,
                           .most_nbytes = 1 << 20};
    ls_source *s = NULL;
    ls_error e = {0};
    if (ls_source_open(fuzz_file(data + 1, nbytes - 1), &o, &s, &e) != LS_OK) {
        FUZZ_CHECK(e.msg[0] && !s);
        return 0;
    }
    uint8_t *sample = ls_alloc(s->nbytes);
    for (uint64_t i = 0; i < s->count && i < 16; i++)
        FUZZ_CHECK(s->read(s, i, sample, &e) == LS_OK || e.msg[0]);
    if (s->count) s->read(s, s->count - 1, sample, &e);
    free(sample);
    ls_source_close(s);
    return 0;
}
