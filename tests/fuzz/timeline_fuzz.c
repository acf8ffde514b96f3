/* timeline_fuzz.c - the file of a timeline: one that can be read can be drawn, compared and
 * written, and is read back. */
#include "fuzz.h"
#include "report/timeline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
    ls_timeline t, again;
    ls_error e = {0};
    if (ls_timeline_parse((const char *)data, nbytes, "it", &t, &e) != LS_OK) {
        FUZZ_CHECK(e.msg[0]);
        return 0;
    }
    ls_buf b = {0}, rest = {0};
    ls_timeline_json(&t, &b);
    FUZZ_CHECK(ls_timeline_parse(b.data, b.len, "what was written", &again, &e) == LS_OK);
    FUZZ_CHECK(t.nevents == again.nevents);
    ls_timeline_svg(&again, &rest);
    ls_timeline_diff(&t, &again, &rest);
    ls_timeline_free(&t);
    ls_timeline_free(&again);
    ls_buf_free(&b);
    ls_buf_free(&rest);
    return 0;
}
