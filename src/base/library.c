/* library.c - see library.h. */
#include "base/library.h"

#include <dlfcn.h>
#include <string.h>

ls_status ls_library_load(const char *file, const ls_symbol *symbols, size_t n, void *table,
                          ls_error *e) {
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!library) return ls_fail(e, LS_EIO, "%s", dlerror());
    for (size_t i = 0; i < n; i++) {
        void *f = dlsym(library, symbols[i].name);
        if (!f) return ls_fail(e, LS_EIO, "%s has no %s", file, symbols[i].name);
        memcpy((char *)table + symbols[i].at, &f, sizeof f);
    }
    return LS_OK;
}

ls_status ls_library_need(ls_library *library, void (*load)(void), ls_error *e) {
    pthread_once(&library->once, load);
    if (library->trouble.code != LS_OK && e) *e = library->trouble;
    return library->trouble.code;
}
