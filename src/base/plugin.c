/* plugin.c - see plugin.h. */
#include "base/plugin.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

const char ls_plugin_dir[] = LOCKSTEP_PLUGIN_DIR;

typedef struct places {
    char *at[16]; /* [n] directories */
    int n;
} places;

static void add_place(places *p, char *path) {
    if (path && *path && p->n < (int)(sizeof p->at / sizeof *p->at))
        p->at[p->n++] = path;
    else
        free(path);
}

/* The directory `lockstep` beside the shared library that contains this code; NULL: there is
 * none. */
static char *beside_library(void) {
    Dl_info info;
    if (!dladdr(ls_plugin_dir, &info) || !info.dli_fname) return NULL;
    const char *slash = strrchr(info.dli_fname, '/');
    return slash ? ls_format("%.*s/lockstep", (int)(slash - info.dli_fname), info.dli_fname) : NULL;
}

static void list_places(places *p) {
    char program[PATH_MAX] = "";
    const char *asked = getenv("LOCKSTEP_PLUGINS"), *libraries = getenv("LD_LIBRARY_PATH");
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    char *slash = n > 0 ? strrchr(program, '/') : NULL;
    if (slash) *slash = 0;
    if (asked) add_place(p, ls_strdup(asked));
    add_place(p, ls_format("%s/plugins", program));
    add_place(p, ls_format("%s/../lib/lockstep", program));
    add_place(p, beside_library());
    add_place(p, ls_strdup(ls_plugin_dir));
    while (libraries && *libraries) {
        int length = (int)strcspn(libraries, ":");
        if (length) add_place(p, ls_format("%.*s/lockstep", length, libraries));
        libraries += length + (libraries[length] == ':');
    }
}

char *ls_plugin_find(const char *name) {
    places p = {.n = 0};
    char *found = NULL;
    list_places(&p);
    for (int i = 0; i < p.n; i++) {
        char *path = found ? NULL : ls_format("%s/%s", p.at[i], name);
        if (path && access(path, F_OK) == 0)
            found = path;
        else
            free(path);
        free(p.at[i]);
    }
    return found;
}
