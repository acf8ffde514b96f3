/* archive.c - see archive.h. */
#include "source/formats/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <stdlib.h>
#include <string.h>

#include "base/library.h"
#include "base/mem.h"

enum { BLOCK = 512, END = 2 * BLOCK }; /* an archive ends with two blocks of zeros */

/* Functions of libarchive, by their names without archive_. */
static struct {
    struct archive *(*read_new)(void);
    int (*read_support_format_tar)(struct archive *);
    int (*read_set_options)(struct archive *, const char *);
    int (*read_open_memory)(struct archive *, const void *, size_t);
    int (*read_next_header)(struct archive *, struct archive_entry **);
    int (*read_free)(struct archive *);
    const char *(*error_string)(struct archive *);
    la_int64_t (*filter_bytes)(struct archive *, int);
    const char *(*entry_pathname)(struct archive_entry *);
    const char *(*entry_hardlink)(struct archive_entry *);
    la_int64_t (*entry_size)(struct archive_entry *);
    __LA_MODE_T (*entry_filetype)(struct archive_entry *);
    int (*entry_sparse_count)(struct archive_entry *);
} lib;

#define SYMBOL(name)                                                                               \
    { "archive_" #name, offsetof(__typeof__(lib), name) }
static const ls_symbol symbols[] = {
    SYMBOL(read_new),           SYMBOL(read_support_format_tar),
    SYMBOL(read_set_options),   SYMBOL(read_open_memory),
    SYMBOL(read_next_header),   SYMBOL(read_free),
    SYMBOL(error_string),       SYMBOL(filter_bytes),
    SYMBOL(entry_pathname),     SYMBOL(entry_hardlink),
    SYMBOL(entry_size),         SYMBOL(entry_filetype),
    SYMBOL(entry_sparse_count),
};

static ls_library library = LS_LIBRARY("libarchive.so.13", symbols, lib,
                                       .refusal = "tar archives need libarchive", .code = LS_EIO);

struct ls_archive {
    struct archive *a;
    const uint8_t *data;
    size_t nbytes;
    char *path;
};

void ls_archive_close(ls_archive *t) {
    if (!t) return;
    if (t->a) lib.read_free(t->a);
    free(t->path);
    free(t);
}

ls_status ls_archive_open(const uint8_t *data, size_t nbytes, const char *path, ls_archive **a_p,
                          ls_error *e) {
    ls_error why = {0};
    ls_status loaded = ls_library_need(&library, &why);
    if (loaded != LS_OK) return ls_fail(e, loaded, "%s: %s", path, why.msg);
    if (nbytes == 0) return ls_fail(e, LS_EINVAL, "%s: is empty (0 bytes)", path);
    ls_archive *t = LS_NEW(ls_archive);
    *t = (ls_archive){lib.read_new(), data, nbytes, ls_strdup(path)};
    if (!t->a || lib.read_support_format_tar(t->a) != ARCHIVE_OK ||
        lib.read_set_options(t->a, "tar:read_concatenated_archives") != ARCHIVE_OK ||
        lib.read_open_memory(t->a, data, nbytes) != ARCHIVE_OK) {
        ls_status s = ls_fail(e, LS_EINVAL, "%s: is not a tar archive: %s", path,
                              t->a ? lib.error_string(t->a) : "no memory");
        ls_archive_close(t);
        return s;
    }
    *a_p = t;
    return LS_OK;
}

static const char *kind_of(struct archive_entry *entry) {
    if (lib.entry_hardlink(entry)) return "a link";
    if (lib.entry_sparse_count(entry) > 0) return "a sparse file";
    switch (lib.entry_filetype(entry)) {
    case AE_IFREG: return NULL;
    case AE_IFLNK: return "a link";
    case AE_IFDIR: return "a directory";
    default: return "a device or another special file";
    }
}

/* A writer that was interrupted between two members leaves a file without an end. */
static ls_status check_end(const ls_archive *t, ls_error *e) {
    const uint8_t *p = t->data + t->nbytes;
    size_t n = 0;
    while (n < t->nbytes && n < END && *--p == 0) n++;
    if (n == END) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: is truncated: the blocks of zeros that end a tar archive are missing at "
                   "offset %zu",
                   t->path, t->nbytes);
}

ls_status ls_archive_next(ls_archive *t, ls_archive_entry *m_p, bool *there_p, ls_error *e) {
    struct archive_entry *entry = NULL;
    int64_t before = lib.filter_bytes(t->a, 0);
    int got = lib.read_next_header(t->a, &entry);
    *there_p = false;
    if (got == ARCHIVE_EOF) return check_end(t, e);
    if (got != ARCHIVE_OK && got != ARCHIVE_WARN) {
        const char *why = lib.error_string(t->a);
        return ls_fail(e, LS_EINVAL, "%s: the tar archive is damaged near offset %lld: %s", t->path,
                       (long long)before, why ? why : "unknown error");
    }
    const char *name = lib.entry_pathname(entry);
    int64_t at = lib.filter_bytes(t->a, 0), size = lib.entry_size(entry);
    ls_archive_entry m = {.name = name ? name : "", .what = kind_of(entry)};
    m.is_dir = m.what && lib.entry_filetype(entry) == AE_IFDIR;
    if (!m.what) {
        if (at < 0 || size < 0 || (uint64_t)at > t->nbytes ||
            (uint64_t)size > t->nbytes - (uint64_t)at)
            return ls_fail(e, LS_EINVAL,
                           "%s: is truncated: member %s at offset %lld has %lld bytes, but the "
                           "archive ends at offset %zu",
                           t->path, m.name, (long long)at, (long long)size, t->nbytes);
        m.at = (uint64_t)at;
        m.nbytes = (uint64_t)size;
    }
    *m_p = m;
    *there_p = true;
    return LS_OK;
}
