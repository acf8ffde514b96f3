/* documents_test.c - the pictures of the documents are whole, as those that tests draw. */
#include "report/frame_check.h"

#include <glob.h>

static void test_documents(void **state) {
    (void)state;
    glob_t found;
    assert_int_equal(glob("docs/*/*.svg", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) frame_check_file(".", found.gl_pathv[i]);
    assert_true(found.gl_pathc >= 4);
    globfree(&found);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_documents)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
