/* highlight_test.c - colours replace marks on a terminal alone, and end with each text. */
#include "base/highlight.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "test.h"

static void writes(ls_highlight *h, const char *text, const char *want) {
    ls_buf out = {0};
    ls_highlight_write(h, text, strlen(text), &out);
    ls_buf_append(&out, "", 1);
    assert_string_equal(out.data, want);
    ls_buf_free(&out);
}

static void test_marks(void **state) {
    (void)state;
    ls_highlight h = {.begin = "<<", .end = ">>"};
    writes(&h, "a <<b>> c", "a <<b>> c");
    h.coloured = true;
    writes(&h, "", "");
    writes(&h, "a <<b>> c<<>>", "a \033[32mb\033[0m c\033[32m\033[0m");
    writes(&h, "a <<b", "a \033[32mb\033[0m");
    assert_true(h.open);
    writes(&h, "more << of it", "\033[32mmore << of it\033[0m");
    writes(&h, "end>> >> x", "\033[32mend\033[0m >> x");
    assert_false(h.open);
}

static void test_where(void **state) {
    (void)state;
    int file = open("/dev/null", O_WRONLY), terminal = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(file >= 0 && terminal >= 0);
    unsetenv("NO_COLOR");
    setenv("TERM", "xterm", 1);
    assert_true(ls_highlight_for(terminal, "<", ">").coloured);
    assert_false(ls_highlight_for(file, "<", ">").coloured);
    setenv("NO_COLOR", "", 1);
    assert_true(ls_highlight_for(terminal, "<", ">").coloured);
    setenv("NO_COLOR", "1", 1);
    assert_false(ls_highlight_for(terminal, "<", ">").coloured);
    unsetenv("NO_COLOR");
    setenv("TERM", "dumb", 1);
    assert_false(ls_highlight_for(terminal, "<", ">").coloured);
    unsetenv("TERM");
    assert_false(ls_highlight_for(terminal, "<", ">").coloured);
    close(file), close(terminal);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_marks), cmocka_unit_test(test_where)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
