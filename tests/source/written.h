/* written.h - files that a Python program writes for a test, and their samples. */
#ifndef LS_TEST_WRITTEN_H
#define LS_TEST_WRITTEN_H

#include "folder.h"
#include "source/formats/open.h"
#include "source/source.h"
#include "test.h"

/* Runs a Python program in the test's directory. */
static inline void run_python(const char *program) {
    char script[128];
    snprintf(script, sizeof script, "cd '%s' && python3 -", folder);
    FILE *f = popen(script, "w");
    assert_non_null(f);
    assert_true(fputs(program, f) >= 0);
    assert_int_equal(pclose(f), 0);
}

/* The path of a file in the test's directory, valid until the next but three calls. */
static inline const char *path_of(const char *name) {
    static char paths[4][128];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static inline const char *write_bytes(const char *name, const void *data, size_t nbytes) {
    const char *path = path_of(name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, nbytes, f), nbytes);
    assert_int_equal(fclose(f), 0);
    return path;
}

static inline const char *write_text(const char *name, const char *text) {
    return write_bytes(name, text, strlen(text));
}

static inline ls_source *open_source(const char *paths) {
    ls_error e = {0};
    ls_source *s = NULL;
    assert_ls_ok(ls_source_open(paths, NULL, &s, &e), e);
    return s;
}

static inline const ls_field *field_of(const ls_source *s, const char *name) {
    for (int i = 0; i < s->nfields; i++)
        if (strcmp(s->fields[i].name, name) == 0) return &s->fields[i];
    print_error("there is no field '%s'\n", name);
    fail();
    return NULL;
}

/* Value k of a field of sample i, as a double. */
static inline double value_of(const ls_source *s, uint64_t i, const char *name, size_t k) {
    ls_error e = {0};
    const ls_field *f = field_of(s, name);
    char *sample = ls_alloc(s->nbytes);
    assert_ls_ok(s->read(s, i, sample, &e), e);
    const char *at = sample + f->offset;
    double value = 0;
    assert_in_range(k * ls_dtype_size(f->type), 0, f->nbytes - 1);
    switch (f->type) {
    case LS_I32: value = ((const int32_t *)(const void *)at)[k]; break;
    case LS_I64: value = (double)((const int64_t *)(const void *)at)[k]; break;
    case LS_F32: value = (double)((const float *)(const void *)at)[k]; break;
    case LS_F64: value = ((const double *)(const void *)at)[k]; break;
    case LS_U8: value = ((const uint8_t *)(const void *)at)[k]; break;
    default: fail();
    }
    free(sample);
    return value;
}

/* Opening must fail with this text in the message. */
static inline void assert_refused(const char *paths, const char *text) {
    ls_error e;
    ls_source *s = NULL;
    assert_ls_fails(ls_source_open(paths, NULL, &s, &e), LS_EINVAL, text, e);
    assert_null(s);
}

/* With skip_damaged, n samples are left and ndamaged are not. */
static inline void assert_skips(const char *paths, uint64_t n, uint64_t ndamaged) {
    ls_error e = {0};
    ls_source *s = NULL;
    ls_source_options o = {.skip_damaged = true};
    assert_ls_ok(ls_source_open(paths, &o, &s, &e), e);
    assert_int_equal(s->count, n);
    assert_int_equal(s->damage.n, ndamaged);
    char *sample = ls_alloc(s->nbytes);
    for (uint64_t i = 0; i < n; i++) assert_ls_ok(s->read(s, i, sample, &e), e);
    free(sample);
    ls_source_close(s);
}

#endif
