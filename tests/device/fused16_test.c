/* fused16_test.c - tensor cores compute what their model says (tensor/fused16.h): each element of
 * ten million, by mma and, where the GPU has it, by wgmma. Needs a GPU of Hopper or Blackwell; what
 * it runs is compiled where there is NVIDIA's compiler. */
#include "base/file.h"
#include "base/random.h"
#include "device/cuda.h"
#include "device/nvrtc.h"
#include "tensor/links.h"
#include "test.h"

/* Of one launch: tiles of 16 x 8 elements, four with one b (fused16.cu). */
enum { TILES = 4096, M = 16, N = 8, CHUNKS = 20 };
enum { NC = TILES * M * N, NA = TILES * M * LINK, NB = TILES / 4 * N * LINK };
/* Beside the kinds of links.h: any bits, infinities and NaNs too. */
enum { ANY = NKINDS, NALL };
static const char *const kinds[NALL] = {"ordinary",   "of many sizes", "near 2^-126",
                                        "with zeros", "near 2^127",    "any bits"};

static const ls_nvrtc *compiler_or_skip(int newest) {
    const ls_nvrtc *c = NULL;
    ls_error e = {0};
    if (ls_nvrtc_load(newest, "sm_90a", &c, &e) != LS_OK) skip_because("%s", e.msg);
    return c;
}

static ls_nvrtc_made made_for(const ls_nvrtc *c, const char *architecture) {
    ls_error e = {0};
    ls_nvrtc_made made;
    ls_buf text = {0};
    assert_ls_ok(ls_file_read("tests/device/fused16.cu", 1 << 20, &text, &e), e);
    ls_buf_append(&text, "", 1);
    assert_ls_ok(ls_nvrtc_compile(c, text.data, architecture, &made, &e), e);
    ls_buf_free(&text);
    return made;
}

static void test_compiles(void **state) {
    ls_nvrtc_made made = made_for(compiler_or_skip(1000), "sm_90a");
    (void)state;
    ls_buf_append(&made.assembly, "", 1);
    assert_non_null(strstr(made.assembly.data, "mma.sync.aligned.m16n8k16.row.col.f32.bf16"));
    assert_non_null(strstr(made.assembly.data, "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16"));
    ls_nvrtc_made_free(&made);
}

typedef struct operands {
    uint16_t a[TILES][M][LINK], b[TILES / 4][N][LINK];
    float c[NC], want[NC], got[NC];
} operands;

static uint32_t words[8], nwords;
static uint64_t drawn;

static uint32_t word(void) {
    if (nwords == 0) {
        ls_random_words(11, LS_STREAM_FAKE, 0, drawn++, words);
        ls_random_words(11, LS_STREAM_FAKE, 1, drawn, words + 4);
        nwords = 8;
    }
    return words[--nwords];
}

static uint32_t number(int kind, bool is_c) {
    uint32_t x = word(), y = word();
    return kind == ANY ? x : bits_of(link_number(x, y, (link_kind)kind, is_c));
}

/* Some products take others away again, so that what was cut shows. */
static void fill(operands *o, int kind) {
    uint16_t *a = o->a[0][0], *b = o->b[0][0];
    for (int i = 0; i < NB; i++)
        b[i] = i % 4 == 3 && kind != ANY ? b[i - 1] : (uint16_t)(number(kind, false) >> 16);
    for (int i = 0; i < NA; i++) {
        a[i] = (uint16_t)(number(kind, false) >> 16);
        if (i % 4 == 3 && kind != ANY && word() % 4 == 0) a[i] = a[i - 1] ^ 0x8000;
    }
    for (int i = 0; i < NC; i++) {
        o->c[i] = float_of(number(kind, true));
        int tile = i / (M * N);
        o->want[i] = ls_fused16_link(o->c[i], LINK, o->a[tile][i / N % M], o->b[tile / 4][i % N]);
    }
}

typedef struct gpu {
    const ls_cuda *cuda;
    int id, major, minor;
    ls_cuda_context context;
    ls_cuda_module module;
    ls_cuda_stream stream;
    ls_cuda_address a, b, c, d;
} gpu;

