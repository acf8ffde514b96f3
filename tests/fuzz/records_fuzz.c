/* records_fuzz.c - files of records: CSV, JSON lines, TFRecord, and MDS, where the input is a
 * shard. The first byte chooses. Every sample of a source that opens can be read, but an image's
 * pixels may be damaged, unless damaged records are left out. */
#include "base/crc32c.h"
#include "fuzz.h"
#include "source/formats/open.h"
#include "source/source.h"

static void read_all(const char *path, const char *format, int skip_damaged) {
    ls_error e = {0};
    ls_source *s = NULL;
    ls_source_options o = {.format = format, .skip_damaged = skip_damaged};
    if (ls_source_open(path, &o, &s, &e) != LS_OK) {
        FUZZ_CHECK(e.msg[0] && !s);
        return;
    }
    FUZZ_CHECK(s->nfields >= 1 && s->nfields <= LS_SOURCE_FIELDS && s->count >= 1);
    FUZZ_CHECK(skip_damaged || s->damage.n == 0);
    char *sample = s->nbytes < 1 << 20 ? malloc(s->nbytes) : NULL;
    for (uint64_t i = 0; sample && i < s->count && i < 64; i++) {
        ls_status status = s->read(s, i, sample, &e);
        FUZZ_CHECK(status == LS_OK || (s->decodes && !skip_damaged));
    }
    free(sample);
    ls_source_close(s);
}

static uint32_t mask(uint32_t c) { return ((c >> 15) | (c << 17)) + 0xa282ead8u; }

/* The input as the message of a record whose checksums are right, twice. */
static void read_message(const uint8_t *data, size_t nbytes) {
    static uint8_t file[2 * (16 + 4096)];
    uint64_t length = nbytes;
    uint32_t crc = mask(ls_crc32c(&length, 8));
    if (nbytes > 4096) return;
    memcpy(file, &length, 8);
    memcpy(file + 8, &crc, 4);
    memcpy(file + 12, data, nbytes);
    crc = mask(ls_crc32c(data, nbytes));
    memcpy(file + 12 + nbytes, &crc, 4);
    memcpy(file + 16 + nbytes, file, 16 + nbytes);
    read_all(fuzz_file(file, 2 * (16 + nbytes)), "tfrecord", 0);
}

static char folder[] = "/tmp/lockstep-fuzz-XXXXXX";

static void remove_shard_folder(void) { rmdir(folder); }

/* The input as a shard beside an index.json that knows its size and the samples that it claims. */
static void read_shard(const uint8_t *data, size_t nbytes) {
    static char shard[64], index[64];
    static int made;
    if (!made++) {
        FUZZ_CHECK(mkdtemp(folder) && atexit(remove_shard_folder) == 0);
        snprintf(shard, sizeof shard, "%s/s", folder);
        snprintf(index, sizeof index, "%s/index.json", folder);
    }
    uint32_t n = 0;
    if (nbytes >= 4) memcpy(&n, data, 4);
    FILE *f = fopen(shard, "wb"), *g = fopen(index, "w");
    FUZZ_CHECK(f && g && fwrite(data, 1, nbytes, f) == nbytes && fclose(f) == 0);
    fprintf(
        g,
        "{\"version\":2,\"shards\":[{\"format\":\"mds\",\"column_names\":[\"a\",\"b\",\"c\",\"d\","
        "\"e\"],\"column_encodings\":[\"int\",\"ndarray\",\"str\",\"pil\",\"png\"],"
        "\"column_sizes\":[8,null,null,null,null],\"samples\":%u,"
        "\"raw_data\":{\"basename\":\"s\",\"bytes\":%zu}}]}",
        n, nbytes);
    FUZZ_CHECK(fclose(g) == 0);
    for (int skip = 0; skip < 2; skip++) read_all(folder, "mds", skip);
    unlink(shard);
    unlink(index);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
    static const char *const formats[] = {"csv", "jsonl", "tfrecord"};
    if (nbytes == 0) return 0;
    int which = data[0] % 5;
    data++;
    nbytes--;
    for (int skip = 0; which < 3 && skip < 2; skip++)
        read_all(fuzz_file(data, nbytes), formats[which], skip);
    if (which == 3) read_message(data, nbytes);
    if (which == 4) read_shard(data, nbytes);
    return 0;
}
