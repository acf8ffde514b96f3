/* nvrtc_test.c - NVIDIA's compiler makes of every kernel what its bits and its speed need: where
 * there is one, which needs no GPU. It takes half a minute: make check does it where the kernels'
 * text or the compiler is not that of the last run that was recorded (nvrtc_checked.txt);
 * LOCKSTEP_UPDATE=1 records. */
/* ctest: seconds=2 */
/* ctest: long-asan: NVIDIA's compiler takes minutes there, and little of the code is ours */
#include <elf.h>

#include "base/file.h"
#include "base/hash.h"
#include "device/kernels.h"
#include "device/nvrtc.h"
#include "test.h"

static const char *const architectures[] = {"sm_90a", "sm_80"};

static const ls_nvrtc *compiler_or_skip(void) {
    const ls_nvrtc *c = NULL;
    ls_error e = {0};
    if (ls_nvrtc_load(1000, "sm_80", &c, &e) != LS_OK) skip_because("%s", e.msg);
    return c;
}

/* The text of all kernels; free() it. */
static char *kernels_text(void) {
    return ls_format("%s%s", ls_device_cuda_text, ls_device_kernels_text);
}

static const char RECORD[] = "tests/device/nvrtc_checked.txt";

/* The record of a run that passes; free() it. */
static char *record_of(const ls_nvrtc *c) {
    char *text = kernels_text(), hash[LS_HASH_TEXT];
    ls_hash_text(ls_hash_bytes(text, strlen(text)), hash);
    free(text);
    return ls_format("kernels %s, NVRTC %d.%d\n", hash, c->major, c->minor);
}

static bool is_recorded(const ls_nvrtc *c) {
    ls_buf was = {0};
    ls_error e = {0};
    char *now = record_of(c);
    assert_ls_ok(ls_file_read(RECORD, 1000, &was, &e), e);
    bool same = was.len == strlen(now) && memcmp(was.data, now, was.len) == 0;
    free(now);
    ls_buf_free(&was);
    return same;
}

static void write_record(const ls_nvrtc *c) {
    ls_error e = {0};
    char *now = record_of(c);
    assert_ls_ok(ls_file_replace(RECORD, now, strlen(now), &e), e);
    free(now);
}

static ls_nvrtc_made made_for(const ls_nvrtc *c, const char *architecture) {
    ls_error e = {0};
    ls_nvrtc_made made;
    char *text = kernels_text();
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

/* Each kernel is there. An array of an item is in registers: none has a place in memory (".local"),
 * and nothing rounds otherwise than the CPU. */
static void check_kernel(const char *architecture, const char *name, const char *text) {
    static const char *const wrong[] = {".local", ".approx", ".ftz", "mad.f32", "mad.rn.f32"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (!strstr(text, wrong[i])) continue;
        print_error("kernel %s for %s has %s: %.60s\n", name, architecture, wrong[i],
                    strstr(text, wrong[i]));
        fail();
    }
}

/* A product in f32 is multiply-adds alone: nothing is multiplied or added with a rounding of its
 * own. */
static void check_sums(const ls_nvrtc_made *made) {
    static const char *const products[] = {
        "gemm",           "gemm_small",       "gemm_some",       "gemm_rows",
        "conv",           "conv_dx",          "conv_dw",         "expert_gemm",
        "expert_gemm_dw", "expert_gemm_rows", "expert_gemm_some"};
    static const char *const wrong[] = {"mul.f32", "mul.rn.f32", "add.f32", "add.rn.f32"};
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        char *text = kernel_of(made, products[i]);
        assert_non_null(text);
        assert_true(occurrences(text, "fma.rn.f32") >= 16);
        for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++)
            assert_int_equal(occurrences(text, wrong[w]), 0);
        free(text);
    }
}

/* An item has `elements` of a product's sums, and a step of 16 of k is straight code, whose numbers
 * come from LOCAL memory four at a time; the next step's are copied there beside it. The compiler
 * does not make the same code each time: now and then one number is loaded alone too. */
