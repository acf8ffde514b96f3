/* adapter_gguf_read_test.c - adapters as llama.cpp loads them: keys, types and the order of rows;
 * what is refused, by its name. */
#include "storage/adapter_file.h"

#include "base/intern.h"
#include "folder.h"
#include "networks/network.h"
#include "test.h"
#include "weights/gguf_write.h"

enum { WIDTH = 24, KEYS = 8, HEAD = 4, RANK = 2 };

/* What a file has. */
typedef struct given {
    const char *family, *type, *kind; /* NULL: missing */
    double alpha;                     /* below 0: missing */
    const char *odd;                  /* a further key */
    const char *names[4];             /* of the base's tensors */
    int64_t rank, last_rank;          /* of the last tensor */
    ls_block_type block;
    bool lacks_b;
} given;

static const given good = {.family = "llama",
                           .type = "adapter",
                           .kind = "lora",
                           .alpha = 3,
                           .names = {"blk.0.attn_k.weight", "blk.1.attn_k.weight"},
                           .rank = RANK,
                           .last_rank = RANK,
                           .block = LS_BLOCK_F32};

static int64_t width_of(const char *name, bool a) {
    if (!a && strstr(name, "attn_qkv")) return WIDTH + 2 * KEYS;
    return !a && strstr(name, "attn_k") ? KEYS : WIDTH;
}

/* Element k of the file's tensor t: numbers that all types have. */
static float element(int t, int64_t k) { return (float)((k * 7 + t * 3) % 32 - 16) / 8; }

static void put_tensors(ls_gguf_writer *w, const given *g) {
    for (int i = 0; i < 4 && g->names[i]; i++)
        for (int b = 0; b < (g->lacks_b ? 1 : 2); b++) {
            bool last = b == 1 && (i == 3 || !g->names[i + 1]);
            int64_t rank = last ? g->last_rank : g->rank, wide = width_of(g->names[i], !b);
            const int64_t dims[2] = {b ? rank : wide, b ? wide : rank};
            char *name = ls_format("%s.lora_%c", g->names[i], b ? 'b' : 'a');
            ls_gguf_put_tensor(w, name, g->block, 2, dims);
            free(name);
        }
}

static void add(ls_gguf_writer *w, ls_block_type type, int t, int64_t count, ls_error *e) {
    const ls_kernels *k = ls_kernels_at(0);
    float *x = LS_NEW_ARRAY(float, (size_t)count);
    uint16_t *half = LS_NEW_ARRAY(uint16_t, (size_t)count);
    for (int64_t i = 0; i < count; i++) x[i] = element(t, i);
    if (type == LS_BLOCK_F32) {
        assert_ls_ok(ls_gguf_add(w, x, (size_t)count * sizeof *x, e), *e);
    } else {
        k->narrow(type == LS_BLOCK_F16 ? LS_F16 : LS_BF16, (size_t)count, x, half);
        assert_ls_ok(ls_gguf_add(w, half, (size_t)count * sizeof *half, e), *e);
    }
    free(x);
    free(half);
}

static void write_given(const given *g) {
    ls_gguf_writer w = {0};
    ls_error e = {0};
    char *path = ls_format("%s/adapter.gguf", folder);
    (void)remove(path);
    if (g->family) ls_gguf_put_text(&w, "general.architecture", g->family);
    if (g->type) ls_gguf_put_text(&w, "general.type", g->type);
    if (g->kind) ls_gguf_put_text(&w, "adapter.type", g->kind);
    if (g->alpha >= 0) ls_gguf_put_f32(&w, "adapter.lora.alpha", (float)g->alpha);
    if (g->odd) ls_gguf_put_u32(&w, g->odd, 1);
    put_tensors(&w, g);
    assert_ls_ok(ls_gguf_begin(&w, path, &e), e);
    for (int i = 0; i < 4 && g->names[i]; i++) {
        bool last = i == 3 || !g->names[i + 1];
        add(&w, g->block, 2 * i, width_of(g->names[i], true) * g->rank, &e);
        if (!g->lacks_b)
            add(&w, g->block, 2 * i + 1,
                width_of(g->names[i], false) * (last ? g->last_rank : g->rank), &e);
    }
    assert_ls_ok(ls_gguf_end(&w, &e), e);
    ls_gguf_writer_free(&w);
    free(path);
}

