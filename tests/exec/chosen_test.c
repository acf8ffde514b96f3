/* chosen_test.c - of the rows that go to groups of experts on other workers, and of those that come
 * back, only the chosen ones are sent: as many bytes as the router's choice says, also where all
 * rows choose one group and none another. */
#include <math.h>

#include "base/random.h"
#include "config/config.h"
#include "exec/trained.h"
#include "networks/network.h"

enum { ROWS = 40, VOCAB = 30, WIDTH = 16, EXPERTS = 4 };

/* All samples are the same, so all have the same choices. */
static ls_status read_same(const void *data, const ls_draw *draw, size_t nbytes, void *sample,
                           ls_error *e) {
    (void)draw;
    (void)e;
    memcpy(sample, data, nbytes);
    return LS_OK;
}

static void make(int together, ls_model *m) {
    ls_config c;
    ls_error e = {0};
    ls_config_defaults(&c);
    c.model.kind = LS_MODEL_LLAMA;
    c.model.layers = 1;
    c.model.width = WIDTH;
    c.model.heads = c.model.kv_heads = 2;
    c.model.ffn = 12;
    c.model.context = ROWS;
    c.model.vocab = VOCAB;
    c.model.head = LS_HEAD_OWN;
    c.model.bias = LS_BIAS_NONE;
    c.model.experts = EXPERTS;
    c.model.experts_per_token = 1;
    c.train.batch = c.train.micro_batch = together;
    c.parallel.expert_virtual = together;
    assert_ls_ok(ls_network_create_cut(&c, m, &e), e);
}

/* One step of `together` workers, each with a sample and a group of experts. even: the router's
 * weights are 0, and all rows choose expert 0. */
static void train(int together, bool even, const uint32_t *tokens, trained *t) {
    *t = (trained){.how = {.nworkers = together,
                           .V = 1,
                           .batch = together,
                           .micro_batch = together,
                           .context = together,
                           .bucket_nbytes = 1 << 20},
                   .read = read_same,
                   .data = tokens,
                   .nsamples = 100,
                   .steps = 1,
                   .loss_scale = 1};
    make(together, &t->model);
    float *initial = LS_NEW_ARRAY(float, t->model.nfloats);
    ls_model_init(&t->model, 1, 0, t->model.nfloats, initial);
    for (int i = 0; even && i < t->model.nparams; i++) {
        const ls_param *q = &t->model.params[i];
        if (strstr(q->name, "gate.weight"))
            memset(initial + q->offset, 0, q->count * sizeof(float));
    }
    t->initial = initial;
    trained_run(t);
    free(initial);
}

/* Rows of each sample that have chosen an expert of a group. */
static int rows_of(const trained *t, int group, int groups) {
    double part = 0;
    for (int e = EXPERTS * group / groups; e < EXPERTS * (group + 1) / groups; e++) {
        char name[32];
        snprintf(name, sizeof name, "router/load/%d", e);
        for (int i = 0; i < t->model.nnotes; i++)
            if (strcmp(t->model.notes[i], name) == 0) part += t->out[0].notes[i];
    }
    return (int)lround(part * ROWS);
}

static uint64_t message_nbytes(int rows) {
    size_t all = ROWS * WIDTH * sizeof(float),
           some = (size_t)rows * WIDTH * sizeof(float) + ROWS / 8;
    return some < all ? some : all;
}

/* A worker sends each other group the rows of its own sample that have chosen it, and later these
 * rows' gradients of its output; and to each other sample what its own group has computed of the
 * rows, and later their gradients. And the router's values, and their gradients, whole. */
static void check_bytes(const trained *t, int workers) {
    uint64_t logits = ROWS * EXPERTS * sizeof(float);
    for (int w = 0; w < workers; w++) {
        uint64_t sent = 0;
        for (int other = 0; other < workers; other++)
            if (other != w)
                sent += 2 * message_nbytes(rows_of(t, other, workers)) +
                        2 * message_nbytes(rows_of(t, w, workers)) + 2 * logits;
        assert_int_equal(t->sent[w], sent);
    }
}

static void test_bytes(void **state) {
    (void)state;
    uint32_t tokens[ROWS + 1];
    for (uint64_t i = 0; i <= ROWS; i++) {
        uint32_t w[4];
        ls_random_words(3, LS_STREAM_SAMPLE, 0, i, w);
        tokens[i] = w[0] % VOCAB;
    }
    for (int workers = 2; workers <= 4; workers += 2)
        for (int even = 0; even < 2; even++) {
            trained t;
            int sum = 0, some = 0;
            train(workers, even, tokens, &t);
            for (int g = 0; g < workers; g++) {
                sum += rows_of(&t, g, workers);
                some += rows_of(&t, g, workers) > 0;
            }
            assert_int_equal(sum, ROWS);
            assert_true(even ? some == 1 : some == workers);
            check_bytes(&t, workers);
            trained_free(&t);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
