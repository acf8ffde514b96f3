/* gguf_write.h - writes GGUF files of version 3, with the default alignment.
 *
 * First key-value pairs and tensors are listed, in their order in the file; ls_gguf_begin() then
 * creates the file, and the tensors' data follows in pieces of any size:
 *
 *     ls_gguf_writer w = {0};
 *     ls_gguf_put_text(&w, "general.architecture", "llama");
 *     ls_gguf_put_tensor(&w, "token_embd.weight", LS_BLOCK_F32, 2, (int64_t[]){64, 100});
 *     ls_gguf_begin(&w, path, e);
 *     ls_gguf_add(&w, data, nbytes, e); ...
 *     ls_gguf_end(&w, e);
 *
 * Keys, and names of tensors, are distinct and UTF-8. ls_gguf_writer_free() is called in any case;
 * it removes a file that was not ended.
 */
#ifndef LS_WEIGHTS_GGUF_WRITE_H
#define LS_WEIGHTS_GGUF_WRITE_H

#include "base/file.h"
#include "tensor/block.h"
#include "weights/gguf.h"

typedef struct ls_gguf_writer {
    ls_buf values, tensors; /* as in the file */
    uint64_t nvalues, ntensors;
    size_t *ends;    /* [ntensors] of each tensor's bytes, from the beginning of the data */
    size_t data, at; /* bytes of all tensors, padded; and those written */
    size_t next;     /* the tensor that is being written */
    ls_file file;
    bool is_open;
} ls_gguf_writer;

void ls_gguf_put_u32(ls_gguf_writer *, const char *key, uint32_t value);
void ls_gguf_put_f32(ls_gguf_writer *, const char *key, float value);
void ls_gguf_put_bool(ls_gguf_writer *, const char *key, bool value);
void ls_gguf_put_text(ls_gguf_writer *, const char *key, const char *text);
/* Arrays [n]. */
void ls_gguf_put_i32s(ls_gguf_writer *, const char *key, const int32_t *values, size_t n);
void ls_gguf_put_f32s(ls_gguf_writer *, const char *key, const float *values, size_t n);
void ls_gguf_put_texts(ls_gguf_writer *, const char *key, const ls_gguf_text *texts, size_t n);
/* A value of another file, with its key. */
void ls_gguf_put_value(ls_gguf_writer *, const ls_gguf_value *);

/* dims as in the file: the first is that of adjacent elements. A row has whole blocks. */
void ls_gguf_put_tensor(ls_gguf_writer *, const char *name, ls_block_type, int ndims,
                        const int64_t *dims);

/* Creates the file, which must not exist. */
ls_status ls_gguf_begin(ls_gguf_writer *, const char *path, ls_error *);
/* The next bytes of the tensors' data: no piece belongs to two tensors. */
ls_status ls_gguf_add(ls_gguf_writer *, const void *data, size_t nbytes, ls_error *);
/* After the last byte: syncs and closes the file. */
ls_status ls_gguf_end(ls_gguf_writer *, ls_error *);
void ls_gguf_writer_free(ls_gguf_writer *);

#endif
