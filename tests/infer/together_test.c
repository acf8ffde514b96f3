/* together_test.c - texts that are continued in one call have the bits that each has alone, however
 * they are cut into calls and whatever others are there; on a device, too. */
/* ctest: seconds=15 */
#include "infer/placed.h"

#include "device/drivers.h"
#include "model/fixture.h"
#include "networks/llama.h"

enum { TEXTS = 5, CONTEXT = 40, ROWS = 24 };
enum {
    LONG_CONTEXT = 150,
    MOST_ROWS = 100
}; /* of a device: several pages, and blocks of queries */

typedef struct setup {
    const char *device; /* NULL: the cores' */
    ls_placed placed;
    ls_infer there; /* what is tested: infer, or the same on the device */
    void *memory;   /* the device's pages: those of text i are numbers i, i + TEXTS, ... */
    int *numbers[TEXTS];
    float *hidden[TEXTS]; /* [context][width] what is wanted of it */
    int64_t context, rows, width;
    ls_model model;
    ls_compute compute;
    ls_infer infer;
    float *params;
    void *half;
    ls_kept_type type;
    int64_t V, page, npages;
    uint32_t *tokens[TEXTS]; /* [context] */
    float *want[TEXTS];      /* [context][V] the logits after each token */
    float *kept[TEXTS];      /* its pages */
    int64_t done[TEXTS];     /* tokens that are computed */
} setup;

/* The logits after each token of text i, which cores compute alone. In f32 by the whole model; in
 * fewer bits token by token. */
static void write_want(setup *s, int i) {
    if (s->device && s->type == LS_KEPT_F32) {
        ls_infer_logits(&s->infer, s->tokens[i], s->context, (size_t)s->V, s->want[i]);
        ls_infer_hidden(&s->infer, s->tokens[i], s->context, s->hidden[i]);
        return;
    }
    for (int64_t n = 0; n < s->context; n++) {
        float *to = s->want[i] + n * s->V;
        const ls_past_text text = {.n = n, .kept = s->kept[i]};
        const ls_infer_together one = {.tokens = s->tokens[i] + n,
                                       .T = 1,
                                       .texts = &text,
                                       .ntexts = 1,
                                       .kept = s->type,
                                       .wanted = (const int64_t[]){0},
                                       .nwanted = 1,
                                       .logits = to,
                                       .shown = (const int64_t[]){0},
                                       .nshown = 1,
                                       .hidden = s->hidden[i] + n * s->width};
        if (s->type == LS_KEPT_F32)
            memcpy(to, ls_infer_next(&s->infer, s->tokens[i], n + 1), (size_t)s->V * sizeof *to);
        else
            ls_infer_texts(&s->infer, &one);
    }
}

/* The same model on the device, and its pages. */
static void open_device(setup *s) {
    ls_error e = {0};
    size_t nbytes = (size_t)(TEXTS * s->npages * s->page) * sizeof(float);
    assert_ls_ok(ls_placed_open(&s->placed, s->device, &s->there, &e), e);
    assert_ls_ok(ls_infer_open_memory(&s->there, 1, "a test", &e), e);
    assert_ls_ok(ls_infer_open_room(&s->there, s->rows, TEXTS, s->rows, &e), e);
    assert_ls_ok(ls_device_alloc(s->placed.compute.device, nbytes, "a test", &s->memory, &e), e);
}

static void close_device(setup *s) {
    ls_infer_close_room(&s->there);
    ls_device_free(s->placed.compute.device, s->memory);
    ls_infer_close_memory(&s->there);
    ls_placed_close(&s->placed);
}

