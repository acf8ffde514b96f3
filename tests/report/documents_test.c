/* documents_test.c - the pictures of the documents are whole, as those that tests draw. */
#include "report/frame_check.h"

#include <dirent.h>

static void test_documents(void **state) {
    (void)state;
    int n = 0;
    DIR *d = opendir("docs");
    assert_non_null(d);
    for (struct dirent *f; (f = readdir(d));) {
        const char *end = strrchr(f->d_name, '.');
        if (!end || strcmp(end, ".svg") != 0) continue;
        frame_check_file("docs", f->d_name);
        n++;
    }
    closedir(d);
    assert_true(n >= 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_documents)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
