/* lists_model.h - a classifier of lists of ids, for tests, and its samples.
 *
 *     ids -> words -> concat -> qkv -> attention -> dropout -> slice -> mean -> sum -> dropout
 *     token --------+                                                           |         |
 *     numbers ------+                                                           |         v
 *     list -> bag --------------------------------------------------------------+        head
 *
 * numbers: the list -> gelu -> linear, of which gelu depends on no parameter and is not the first.
 */
#ifndef LS_TEST_LISTS_MODEL_H
#define LS_TEST_LISTS_MODEL_H

#include "base/random.h"
#include "data/order.h"
#include "model/builder.h"
#include "test.h"

enum { LISTS_IDS = 6, LISTS_BAG = 4, LISTS_WORDS = 11, LISTS_CLASSES = 5 };

static inline void lists_make(ls_model *m) {
    ls_error e = {0};
    *m = (ls_model){0};
    ls_value *ids = ls_input(m, "ids", LS_I32, LS_DIMS(LISTS_IDS));
    ls_value *list = ls_input(m, "list", LS_I32, LS_DIMS(LISTS_BAG));
    ls_value *class = ls_input(m, "class", LS_I32, LS_SCALAR);
    ls_value *numbers = ls_gelu(m, ls_affine(m, list, 0.125f, 0));
    numbers = ls_reshape(m, ls_linear(m, numbers, .name = "numbers", .out = 20), LS_DIMS(1, 20));
    ls_value *x = ls_embedding(m, ids, .name = "words", .rows = LISTS_WORDS, .width = 20,
                               .positions = true, .deviation = 1);
    ls_value *token = ls_learned(m, LS_DIMS(1, 20), .name = "token", .deviation = 1);
    x = ls_linear(m, ls_concat(m, 0, token, numbers, x), .name = "qkv", .out = 60);
    x = ls_attention(m, x, .heads = 4, .causal = true);
    x = ls_mean(m, ls_slice(m, ls_dropout(m, x, .rate = 0.2f), .first = 1), 0);
    ls_value *bag = ls_embedding_sum(m, list, .name = "bag", .rows = LISTS_WORDS, .width = 20,
                                     .mean = true, .deviation = 1);
    x = ls_dropout(m, ls_add(m, x, bag), .rate = 0.3f);
    ls_cross_entropy(m, ls_linear(m, x, .name = "head", .out = LISTS_CLASSES), class, LS_DEFAULTS);
    assert_ls_ok(ls_build_finish(m, &e), e);
}

/* A sample, for the loader; `data` is the model. A list has 0 to 4 ids. */
static inline ls_status lists_read(const void *data, const ls_draw *d, size_t nbytes, void *sample,
                                   ls_error *e) {
    const ls_model *m = data;
    (void)e;
    memset(sample, 0, nbytes);
    for (int k = 0; k < m->ninputs; k++) {
        int32_t *numbers = (int32_t *)(void *)((char *)sample + m->inputs[k].offset);
        for (size_t i = 0; i < m->inputs[k].nbytes / sizeof *numbers; i++) {
            uint32_t r[4];
            ls_random_words(17, LS_STREAM_FAKE, d->sample, (uint64_t)k * 64 + i, r);
            numbers[i] = (int32_t)(r[0] % (k == 2 ? LISTS_CLASSES : LISTS_WORDS));
            if (k == 1 && r[1] % 3 == 0) numbers[i] = -1;
        }
    }
    return LS_OK;
}

#endif
