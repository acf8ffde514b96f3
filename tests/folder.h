/* folder.h - a temporary directory for the test program that includes it: set-up and teardown of
 * each test, or of all. It is in $TMPDIR, or, without, or if that is a long path, in /tmp. */
#ifndef LS_TEST_FOLDER_H
#define LS_TEST_FOLDER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

static char folder[40]; /* tests add names to it in buffers of 64 bytes */

static inline int make_folder(void **state) {
    static const char name[] = "lockstep-test-XXXXXX";
    const char *in = getenv("TMPDIR");
    (void)state;
    if (!in || strlen(in) + sizeof name >= sizeof folder) in = "/tmp";
    snprintf(folder, sizeof folder, "%s/%s", in, name);
    return mkdtemp(folder) ? 0 : -1;
}

static inline int remove_folder(void **state) {
    (void)state;
    return ls_file_remove_tree(folder, NULL) == LS_OK ? 0 : -1;
}

#endif
