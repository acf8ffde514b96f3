/* folder.h - a temporary directory for the test program that includes it: set-up and teardown of
 * each test, or of all. */
#ifndef LS_TEST_FOLDER_H
#define LS_TEST_FOLDER_H

#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"

static char folder[] = "/tmp/lockstep-test-XXXXXX";

static inline int make_folder(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/lockstep-test-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static inline int remove_folder(void **state) {
    (void)state;
    return ls_file_remove_tree(folder, NULL) == LS_OK ? 0 : -1;
}

#endif
