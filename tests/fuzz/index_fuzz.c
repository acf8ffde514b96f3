/* index_fuzz.c - forged indexes in the cache: the index of a real data set whose bytes the input
 * changes, with the right checksum. The first byte chooses the data set, the second cuts off the
 * end; then an offset and a value for each byte that changes. Whatever the index says, reading
 * stays within the files. Run in the project's directory. */
#include <dirent.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "fuzz.h"
#include "source/formats/open.h"
#include "source/source.h"

enum { HEAD = 56, NBYTES = 32, HASH = 40 };

static struct set {
    const char *paths;
    int skip_damaged;
    char cache[64], index[160];
    ls_buf good;
} sets[] = {{.paths = "table.csv"},
            {.paths = "table.csv.gz"},
            {.paths = "bad.csv", .skip_damaged = 1},
            {.paths = "lines.jsonl"},
            {.paths = "all.tfrecord"},
            {.paths = "bad.tfrecord", .skip_damaged = 1},
            {.paths = "mds"},
            {.paths = "all.tar"},
            {.paths = "bad.tar", .skip_damaged = 1},
            {.paths = "tree"},
            {.paths = "badtree", .skip_damaged = 1},
            {.paths = "x.npy"},
            {.paths = "images.tfrecord"},
            {.paths = "badphotos", .skip_damaged = 1},
            {.paths = "lists.csv"},
            {.paths = "lists.jsonl"},
            {.paths = "lists.tfrecord"},
            {.paths = "lists"}};
enum { NSETS = sizeof sets / sizeof *sets };

static char folder[] = "/tmp/lockstep-fuzz-XXXXXX";

static void remove_folder(void) { ls_file_remove_tree(folder, NULL); }

static ls_status open_set(const struct set *set, ls_source **s_p, ls_error *e) {
    ls_source_options o = {
        .cache = set->cache, .index_nbytes = 1, .skip_damaged = set->skip_damaged};
    char path[64];
    snprintf(path, sizeof path, "%s/%s", folder, set->paths);
    return ls_source_open(path, &o, s_p, e);
}

static void find_index(struct set *set) {
    char dir[96];
    snprintf(dir, sizeof dir, "%s/index", set->cache);
    DIR *d = opendir(dir);
    FUZZ_CHECK(d);
    for (struct dirent *f; (f = readdir(d));)
        if (strlen(f->d_name) == 32)
            snprintf(set->index, sizeof set->index, "%s/%.32s", dir, f->d_name);
    closedir(d);
    FUZZ_CHECK(set->index[0] && ls_file_read(set->index, 1 << 20, &set->good, NULL) == LS_OK);
}

static void make_sets(void) {
    char line[160];
    FUZZ_CHECK(mkdtemp(folder) && atexit(remove_folder) == 0);
    snprintf(line, sizeof line, "python3 tests/source/write_sets.py %s && sleep 0.1", folder);
    FUZZ_CHECK(system(line) == 0);
    for (int i = 0; i < NSETS; i++) {
        ls_source *s = NULL;
        ls_error e;
        snprintf(sets[i].cache, sizeof sets[i].cache, "%s/cache%d", folder, i);
        FUZZ_CHECK(open_set(&sets[i], &s, &e) == LS_OK && s->index_use == LS_INDEX_MADE);
        ls_source_close(s);
        find_index(&sets[i]);
    }
}

static void forge(const struct set *set, const uint8_t *data, size_t nbytes) {
    static uint8_t bad[1 << 16];
    size_t body = set->good.len - HEAD;
    FUZZ_CHECK(set->good.len <= sizeof bad);
    memcpy(bad, set->good.data, set->good.len);
    if (data[0] > 200) body -= body * (size_t)(data[0] - 200) / 64;
    for (size_t i = 1; i + 2 < nbytes && body; i += 3)
        bad[HEAD + (data[i] | (size_t)data[i + 1] << 8) % body] = data[i + 2];
    ls_hash hash = ls_hash_bytes(bad + HEAD, body);
    uint64_t n = body;
    memcpy(bad + NBYTES, &n, sizeof n);
    memcpy(bad + HASH, &hash, sizeof hash);
    FILE *f = fopen(set->index, "wb");
    FUZZ_CHECK(f && fwrite(bad, 1, HEAD + body, f) == HEAD + body && fclose(f) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
    static int made;
    ls_source *s = NULL;
    ls_error e = {0};
    if (nbytes < 2) return 0;
    ls_log_hold(true);
    if (!made++) make_sets();
    const struct set *set = &sets[data[0] % NSETS];
    forge(set, data + 1, nbytes - 1);
    ls_status status = open_set(set, &s, &e);
    FUZZ_CHECK(status == LS_OK || e.msg[0]);
    uint8_t *sample = s && s->nbytes < 1 << 22 ? malloc(s->nbytes) : NULL;
    for (uint64_t i = 0; sample && i < s->count && i < 100; i++) {
        e.msg[0] = 0;
        FUZZ_CHECK(s->read(s, i, sample, &e) == LS_OK || e.msg[0]);
    }
    free(sample);
    ls_source_close(s);
    ls_log_release(false);
    return 0;
}
