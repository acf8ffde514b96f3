/* convert.c - reads a model's weights and writes them, for scripts/check_weights.py.
 *
 *     convert_weights MODEL OUT TYPE [SHARD_BYTES]
 *
 * OUT: FILE.gguf, or a directory that is created. A GGUF file gets the keys of MODEL's
 * tokenizer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weights/blocks.h"
#include "weights/write_model.h"

static ls_status to_gguf(const ls_weights *w, const char *out, ls_block_type type, ls_error *e) {
    ls_model_source s = ls_source_of_weights(w);
    ls_gguf_writer writer = {0};
    static const char *const written[] = {"bos_token_id", "eos_token_id", "eot_token_id",
                                          "padding_token_id"};
    for (size_t i = 0; w->is_gguf && i < w->gguf.nvalues; i++) {
        const ls_gguf_value *v = &w->gguf.values[i];
        bool is_tokenizer = strncmp(v->key, "tokenizer.", 10) == 0;
        for (int k = 0; k < 4; k++)
            if (strstr(v->key, written[k])) is_tokenizer = false; /* the architecture's */
        if (is_tokenizer) ls_gguf_put_value(&writer, v);
    }
    ls_status status = ls_write_gguf(&s, out, type, &writer, e);
    ls_gguf_writer_free(&writer);
    return status;
}

static ls_status to_folder(const ls_weights *w, const char *out, ls_block_type type, int64_t shard,
                           ls_error *e) {
    ls_model_source s = ls_source_of_weights(w);
    LS_TRY(ls_file_make_dirs(out, e));
    LS_TRY(ls_write_safetensors(&s, out, type, shard, e));
    return ls_write_config(&w->arch, out, type, e);
}

int main(int argc, char **argv) {
    ls_error e = {0};
    ls_weights w = {0};
    ls_block_type type;
    if (argc < 4 || !ls_block_named(argv[3], &type)) {
        fprintf(stderr, "usage: convert_weights MODEL OUT TYPE [SHARD_BYTES]\n");
        return 2;
    }
    ls_status s = ls_weights_open(argv[1], &w, &e);
    size_t n = strlen(argv[2]);
    bool gguf = n > 5 && strcmp(argv[2] + n - 5, ".gguf") == 0;
    if (s == LS_OK)
        s = gguf ? to_gguf(&w, argv[2], type, &e)
                 : to_folder(&w, argv[2], type, argc > 4 ? atoll(argv[4]) : 0, &e);
    if (s != LS_OK) fprintf(stderr, "convert_weights: %s\n", e.msg);
    ls_weights_close(&w);
    return s == LS_OK ? 0 : 1;
}
