/* mds_fuzz.c - the input is the index.json of an MDS data set, beside real shards. The first byte
 * chooses the data set. Whatever it says, names stay inside of the directory, and samples of a
 * source that opens can be read. Run in the project's directory. */
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "fuzz.h"
#include "source/formats/open.h"
#include "source/source.h"

static char folder[] = "/tmp/lockstep-fuzz-XXXXXX";

static void remove_folder(void) { ls_file_remove_tree(folder, NULL); }

static void make_sets(void) {
    char line[160];
    FUZZ_CHECK(mkdtemp(folder) && atexit(remove_folder) == 0);
    snprintf(line, sizeof line, "python3 tests/source/write_sets.py %s && cp %s/mds/* %s", folder,
             folder, folder); /* shards outside of the directories, too */
    FUZZ_CHECK(system(line) == 0);
}

/* A name of a shard that leads out of the directory. */
static int leads_out(const char *name) {
    if (name && *name == '/') return 1;
    for (; name; name = strchr(name, '/') ? strchr(name, '/') + 1 : NULL)
        if (strcmp(name, "..") == 0 || strncmp(name, "../", 3) == 0) return 1;
    return 0;
}

static int has_outer_name(const uint8_t *text, size_t nbytes) {
    static const char *const keys[] = {"raw_data", "zip_data"};
    ls_json *j = NULL;
    int found = 0;
    if (ls_json_parse((const char *)text, nbytes, "", &j, NULL) != LS_OK) return 0;
    const ls_json *shards = ls_json_get(j, "shards");
    for (size_t i = 0; ls_json_is_array(shards) && i < ls_json_count(shards); i++)
        for (int k = 0; k < 2; k++)
            found |= leads_out(
                ls_json_text(ls_json_get(ls_json_get(ls_json_at(shards, i), keys[k]), "basename")));
    ls_json_free(j);
    return found;
}

static void read_all(const char *path, int skip_damaged, int must_fail) {
    ls_error e = {0};
    ls_source *s = NULL;
    ls_source_options o = {.format = "mds", .skip_damaged = skip_damaged};
    if (ls_source_open(path, &o, &s, &e) != LS_OK) {
        FUZZ_CHECK(e.msg[0] && !s);
        return;
    }
    FUZZ_CHECK(!must_fail && s->nfields >= 1 && s->nfields <= LS_SOURCE_FIELDS && s->count >= 1);
    char *sample = s->nbytes < 1 << 20 ? malloc(s->nbytes) : NULL;
    for (uint64_t i = 0; sample && i < s->count; i++)
        FUZZ_CHECK(s->read(s, i, sample, &e) == LS_OK || (s->decodes && !skip_damaged));
    free(sample);
    ls_source_close(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
    static const char *const sets[] = {"mds", "lists", "mdsphotos", "badphotos"};
    static int made;
    char path[96];
    if (nbytes == 0) return 0;
    if (!made++) make_sets();
    snprintf(path, sizeof path, "%s/%s/index.json", folder, sets[data[0] % 4]);
    FILE *f = fopen(path, "wb");
    FUZZ_CHECK(f && fwrite(data + 1, 1, nbytes - 1, f) == nbytes - 1 && fclose(f) == 0);
    int must_fail = has_outer_name(data + 1, nbytes - 1);
    ls_log_hold(true);
    for (int skip = 0; skip < 2; skip++) read_all(path, skip, must_fail);
    ls_log_release(false);
    return 0;
}