/* The file is that of a model with heads of 4 elements. */
static ls_status adopt(const given *g, ls_config *c, ls_error *e) {
    static const char *const sets[] = {"model.kind=llama", "model.heads=6", "model.kv_heads=2"};
    char *path = ls_format("%s/adapter.gguf", folder);
    write_given(g);
    assert_ls_ok(ls_config_read("configs/tiny.yaml", c, e), *e);
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        assert_ls_ok(ls_config_set(c, sets[i], e), *e);
    c->model.from = "/base";
    c->model.adapter = ls_intern(path);
    free(path);
    return ls_adapter_file_adopt(c, e);
}

static ls_config *takes(const given *g) {
    ls_config *c = LS_NEW(ls_config);
    ls_error e = {0};
    assert_ls_ok(adopt(g, c, &e), e);
    assert_int_equal(c->lora.rank, g->rank);
    return c;
}

static void refuses(const given *g, const char *says) {
    ls_config *c = LS_NEW(ls_config);
    ls_error e = {0};
    assert_ls_fails(adopt(g, c, &e), LS_EINVAL, says, e);
    free(c);
}

static void test_keys(void **state) {
    (void)state;
    given g = good;
    ls_config *c = takes(&g);
    assert_true(c->lora.alpha == 3 && !c->lora.rs && !c->lora.dora && c->lora.dropout == 0);
    assert_string_equal(c->lora.targets, "k_proj");
    free(c);
    g.names[0] = g.names[1];
    g.names[1] = NULL;
    c = takes(&g);
    assert_string_equal(c->lora.targets, "model.layers.1.self_attn.k_proj");
    free(c);
    g.alpha = 0; /* a scale of 1 */
    c = takes(&g);
    assert_true(c->lora.alpha == RANK);
    free(c);
    g.alpha = -1;
    c = takes(&g);
    assert_true(c->lora.alpha == RANK);
    free(c);
}

/* Row i here of a head is row 2 (i mod d / 2) + i / (d / 2) of the file. */
static int64_t row_in_file(int64_t i) {
    return i / HEAD * HEAD + i % HEAD % (HEAD / 2) * 2 + i % HEAD / (HEAD / 2);
}

/* at: the tensor, and its first row. */
static void has(const ls_model *m, const float *flat, const char *name, const int64_t at[2],
                bool pairs) {
    for (int i = 0; i < m->nparams; i++) {
        const ls_param *p = &m->params[i];
        if (strcmp(p->name, name) != 0) continue;
        for (int64_t r = 0; r < p->dims[0]; r++)
            for (int64_t k = 0; k < p->dims[1]; k++)
                assert_true(
                    flat[p->offset + (size_t)(r * p->dims[1] + k)] ==
                    element((int)at[0], (at[1] + (pairs ? row_in_file(r) : r)) * p->dims[1] + k));
        return;
    }
    fail_msg("%s: missing", name);
}

static void has_values(const ls_model *m, const float *flat, const char *name, int t, bool pairs) {
    has(m, flat, name, (const int64_t[]){t, 0}, pairs);
}

static void has_rows(const ls_model *m, const float *flat, const char *name, int t, int64_t first) {
    has(m, flat, name, (const int64_t[]){t, first}, false);
}

static void check_values(ls_block_type type) {
    given g = good;
    ls_error e = {0};
    ls_model m;
    g.block = type;
    ls_config *c = takes(&g);
    assert_ls_ok(ls_network_create(c, &m, &e), e);
    float *flat = LS_NEW_ARRAY(float, m.nfloats);
    const ls_train_state s = {.model = &m, .flat = {1, {flat}}};
    assert_ls_ok(ls_adapter_file_load(c, &s, &e), e);
    has_values(&m, flat, "model.layers.0.self_attn.k_proj.lora_A.weight", 0, false);
    has_values(&m, flat, "model.layers.0.self_attn.k_proj.lora_B.weight", 1, true);
    has_values(&m, flat, "model.layers.1.self_attn.k_proj.lora_B.weight", 3, true);
    free(flat);
    ls_model_free(&m);
    free(c);
}