static void set_up(setup *s, ls_dtype type, int threads) {
    if (!s->context) s->context = CONTEXT, s->rows = ROWS;
    const void *params = s->params = fix_params(&s->model, 3);
    fix_compute(&s->compute, &s->model, threads, NULL);
    if (type != LS_F32) {
        params = s->half = malloc(s->model.nfloats * 2);
        s->compute.k->narrow(type, s->model.nfloats, s->params, s->half);
    }
    s->infer = (ls_infer){.model = &s->model, .compute = &s->compute, .dtype = type, .n = 1};
    s->infer.params = params;
    s->infer.memory = fix_nans(ls_infer_nbytes(&s->model, type, 1) / sizeof(float) + 1);
    s->V = ls_infer_nlogits(&s->model);
    s->page = (int64_t)ls_infer_page_floats(&s->model, s->type);
    s->npages = (s->context + LS_KEPT_PAGE - 1) / LS_KEPT_PAGE;
    s->width = ls_infer_width(&s->model);
    s->there = s->infer;
    if (s->device) open_device(s);
    for (int i = 0; i < TEXTS; i++) {
        s->tokens[i] = fix_tokens((size_t)s->context, s->V, 50 + (uint64_t)i);
        s->want[i] = fix_nans((size_t)(s->context * s->V));
        s->hidden[i] = fix_nans((size_t)(s->context * s->width));
        s->numbers[i] = LS_NEW_ARRAY(int, (size_t)s->npages);
        for (int k = 0; k < s->npages; k++) s->numbers[i][k] = k * TEXTS + i;
        s->kept[i] = fix_nans((size_t)(s->npages * s->page));
        write_want(s, i);
        s->done[i] = 0;
    }
}

static void tear_down(setup *s) {
    if (s->device) close_device(s);
    for (int i = 0; i < TEXTS; i++) {
        free(s->tokens[i]), free(s->want[i]), free(s->kept[i]);
        free(s->hidden[i]), free(s->numbers[i]);
    }
    free(s->infer.memory), free(s->params), free(s->half);
    ls_compute_close(&s->compute);
    ls_model_free(&s->model);
}

/* A call of some rows of some texts, in any order of texts; all rows' logits are compared. */
static void call(setup *s, uint64_t *random) {
    ls_past_text texts[TEXTS];
    uint32_t tokens[MOST_ROWS];
    int64_t rows = 0, wanted[MOST_ROWS];
    int of[MOST_ROWS], n = 0, first = (int)((fix_random(random) + 1) / 2 * TEXTS);
    for (int k = 0; k < TEXTS && rows < s->rows; k++) {
        int i = (first + k) % TEXTS;
        int64_t left = s->context - s->done[i], room = s->rows - rows;
        int64_t most = left < room ? left : room;
        int64_t count = (int64_t)((fix_random(random) + 1) / 2 * (double)(most + 1));
        if (fix_random(random) < 0) count = count > 1 ? 1 : count; /* as those that are written */
        if (count < 1) continue;
        texts[n++] = (ls_past_text){.first = rows,
                                    .n = s->done[i],
                                    .kept = s->device ? s->memory : s->kept[i],
                                    .pages = s->numbers[i]};
        for (int64_t r = 0; r < count; r++, rows++) {
            tokens[rows] = s->tokens[i][s->done[i]++];
            of[rows] = i;
            wanted[rows] = rows;
        }
    }
    if (n == 0) return;
    float *logits = fix_nans((size_t)(rows * s->V));
    float *hidden = fix_nans((size_t)(rows * s->width));
    const ls_infer_together together = {.tokens = tokens,
                                        .T = rows,
                                        .texts = texts,
                                        .ntexts = n,
                                        .kept = s->type,
                                        .wanted = wanted,
                                        .nwanted = rows,
                                        .logits = logits,
                                        .shown = wanted,
                                        .nshown = s->device ? rows : 0,
                                        .hidden = hidden};
    ls_error e = {0};
    ls_infer_texts(&s->there, &together);
    assert_ls_ok(ls_infer_check(&s->there, &e), e);
    for (int k = 0; k < n; k++) {
        int64_t end = k + 1 < n ? texts[k + 1].first : rows;
        for (int64_t r = texts[k].first; r < end; r++) {
            const float *want = s->want[of[r]] + (texts[k].n + r - texts[k].first) * s->V;
            assert_true(want[0] == want[0]);
            if (memcmp(logits + r * s->V, want, (size_t)s->V * sizeof *want) != 0)
                fail_msg("type %d: row %lld of %lld, position %lld of its text, of %d texts",
                         (int)s->infer.dtype, (long long)r, (long long)rows,
                         (long long)(texts[k].n + r - texts[k].first), n);
            if (s->device)
                assert_memory_equal(hidden + r * s->width,
                                    s->hidden[of[r]] + (texts[k].n + r - texts[k].first) * s->width,
                                    (size_t)s->width * sizeof *hidden);
        }
    }
    free(logits);
    free(hidden);
}

