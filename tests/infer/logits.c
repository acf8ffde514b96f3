/* logits.c - the logits that a model gives after some tokens, for scripts/check_models.py.
 *
 *     model_logits MODEL LENGTH... <IDS >LOGITS
 *
 * IDS: token ids of 32 bits. LOGITS: for each LENGTH, the logits [V] in f32 after that number of
 * tokens. */
#include <stdio.h>
#include <stdlib.h>

#include "infer/generate.h"

enum { MOST = 1 << 16 };

int main(int argc, char **argv) {
    ls_error e = {0};
    ls_trained t;
    if (argc < 3) {
        fprintf(stderr, "usage: model_logits MODEL LENGTH... <IDS >LOGITS\n");
        return 2;
    }
    if (ls_trained_open(argv[1], &(ls_trained_options){0}, &t, &e) != LS_OK) {
        fprintf(stderr, "model_logits: %s\n", e.msg);
        return 1;
    }
    uint32_t *ids = malloc(MOST * sizeof *ids);
    size_t n = ids ? fread(ids, sizeof *ids, MOST, stdin) : 0;
    size_t vocab = (size_t)t.config.model.vocab, written = 0, asked = (size_t)argc - 2;
    for (int i = 2; i < argc; i++) {
        long length = atol(argv[i]);
        if (length < 1 || (size_t)length > n || length > t.config.model.context) break;
        const float *logits = ls_infer_next(&t.infer, ids, length);
        written += fwrite(logits, sizeof *logits, vocab, stdout) == vocab;
    }
    free(ids);
    ls_trained_close(&t);
    return fflush(stdout) == 0 && written == asked ? 0 : 1;
}
