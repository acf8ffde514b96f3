/* mem_test.c - allocation that never fails silently, mapped pages, growing strings. */
#include "base/mem.h"

#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

static void test_alloc(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, 4096, 100000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *p = ls_alloc(sizes[i]);
        for (size_t j = 0; j < sizes[i]; j++) assert_int_equal(p[j], 0);
        p = ls_realloc(p, sizes[i] / 2);
        assert_non_null(p);
        free(p);
    }
    int64_t *v = LS_NEW_ARRAY(int64_t, 7);
    for (int i = 0; i < 7; i++) assert_int_equal(v[i], 0);
    free(v);
    free(LS_NEW_ARRAY(int64_t, 0));
}

/* An array that grows by one moves only at powers of two, and its elements stay. */
static void test_grow(void **state) {
    (void)state;
    int64_t *v = NULL;
    int moves = 0;
    for (size_t n = 0; n < 5000; n++) {
        uintptr_t was = (uintptr_t)v;
        v = ls_grow(v, n, sizeof *v);
        moves += (uintptr_t)v != was;
        v[n] = (int64_t)n;
    }
    assert_true(moves <= 14);
    for (int64_t n = 0; n < 5000; n++) assert_int_equal(v[n], n);
    free(v);
}

/* The allocators of sanitizers end the program themselves. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAVE_SANITIZER
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAVE_SANITIZER
#endif

/* Ends the program in a child, with one line on standard error. */
static void test_out_of_memory(void **state) {
    (void)state;
#ifdef HAVE_SANITIZER
    skip_because("sanitizers end the program in their own way");
#endif
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        volatile size_t n = SIZE_MAX / 4; /* n * 8 does not fit in a size_t */
        free(ls_alloc_array(n, 8));
        _exit(0);
    }
    close(ends[1]);
    char said[4096] = "";
    size_t used = 0;
    for (ssize_t n; used < sizeof said - 1; used += (size_t)n)
        if ((n = read(ends[0], said + used, sizeof said - 1 - used)) <= 0) break;
    close(ends[0]);
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 1);
    assert_non_null(strstr(said, "out of memory"));
}

static void test_text(void **state) {
    (void)state;
    char *s = ls_format("%s-%03d%%", "a", 7);
    assert_string_equal(s, "a-007%");
    char *t = ls_strdup(s);
    assert_string_equal(t, s);
    assert_ptr_not_equal(t, s);
    free(s);
    free(t);
}

static void test_map(void **state) {
    (void)state;
    ls_error e = {0};
    static const size_t sizes[] = {0, 1, 4096, 1000000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        void *p = NULL;
        assert_ls_ok(ls_map(sizes[i], "a test", &p, &e), e);
        assert_int_equal((uintptr_t)p % 4096, 0);
        const unsigned char *bytes = p;
        for (size_t j = 0; j < sizes[i]; j += 999) assert_int_equal(bytes[j], 0);
        ls_unmap(p, sizes[i]);
    }
    ls_unmap(NULL, 0);
    void *p = NULL;
    assert_ls_fails(ls_map((size_t)1 << 62, "the gradients", &p, &e), LS_ENOMEM,
                    "no memory for the gradients: 4611686018427.4 MB wanted", e);
    assert_null(p);
}

static void test_buf(void **state) {
    (void)state;
    ls_buf b = {0};
    ls_buf_append(&b, "", 0);
    assert_string_equal(b.data, "");
    for (int i = 0; i < 1000; i++) {
        ls_buf_append(&b, "ab\0c", 4);
        ls_buf_printf(&b, "%04d", i);
        assert_int_equal(b.len, (size_t)(i + 1) * 8);
        assert_true(b.len < b.cap);
        assert_int_equal(b.data[b.len], 0);
    }
    for (size_t i = 0; i < 1000; i++) {
        char want[16];
        snprintf(want, sizeof want, "%04d", (int)i);
        assert_memory_equal(b.data + 8 * i, "ab\0c", 4);
        assert_memory_equal(b.data + 8 * i + 4, want, 4);
    }
    ls_buf_free(&b);
    assert_true(b.data == NULL && b.len == 0 && b.cap == 0);
}

/* Texts whose length is close to the room that is left. */
static void test_buf_borders(void **state) {
    (void)state;
    char text[600];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    for (int n = 250; n < 520; n++) {
        ls_buf b = {0};
        ls_buf_printf(&b, "%.*s", n, text);
        assert_int_equal(b.len, (size_t)n);
        assert_int_equal(strlen(b.data), (size_t)n);
        ls_buf_append(&b, text, (size_t)n);
        assert_int_equal(strlen(b.data), (size_t)(2 * n));
        ls_buf_free(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alloc),         cmocka_unit_test(test_grow),
        cmocka_unit_test(test_out_of_memory), cmocka_unit_test(test_text),
        cmocka_unit_test(test_map),           cmocka_unit_test(test_buf),
        cmocka_unit_test(test_buf_borders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