static void try_all(setup *s, uint64_t random) {
    for (int round = 0; round < ncases(SANITIZED || s->device ? 2 : 3, 6); round++) {
        int64_t left = 1;
        for (int i = 0; i < TEXTS; i++) s->done[i] = 0;
        while (left) {
            call(s, &random);
            left = 0;
            for (int i = 0; i < TEXTS; i++) left += s->context - s->done[i];
        }
    }
}

static const ls_dtype types[] = {LS_F32, LS_BF16, LS_F16};
static const ls_kept_type kept_types[] = {LS_KEPT_Q8, LS_KEPT_F32, LS_KEPT_F16};

static void test_gpt(void **state) {
    static const ls_gpt_config configs[] = {{2, 24, 3, CONTEXT, 40}, {1, 15, 5, CONTEXT, 7}};
    (void)state;
    for (int i = 0; i < 8; i++) {
        if (SANITIZED && !runs_case(i + 2, 3)) continue;
        setup s = {.type = i < 6 ? LS_KEPT_F32 : i == 6 ? LS_KEPT_F16 : LS_KEPT_Q8};
        ls_error e;
        assert_ls_ok(ls_gpt_create(&configs[i % 2], &s.model, &e), e);
        set_up(&s, types[i / 2 % 3], 1 + i % 3);
        try_all(&s, 9 + (uint64_t)i);
        tear_down(&s);
    }
}

/* Heads that share keys; with a window; threads beyond the heads. */
static void make_llama(setup *s, int i) {
    ls_config c;
    ls_error e;
    ls_config_defaults(&c);
    c.model.kind = LS_MODEL_LLAMA;
    c.model.layers = 2;
    c.model.width = 24;
    c.model.heads = 4;
    c.model.kv_heads = i % 2 ? 2 : 4;
    c.model.ffn = 40;
    c.model.context = s->context ? s->context : CONTEXT;
    c.model.vocab = 61;
    c.model.window = i % 4 >= 2 ? 7 : 0;
    if (i % 3 == 0) c.model.no_rope_every = 2;
    if (i >= 6 && i < 10) c.model.block = LS_BLOCKS_GEMMA3, c.model.qk_norm = LS_ON;
    if (i >= 6 && i < 10 && c.model.window) c.model.full_attention_every = 2;
    assert_ls_ok(ls_llama_create(&c, false, &s->model, &e), e);
}

static void test_llama(void **state) {
    (void)state;
    for (int i = 0; i < 18; i++) {
        if (SANITIZED && !runs_case(i, 7)) continue; /* each type; 1, 3 and 5 threads */
        setup s = {.type = i < 12 ? LS_KEPT_F32 : i % 2 ? LS_KEPT_F16 : LS_KEPT_Q8};
        make_llama(&s, i);
        set_up(&s, types[i % 3], 1 + i % 5);
        try_all(&s, 90 + (uint64_t)i);
        tear_down(&s);
    }
}

/* ---- on devices ---- */

static void test_gpt_there(void **state) {
    static const ls_gpt_config config = {2, 24, 3, LONG_CONTEXT, 40};
    (void)state;
    for (int i = 0; i < ncases(4, 9); i++) {
        setup s = {.device = device_name, .context = LONG_CONTEXT, .rows = MOST_ROWS};
        ls_error e;
        s.type = i < 2 ? LS_KEPT_F32 : kept_types[i % 3];
        assert_ls_ok(ls_gpt_create(&config, &s.model, &e), e);
        set_up(&s, types[i < 2 ? i : i / 2 % 3], 1);
        try_all(&s, 200 + (uint64_t)i);
        tear_down(&s);
    }
}

static void test_llama_there(void **state) {
    (void)state;
    for (int i = 0; i < ncases(5, 18); i++) {
        setup s = {.device = device_name, .context = LONG_CONTEXT, .rows = MOST_ROWS};
        s.type = i < 4 ? LS_KEPT_F32 : kept_types[i % 3];
        make_llama(&s, i);
        set_up(&s, types[i % 3], 1);
        try_all(&s, 300 + (uint64_t)i);
        tear_down(&s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gpt), cmocka_unit_test(test_llama)};
    const struct CMUnitTest there[] = {cmocka_unit_test(test_gpt_there),
                                       cmocka_unit_test(test_llama_there)};
    return cmocka_run_group_tests(tests, NULL, NULL) + run_layers_on_devices(there, 2);
}
