/* json_fuzz.c - JSON text; what is parsed is written, and parsed again. */
#include "base/json.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
    ls_json *j = NULL, *again = NULL;
    ls_error e = {0};
    if (ls_json_parse((const char *)data, nbytes, "it", &j, &e) != LS_OK) {
        FUZZ_CHECK(e.msg[0]);
        return 0;
    }
    ls_buf b = {0};
    ls_json_write(j, 0, &b);
    FUZZ_CHECK(ls_json_parse(b.data, b.len, "what was written", &again, &e) == LS_OK);
    FUZZ_CHECK(ls_json_count(j) == ls_json_count(again));
    ls_json_free(j);
    ls_json_free(again);
    ls_buf_free(&b);
    return 0;
}
