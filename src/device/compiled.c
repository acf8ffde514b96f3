/* compiled.c - see compiled.h. */
#include "device/compiled.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cache.h"
#include "base/file.h"
#include "base/log.h"
#include "base/plugin.h"
#include "device/kernels.h"

enum { MAX_NBYTES = 256 << 20, HEAD = LS_HASH_TEXT }; /* the hash, and a line's end */

static void add_text(ls_hasher *h, const char *s) { ls_hasher_add(h, s, strlen(s) + 1); }

/* The text and the options, which decide what is computed. */
static void add_source(ls_hasher *h) {
    for (int i = 0; ls_nvrtc_options[i]; i++) add_text(h, ls_nvrtc_options[i]);
    add_text(h, ls_device_cuda_text);
    add_text(h, ls_device_kernels_text);
}

/* Of all that decides the code. */
static ls_hash key_of(const ls_nvrtc *c, const char *architecture) {
    ls_hasher *h = ls_hasher_new();
    char *version = ls_format("%d.%d", c->major, c->minor);
    add_text(h, version);
    add_text(h, architecture);
    add_source(h);
    free(version);
    return ls_hasher_finish(h);
}

static void text_key(char text[LS_HASH_TEXT]) {
    ls_hasher *h = ls_hasher_new();
    add_source(h);
    ls_hash_text(ls_hasher_finish(h), text);
}

/* Appends the code of a file to *code; false: there is none, or it is damaged. */
static bool read_code(const char *path, ls_buf *code) {
    ls_buf all = {0};
    char want[LS_HASH_TEXT];
    bool whole = false;
    if (ls_file_read(path, MAX_NBYTES, &all, NULL) == LS_OK && all.len > HEAD) {
        ls_hash_text(ls_hash_bytes(all.data + HEAD, all.len - HEAD), want);
        whole = memcmp(all.data, want, HEAD - 1) == 0 && all.data[HEAD - 1] == '\n';
    }
    if (whole) ls_buf_append(code, all.data + HEAD, all.len - HEAD);
    ls_buf_free(&all);
    return whole;
}

static ls_status write_code(const char *path, const ls_buf *code, ls_error *e) {
    ls_buf all = {0};
    char hash[LS_HASH_TEXT];
    ls_hash_text(ls_hash_bytes(code->data, code->len), hash);
    ls_buf_printf(&all, "%s\n", hash);
    ls_buf_append(&all, code->data, code->len);
    ls_status s = ls_file_replace(path, all.data, all.len, e);
    ls_buf_free(&all);
    return s;
}

static ls_status compile(const ls_nvrtc *c, const char *architecture, ls_buf *code_p, ls_error *e) {
    ls_buf text = {0};
    ls_nvrtc_made made;
    ls_buf_printf(&text, "%s%s", ls_device_cuda_text, ls_device_kernels_text);
    ls_status s = ls_nvrtc_compile(c, text.data, architecture, &made, e);
    if (s == LS_OK) {
        *code_p = made.code;
        made.code = (ls_buf){0};
    }
    ls_nvrtc_made_free(&made);
    ls_buf_free(&text);
    return s;
}

bool ls_compiled_open(ls_compiled *c_p, ls_hash key, const char *ending, ls_buf *code_p) {
    char name[LS_HASH_TEXT];
    ls_hash_text(key, name);
    ls_compiled c = {.dir = ls_cache_dir(NULL, "kernels"), .lock = -1};
    c.path = ls_format("%s/%s.%s", c.dir, name, ending);
    if (ls_cache_lock(c.dir, key, &c.lock, NULL) != LS_OK) c.lock = -1;
    *c_p = c;
    return read_code(c.path, code_p);
}

void ls_compiled_keep(const ls_compiled *c, const ls_buf *code) {
    ls_error why = {0};
    if (write_code(c->path, code, &why) != LS_OK)
        ls_log("%s; the device's kernels are compiled again each time (XDG_CACHE_HOME=DIR is "
               "another place for them)",
               why.msg);
}

void ls_compiled_close(ls_compiled *c) {
    if (c->lock >= 0) {
        ls_cache_remove_old(c->dir);
        close(c->lock);
    }
    free(c->dir);
    free(c->path);
}

ls_status ls_compiled_kernels(const ls_nvrtc *c, const char *architecture, ls_buf *code_p,
                              ls_error *e) {
    ls_compiled place;
    ls_buf code = {0};
    ls_status s = LS_OK;
    if (!ls_compiled_open(&place, key_of(c, architecture), "cubin", &code)) {
        s = compile(c, architecture, &code, e);
        if (s == LS_OK) ls_compiled_keep(&place, &code);
    }
    ls_compiled_close(&place);
    if (s == LS_OK) *code_p = code;
    return s;
}

void ls_compiled_text(ls_buf *to) {
    char key[LS_HASH_TEXT];
    text_key(key);
    ls_buf_printf(to, "// %s", key);
    for (int i = 0; ls_nvrtc_options[i]; i++) ls_buf_printf(to, " %s", ls_nvrtc_options[i]);
    ls_buf_printf(to, "\n%s%s", ls_device_cuda_text, ls_device_kernels_text);
}

char *ls_compiled_installed(void) {
    char key[LS_HASH_TEXT];
    text_key(key);
    char *name = ls_format("lockstep-kernels-%s.fatbin", key), *path = ls_plugin_find(name);
    free(name);
    return path;
}