#define CALL(g, ...)                                                                               \
    do {                                                                                           \
        int got_ = (g)->cuda->__VA_ARGS__;                                                         \
        if (got_) fail_msg("%s: error %d", #__VA_ARGS__, got_);                                    \
    } while (0)

static void find_or_skip(gpu *g) {
    ls_error e = {0};
    int n = 0;
    if (ls_cuda_load(&g->cuda, &e) != LS_OK) skip_because("%s", e.msg);
    if (g->cuda->device_count(&n) != 0 || n == 0) skip_because("there is no GPU of NVIDIA");
    CALL(g, device_get(&g->id, 0));
    CALL(g, device_attribute(&g->major, LS_CUDA_MAJOR, g->id));
    CALL(g, device_attribute(&g->minor, LS_CUDA_MINOR, g->id));
    if (g->major < 9)
        skip_because(
            "the model is of Hopper and Blackwell (sm_90 and newer), and the GPU is sm_%d%d",
            g->major, g->minor);
}

static void open_gpu(gpu *g) {
    char architecture[32];
    snprintf(architecture, sizeof architecture, "sm_%d%d%s", g->major, g->minor,
             g->major == 9 && g->minor == 0 ? "a" : "");
    ls_nvrtc_made made = made_for(compiler_or_skip(g->cuda->driver / 1000), architecture);
    CALL(g, context_retain(&g->context, g->id));
    CALL(g, context_push(g->context));
    CALL(g, module_load(&g->module, made.code.data));
    CALL(g, stream_create(&g->stream, LS_CUDA_STREAM_NON_BLOCKING));
    CALL(g, alloc(&g->a, NA * sizeof(uint16_t)));
    CALL(g, alloc(&g->b, NB * sizeof(uint16_t)));
    CALL(g, alloc(&g->c, NC * sizeof(float)));
    CALL(g, alloc(&g->d, NC * sizeof(float)));
    ls_nvrtc_made_free(&made);
}

static void close_gpu(gpu *g) {
    ls_cuda_address all[] = {g->a, g->b, g->c, g->d};
    for (int i = 0; i < 4; i++) CALL(g, free(all[i]));
    CALL(g, stream_destroy(g->stream));
    CALL(g, module_unload(g->module));
    CALL(g, context_pop(&g->context));
    CALL(g, context_release(g->id));
}

/* Elements that differ; the first of them is printed. */
static int64_t differ(gpu *g, ls_cuda_function f, const char *name, operands *o) {
    void *args[] = {&g->a, &g->b, &g->c, &g->d};
    int64_t n = 0;
    CALL(g, set(g->d, 0xa5, NC * sizeof(float), g->stream));
    CALL(g, launch(f, TILES / 4, 1, 1, 128, 1, 1, 0, g->stream, args, NULL));
    CALL(g, copy_from(o->got, g->d, NC * sizeof(float), g->stream));
    CALL(g, stream_finish(g->stream));
    for (int i = 0; i < NC; i++) {
        if (memcmp(&o->got[i], &o->want[i], sizeof(float)) == 0) continue;
        if (n++ > 0) continue;
        print_error("%s: d %08x, the model's %08x, c %08x; a b:", name, bits_of(o->got[i]),
                    bits_of(o->want[i]), bits_of(o->c[i]));
        for (int k = 0, t = i / (M * N); k < LINK; k++)
            print_error(" %04x %04x", o->a[t][i / N % M][k], o->b[t / 4][i % N][k]);
        print_error("\n");
    }
    return n;
}

/* A kind that differs does not hide the others. */
static void test_hardware(void **state) {
    static const char *const names[] = {"by_mma", "by_wgmma"};
    int64_t wrong[2][NALL] = {{0}}, counts[NALL] = {0}, all = 0;
    gpu g = {0};
    find_or_skip(&g);
    open_gpu(&g);
    int n = g.major == 9 ? 2 : 1; /* wgmma is of Hopper alone */
    ls_cuda_function functions[2] = {NULL, NULL};
    operands *o = malloc(sizeof *o);
    (void)state;
    assert_non_null(o);
    for (int i = 0; i < n; i++) CALL(&g, module_function(&functions[i], g.module, names[i]));
    for (int chunk = 0; chunk < CHUNKS; chunk++) {
        int kind = chunk % NALL;
        fill(o, kind);
        counts[kind] += NC;
        CALL(&g, copy_to(g.a, o->a, NA * sizeof(uint16_t), g.stream));
        CALL(&g, copy_to(g.b, o->b, NB * sizeof(uint16_t), g.stream));
        CALL(&g, copy_to(g.c, o->c, NC * sizeof(float), g.stream));
        for (int i = 0; i < n; i++) wrong[i][kind] += differ(&g, functions[i], names[i], o);
    }
    for (int i = 0; i < n; i++)
        for (int kind = 0; kind < NALL; kind++) {
            print_message("%s, operands %s: %d of %d elements differ from the model\n", names[i],
                          kinds[kind], (int)wrong[i][kind], (int)counts[kind]);
            all += wrong[i][kind];
        }
    free(o);
    close_gpu(&g);
    assert_int_equal(all, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compiles),
        cmocka_unit_test(test_hardware),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
