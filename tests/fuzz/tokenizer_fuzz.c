/* tokenizer_fuzz.c - a tokenizer.json. */
#include "data/tokenizer.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
    static const uint8_t text[] = "low lower lowest, 3 times";
    ls_tokenizer *t = NULL;
    ls_error e = {0};
    if (ls_tokenizer_parse((const char *)data, nbytes, "it", &t, &e) != LS_OK) {
        FUZZ_CHECK(e.msg[0]);
        return 0;
    }
    ls_token_list list = {0};
    size_t total = 0;
    FUZZ_CHECK(ls_tokenizer_encode(t, text, sizeof text - 1, "text", &list, &e) == LS_OK);
    for (size_t i = 0; i < list.n; i++) {
        size_t some = 0;
        FUZZ_CHECK(list.ids[i] < ls_tokenizer_vocab(t));
        ls_tokenizer_bytes(t, list.ids[i], &some);
        total += some;
    }
    FUZZ_CHECK(total == sizeof text - 1);
    free(list.ids);
    ls_tokenizer_free(t);
    return 0;
}