static void check_product(const ls_nvrtc_made *made, const char *name, int elements, int loads) {
    char *text = kernel_of(made, name);
    assert_non_null(text);
    assert_int_equal(occurrences(text, "fma.rn.f32"), 16 * elements);
    assert_in_range(occurrences(text, "ld.shared.v4"), 16 * loads - 4, 16 * loads + 4);
    assert_in_range(occurrences(text, "ld.shared.f32"), 0, 4);
    assert_true(occurrences(text, "cp.async.cg.shared.global") > 0);
    free(text);
}

/* A section of the code, an ELF file, and its number of bytes. */
static const char *section_of(const ls_buf *code, const char *name, size_t *nbytes_p) {
    Elf64_Ehdr head;
    memcpy(&head, code->data, sizeof head);
    Elf64_Shdr *all = malloc(head.e_shnum * sizeof *all);
    assert_non_null(all);
    memcpy(all, code->data + head.e_shoff, head.e_shnum * sizeof *all);
    const char *found = NULL, *names = code->data + all[head.e_shstrndx].sh_offset;
    for (int i = 0; i < head.e_shnum && !found; i++) {
        if (strcmp(names + all[i].sh_name, name) != 0) continue;
        found = code->data + all[i].sh_offset;
        *nbytes_p = all[i].sh_size;
    }
    free(all);
    assert_non_null(found);
    return found;
}

/* No kernel has so many numbers that registers don't hold them: it has no memory of its own
 * ("frame"), but for a few that the limit of registers (dialect.cu) pushes out. Section .nv.info is
 * a list of records: a format (4: with a size), an attribute, a size, and here the function's
 * symbol and the number of bytes. */
static void check_frames(const ls_buf *code) {
    enum { WITH_SIZE = 4, FRAME_SIZE = 0x11, SAVED = 32 };
    size_t nbytes = 0, nnames = 0, nsymbols = 0;
    int n = 0;
    const char *info = section_of(code, ".nv.info", &nbytes);
    const char *names = section_of(code, ".strtab", &nnames);
    const char *symbols = section_of(code, ".symtab", &nsymbols);
    for (size_t at = 0; at + 4 <= nbytes;) {
        uint16_t size = 0;
        uint32_t values[2];
        const char *record = info + at;
        memcpy(&size, record + 2, sizeof size);
        at += 4u + (record[0] == WITH_SIZE ? size : 0u);
        if (record[0] != WITH_SIZE || record[1] != FRAME_SIZE) continue;
        Elf64_Sym symbol;
        memcpy(values, record + 4, sizeof values);
        memcpy(&symbol, symbols + values[0] * sizeof symbol, sizeof symbol);
        if (names[symbol.st_name] == '$') continue; /* a part of a division */
        n++;
        if (values[1] <= SAVED) continue;
        print_error("%s keeps %u bytes in memory\n", names + symbol.st_name, values[1]);
        fail();
    }
    assert_int_equal(n, LS_NDEVICE_KERNELS);
}

static void test_kernels(void **state) {
    const ls_nvrtc *c = compiler_or_skip();
    (void)state;
    const bool records = getenv("LOCKSTEP_UPDATE");
    if (!records && !all_cases() && is_recorded(c)) {
        left_to_slow(state);
        return;
    }
    for (int a = 0; a < (records ? 2 : ncases(1, 2)); a++) {
        ls_nvrtc_made made = made_for(c, architectures[a]);
        assert_true(made.code.len > 1000);
        assert_memory_equal(made.code.data, "\177ELF", 4);
        for (int i = 0; i < LS_NDEVICE_KERNELS; i++) {
            char *text = kernel_of(&made, ls_device_kernels[i].name);
            assert_non_null(text);
            check_kernel(architectures[a], ls_device_kernels[i].name, text);
            free(text);
        }
        check_sums(&made);
        check_product(&made, "gemm", 8 * 8, 2 + 2);
        check_product(&made, "gemm_small", 8 * 4, 2 + 1);
        check_frames(&made.code);
        ls_nvrtc_made_free(&made);
    }
    if (records) write_record(c);
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