static void test_values(void **state) {
    (void)state;
    check_values(LS_BLOCK_F32);
    check_values(LS_BLOCK_F16);
    check_values(LS_BLOCK_BF16);
}

/* Phi-3's q, k and v are rows of one tensor, and have one A. */
static void test_joined(void **state) {
    (void)state;
    given g = good;
    ls_error e = {0};
    ls_model m;
    g.family = "phi3";
    g.names[0] = "blk.0.attn_qkv.weight", g.names[1] = "blk.1.attn_qkv.weight";
    ls_config *c = takes(&g);
    assert_string_equal(c->lora.targets, "q_proj\nk_proj\nv_proj");
    assert_ls_ok(ls_network_create(c, &m, &e), e);
    float *flat = LS_NEW_ARRAY(float, m.nfloats);
    const ls_train_state s = {.model = &m, .flat = {1, {flat}}};
    assert_ls_ok(ls_adapter_file_load(c, &s, &e), e);
    has_values(&m, flat, "model.layers.0.self_attn.q_proj.lora_A.weight", 0, false);
    has_values(&m, flat, "model.layers.0.self_attn.v_proj.lora_A.weight", 0, false);
    has_values(&m, flat, "model.layers.0.self_attn.q_proj.lora_B.weight", 1, false);
    has_rows(&m, flat, "model.layers.1.self_attn.k_proj.lora_B.weight", 3, WIDTH);
    has_rows(&m, flat, "model.layers.1.self_attn.v_proj.lora_B.weight", 3, WIDTH + KEYS);
    free(flat);
    ls_model_free(&m);
    free(c);
}

static void test_refused(void **state) {
    (void)state;
    given g = good;
    g.family = "qwen2";
    refuses(&g, "general.architecture is qwen2; an adapter for this model has 'llama'");
    g = good, g.type = "model";
    refuses(&g, "general.type is model");
    g = good, g.kind = NULL;
    refuses(&g, "adapter.type is missing");
    g = good, g.odd = "adapter.alora.invocation_tokens";
    refuses(&g, "adapter.alora.invocation_tokens, which adapters here can't have");
    g = good, g.names[1] = "token_embd.weight";
    refuses(&g, "token_embd.weight.lora_a is not A or B of a linear layer");
    g = good, g.names[1] = "blk.2.attn_k.weight";
    refuses(&g, "blk.2.attn_k.weight.lora_a is not A or B of a linear layer");
    g = good, g.names[0] = NULL;
    refuses(&g, "has no tensors");
}

static void fails_to_load(const given *g, const char *says) {
    ls_error e = {0};
    ls_model m;
    ls_config *c = takes(g);
    assert_ls_ok(ls_network_create(c, &m, &e), e);
    float *flat = LS_NEW_ARRAY(float, m.nfloats);
    const ls_train_state s = {.model = &m, .flat = {1, {flat}}};
    assert_ls_fails(ls_adapter_file_load(c, &s, &e), LS_EINVAL, says, e);
    free(flat);
    ls_model_free(&m);
    free(c);
}

/* What the list of tensors is right in, and their shapes are not. */
static void test_shapes(void **state) {
    (void)state;
    given g = good;
    g.lacks_b = true;
    fails_to_load(&g, "has no tensor blk.0.attn_k.weight.lora_b of the model's shape");
    g = good;
    g.last_rank = 3; /* of B; A has 2 */
    fails_to_load(&g, "has no tensor blk.1.attn_k.weight.lora_b of the model's shape");
    g = good;
    g.names[0] = "blk.0.ffn_down.weight"; /* as wide as the model, and not as mlp.ffn */
    g.names[1] = "blk.1.ffn_down.weight";
    fails_to_load(&g, "has no tensor blk.0.ffn_down.weight.lora_a of the model's shape");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys), cmocka_unit_test(test_values), cmocka_unit_test(test_joined),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_shapes)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
