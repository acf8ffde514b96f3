/* nvrtc_test.c - NVIDIA's compiler makes of every kernel what its bits and its speed need: where there is
 * one, which needs no GPU. */
/* ctest: seconds=6 */
#include "device/kernels.h"
#include "device/nvrtc.h"
#include "test.h"

static const char *const architectures[] = {"sm_90a", "sm_80"};

static const ls_nvrtc *compiler_or_skip(void) {
    const ls_nvrtc *c = NULL;
    ls_error e = {0};
    if (ls_nvrtc_load(1000, &c, &e) != LS_OK) skip_because("%s", e.msg);
    return c;
}

static ls_nvrtc_made made_for(const ls_nvrtc *c, const char *architecture) {
    ls_error e = {0};
    ls_nvrtc_made made;
    char *text = ls_format("%s%s", ls_device_cuda_text, ls_device_kernels_text);
    assert_ls_ok(ls_nvrtc_compile(c, text, architecture, &made, &e), e);
    free(text);
    return made;
}

/* The assembly of a kernel; free() it. */
static char *kernel_of(const ls_nvrtc_made *made, const char *name) {
    char *head = ls_format(".entry %s(", name);
    const char *from = made->assembly.data ? strstr(made->assembly.data, head) : NULL;
    free(head);
    if (!from) return NULL;
    const char *to = strstr(from, "\n}");
    assert_non_null(to);
    return strndup(from, (size_t)(to - from));
}

static int count(const char *text, const char *what) {
    int n = 0;
    for (const char *at = text; (at = strstr(at, what)); at += strlen(what)) n++;
    return n;
}

/* Each kernel is there. An array of an item is in registers: none has a place in memory (".local"), and
 * nothing rounds otherwise than the CPU. */
static void check_kernel(const char *architecture, const char *name, const char *text) {
    static const char *const wrong[] = {".local", ".approx", ".ftz", "mad.f32", "mad.rn.f32"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (!strstr(text, wrong[i])) continue;
        print_error("kernel %s for %s has %s: %.60s\n", name, architecture, wrong[i],
                    strstr(text, wrong[i]));
        fail();
    }
}

/* A product is multiply-adds alone: nothing is multiplied or added with a rounding of its own. */
static void check_product(const ls_nvrtc_made *made) {
    char *text = kernel_of(made, "gemm");
    assert_non_null(text);
    assert_true(count(text, "fma.rn.f32") >= 16); /* of a step of k, an item has 16 elements */
    assert_int_equal(count(text, "mul.f32") + count(text, "mul.rn.f32"), 0);
    assert_int_equal(count(text, "add.f32") + count(text, "add.rn.f32"), 0);
    free(text);
}

static void test_kernels(void **state) {
    const ls_nvrtc *c = compiler_or_skip();
    (void)state;
    for (int a = 0; a < ncases(1, 2); a++) {
        ls_nvrtc_made made = made_for(c, architectures[a]);
        assert_true(made.code.len > 1000);
        assert_memory_equal(made.code.data, "\177ELF", 4);
        for (int i = 0; i < LS_NDEVICE_KERNELS; i++) {
            char *text = kernel_of(&made, ls_device_kernels[i].name);
            assert_non_null(text);
            check_kernel(architectures[a], ls_device_kernels[i].name, text);
            free(text);
        }
        check_product(&made);
        ls_nvrtc_made_free(&made);
    }
}

static void test_errors(void **state) {
    const ls_nvrtc *c = compiler_or_skip();
    ls_nvrtc_made made;
    ls_error e;
    (void)state;
    assert_ls_fails(
        ls_nvrtc_compile(c, "__global__ void f() {\n  x = 1;\n}\n", "sm_90a", &made, &e), LS_EIO,
        "kernels.cu(2): error: identifier \"x\" is undefined", e);
    assert_true(made.log.len > 0);
    ls_nvrtc_made_free(&made);
    assert_ls_fails(ls_nvrtc_compile(c, "", "sm_20", &made, &e), LS_EINVAL, "this GPU is sm_20", e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
