/* gguf_bytes.h - the bytes of a GGUF file, laid out by hand: independent of gguf_write.h, and able
 * to be wrong in any place. */
#ifndef LS_TEST_GGUF_BYTES_H
#define LS_TEST_GGUF_BYTES_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

/* The numbers of kinds of values. */
enum { U8, I8, U16, I16, U32, I32, F32, BOOL, TEXT, ARRAY, U64, I64, F64 };

static inline void put32(ls_buf *b, uint32_t v) { ls_buf_append(b, &v, 4); }
static inline void put64(ls_buf *b, uint64_t v) { ls_buf_append(b, &v, 8); }
static inline void put_float(ls_buf *b, float v) { ls_buf_append(b, &v, 4); }
static inline void put_bytes(ls_buf *b, const char *text, size_t n) {
    put64(b, n);
    ls_buf_append(b, text, n);
}
static inline void put_name(ls_buf *b, const char *text) { put_bytes(b, text, strlen(text)); }

static inline void put_header(ls_buf *b, uint32_t version, uint64_t ntensors, uint64_t nkeys) {
    ls_buf_append(b, "GGUF", 4);
    put32(b, version);
    put64(b, ntensors);
    put64(b, nkeys);
}
static inline void put_key(ls_buf *b, const char *key, uint32_t kind) {
    put_name(b, key);
    put32(b, kind);
}
static inline void put_key_u32(ls_buf *b, const char *key, uint32_t value) {
    put_key(b, key, U32);
    put32(b, value);
}
static inline void put_key_f32(ls_buf *b, const char *key, float value) {
    put_key(b, key, F32);
    put_float(b, value);
}
static inline void put_key_text(ls_buf *b, const char *key, const char *value) {
    put_key(b, key, TEXT);
    put_name(b, value);
}
/* Dims: the first is that of adjacent elements. */
static inline void put_tensor(ls_buf *b, const char *name, int ndims, const uint64_t *dims,
                              uint32_t type, uint64_t offset) {
    put_name(b, name);
    put32(b, (uint32_t)ndims);
    for (int i = 0; i < ndims; i++) put64(b, dims[i]);
    put32(b, type);
    put64(b, offset);
}
static inline void pad_to(ls_buf *b, size_t multiple) {
    while (b->len % multiple) ls_buf_append(b, "", 1);
}

/* Not ls_file_write(): none of these files must survive a crash. */
static inline void write_bytes(const char *path, const void *bytes, size_t nbytes) {
    unlink(path);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, nbytes, f), nbytes);
    assert_int_equal(fclose(f), 0);
}

#endif
