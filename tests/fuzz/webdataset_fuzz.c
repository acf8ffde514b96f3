/* webdataset_fuzz.c - tar archives from arbitrary bytes: opened strictly, and with damaged records
 * left out. Every sample of the index is read. */
#include "base/log.h"
#include "fuzz.h"
#include "source/formats/open.h"
#include "source/source.h"

static uint64_t use(const char *path, bool skip) {
    ls_source_options o = {
        .format = "webdataset", .cache = "/tmp", .skip_damaged = skip, .most_nbytes = 1 << 24};
    ls_source *s = NULL;
    ls_error e = {0};
    if (ls_source_open(path, &o, &s, &e) != LS_OK) {
        FUZZ_CHECK(e.msg[0] && e.code == LS_EINVAL);
        return 0;
    }
    uint64_t count = s->count;
    FUZZ_CHECK(count > 0 && (skip || s->damage.n == 0));
    if (s->nbytes > 1 << 22) count = 1;
    uint8_t *sample = malloc(s->nbytes);
    FUZZ_CHECK(sample);
    for (uint64_t i = 0; i < count; i++) {
        ls_status got = s->read(s, i, sample, &e);
        FUZZ_CHECK(got == LS_OK || (!skip && got == LS_EINVAL && e.msg[0]));
    }
    free(sample);
    ls_source_close(s);
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
    const char *path = fuzz_file(data, nbytes);
    ls_log_hold(true);
    uint64_t strict = use(path, false), lenient = use(path, true);
    ls_log_release(false);
    FUZZ_CHECK(lenient <= strict || strict == 0);
    return 0;
}
