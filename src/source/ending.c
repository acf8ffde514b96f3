/* ending.c - see ending.h. */
#include "source/ending.h"

#include <string.h>
#include <strings.h>

#include "base/file.h"

const char *ls_ending_of(const char *path, size_t *n_p) {
    const char *name = ls_file_name(path);
    size_t n = strlen(name);
    if (n > 3 && strcasecmp(name + n - 3, ".gz") == 0)
        n -= 3;
    else if (n > 4 && strcasecmp(name + n - 4, ".zst") == 0)
        n -= 4;
    size_t dot = n;
    while (dot && name[dot - 1] != '.') dot--;
    *n_p = dot > 1 ? n - dot + 1 : 0;
    return name + n - *n_p;
}

bool ls_ending_is_one_of(const char *path, const char *const *endings) {
    size_t n = 0;
    const char *ending = ls_ending_of(path, &n);
    for (; *endings; endings++)
        if (strlen(*endings) == n && strncasecmp(ending, *endings, n) == 0) return true;
    return false;
}
