/* samples.h - for tests of readers: files in a temporary directory, packed or not, and sources over
 * them. Paths begin with "@", which stands for the directory. */
#ifndef LS_TEST_SAMPLES_H
#define LS_TEST_SAMPLES_H

#include "folder.h"
#include "source/formats/open.h"
#include "source/source.h"
#include "test.h"

/* A set-up: the directory, with the sets of write_sets.py. */
static inline int write_sets(void **state) {
    if (make_folder(state) != 0) return -1;
    char line[256];
    snprintf(line, sizeof line, "python3 tests/source/write_sets.py %s", folder);
    return system(line) == 0 ? 0 : -1;
}

/* The caller frees it. */
static inline char *paths_of(const char *paths) {
    ls_buf b = {0};
    for (const char *s = paths; *s; s++) {
        if (*s == '@')
            ls_buf_printf(&b, "%s/", folder);
        else
            ls_buf_append(&b, s, 1);
    }
    return b.data;
}

static inline void put_file(const char *name, const void *data, size_t nbytes) {
    char *path = paths_of(name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, nbytes, f), nbytes);
    assert_int_equal(fclose(f), 0);
    free(path);
}

/* Runs a shell command in the directory. */
static inline void in_folder(const char *command) {
    char line[1024];
    snprintf(line, sizeof line, "cd %s && %s", folder, command);
    if (system(line) != 0) fail_msg("%s", line);
}

static inline ls_status open_source(const char *paths, const ls_source_options *options,
                                    ls_source **s_p, ls_error *e) {
    char *all = paths_of(paths);
    ls_source_options o = options ? *options : (ls_source_options){0};
    char *labels = o.labels ? paths_of(o.labels) : NULL;
    o.labels = labels;
    o.cache = folder;
    ls_status s = ls_source_open(all, &o, s_p, e);
    free(all);
    free(labels);
    return s;
}

static inline ls_source *opened(const char *paths, const ls_source_options *options) {
    ls_source *s = NULL;
    ls_error e = {0};
    assert_ls_ok(open_source(paths, options, &s, &e), e);
    return s;
}

static inline void refuses(const char *paths, const ls_source_options *options, const char *says) {
    ls_source *s = NULL;
    ls_error e = {0};
    assert_ls_fails(open_source(paths, options, &s, &e), LS_EINVAL, says, e);
    assert_null(s);
}

/* Reads sample i; the caller frees it. */
static inline uint8_t *sample_of(const ls_source *s, uint64_t i) {
    uint8_t *sample = ls_alloc(s->nbytes);
    ls_error e = {0};
    assert_ls_ok(s->read(s, i, sample, &e), e);
    return sample;
}

static inline bool has_shape(const ls_field *f, const char *name, ls_dtype type, int ndims,
                             const int64_t *dims) {
    bool same = strcmp(f->name, name) == 0 && f->type == type && f->ndims == ndims;
    for (int i = 0; same && i < ndims; i++) same = f->dims[i] == dims[i];
    return same && f->offset % LS_FIELD_ALIGN == 0;
}

#endif
