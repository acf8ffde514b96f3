/* library.c - see library.h. */
#include "base/library.h"

#include <dlfcn.h>
#include <string.h>

#include "base/floats.h"

ls_status ls_library_load(const char *file, const ls_symbol *symbols, size_t n, void *table,
                          ls_error *e) {
    LS_FLOATS();
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!library) return ls_fail(e, LS_EIO, "%s", dlerror());
    for (size_t i = 0; i < n; i++) {
        void *f = dlsym(library, symbols[i].name);
        if (!f) return ls_fail(e, LS_EIO, "%s has no %s", file, symbols[i].name);
        memcpy((char *)table + symbols[i].at, &f, sizeof f);
    }
    return LS_OK;
}

static void load(ls_library *l) {
    ls_error why = {0};
    if (ls_library_load(l->file, l->symbols, l->nsymbols, l->table, &why) != LS_OK)
        ls_fail(&l->failed, l->code, "%s: %s", l->refusal, why.msg);
    else if (l->set_up)
        l->set_up(&l->failed);
}

ls_status ls_library_need(ls_library *l, ls_error *e) {
    pthread_mutex_lock(&l->lock);
    if (!l->tried) load(l);
    l->tried = true;
    pthread_mutex_unlock(&l->lock);
    if (l->failed.code != LS_OK && e) *e = l->failed;
    return l->failed.code;
}
