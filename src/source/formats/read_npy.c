/* read_npy.c - NumPy's .npy files, versions 1 to 3.
 *
 * 6 bytes of magic, 2 of the version, the header's length (2 bytes, from version 2 on 4), the
 * header, the elements. The header is a Python literal:
 *
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 784), }
 *
 * Python 2 may have written (60000L, 784L).
 *
 * Source: numpy.lib.format, "NEP 1 - A simple file format for NumPy arrays".
 */
#include <stdlib.h>
#include <string.h>

#include "source/format.h"
#include "source/formats/arrays.h"

static const uint8_t magic[] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
enum { LONGEST_HEADER = 64 << 10, LONGEST_WORD = 64 };

static const struct {
    const char *name; /* after the byte order */
    ls_dtype type;
} types[] = {{"f8", LS_F64}, {"f4", LS_F32}, {"f2", LS_F16}, {"i8", LS_I64},
             {"i4", LS_I32}, {"i2", LS_I16}, {"i1", LS_I8},  {"u8", LS_U64},
             {"u4", LS_U32}, {"u2", LS_U16}, {"u1", LS_U8},  {"b1", LS_BOOL}};
enum { NTYPES = sizeof types / sizeof *types };

/* ---- the literal ---- */

typedef struct literal {
    const char *at, *end;
} literal;

static void skip_space(literal *l) {
    while (l->at < l->end && (*l->at == ' ' || *l->at == '\n')) l->at++;
}

static bool take(literal *l, char c) {
    skip_space(l);
    if (l->at == l->end || *l->at != c) return false;
    l->at++;
    return true;
}

/* Text between quotes, without escapes. */
static bool take_text(literal *l, char text[LONGEST_WORD]) {
    skip_space(l);
    if (l->at == l->end || (*l->at != '\'' && *l->at != '"')) return false;
    char quote = *l->at++;
    size_t n = 0;
    while (l->at < l->end && *l->at != quote) {
        if (n + 1 == LONGEST_WORD || *l->at == '\\') return false;
        text[n++] = *l->at++;
    }
    text[n] = 0;
    return take(l, quote);
}

static bool take_word(literal *l, const char *word) {
    skip_space(l);
    size_t n = strlen(word);
    if ((size_t)(l->end - l->at) < n || memcmp(l->at, word, n) != 0) return false;
    l->at += n;
    return true;
}

static bool take_number(literal *l, int64_t *value_p) {
    skip_space(l);
    int64_t v = 0;
    const char *begin = l->at;
    for (; l->at < l->end && *l->at >= '0' && *l->at <= '9'; l->at++) {
        if (v > (INT64_MAX - 9) / 10) return false;
        v = v * 10 + (*l->at - '0');
    }
    *value_p = v;
    if (l->at == begin) return false;
    if (l->at < l->end && *l->at == 'L') l->at++; /* as Python 2 writes a long integer */
    return true;
}

typedef struct header {
    char descr[LONGEST_WORD];
    bool fortran;
    int64_t dims[LS_ARRAY_DIMS];
    int ndims; /* may be more than dims has */
    bool has_descr, has_order, has_shape;
    bool is_record; /* its elements have several named values */
} header;

static bool take_shape(literal *l, header *h) {
    if (!take(l, '(')) return false;
    while (!take(l, ')')) {
        int64_t v = 0;
        if (!take_number(l, &v)) return false;
        if (h->ndims < LS_ARRAY_DIMS) h->dims[h->ndims] = v;
        h->ndims++;
        if (!take(l, ',') && !(l->at < l->end && *l->at == ')')) return false;
    }
    return true;
}

static bool take_item(literal *l, header *h) {
    char key[LONGEST_WORD];
    if (!take_text(l, key) || !take(l, ':')) return false;
    if (strcmp(key, "descr") == 0 && take(l, '[')) return h->is_record = true, false;
    if (strcmp(key, "descr") == 0 && !h->has_descr) return h->has_descr = take_text(l, h->descr);
    if (strcmp(key, "shape") == 0 && !h->has_shape) return h->has_shape = take_shape(l, h);
    if (strcmp(key, "fortran_order") != 0 || h->has_order) return false;
    h->fortran = take_word(l, "True");
    return h->has_order = h->fortran || take_word(l, "False");
}

static bool take_header(literal *l, header *h) {
    if (!take(l, '{')) return false;
    while (!take(l, '}'))
        if (!take_item(l, h) || (!take(l, ',') && !(l->at < l->end && *l->at == '}'))) return false;
    skip_space(l);
    return l->at == l->end && h->has_descr && h->has_order && h->has_shape;
}

/* ---- the file ---- */

static ls_status set_type(ls_array *a, const header *h, ls_error *e) {
    char order = h->descr[0];
    for (int i = 0; order && strchr("<>|=", order) && i < NTYPES; i++)
        if (strcmp(h->descr + 1, types[i].name) == 0) {
            a->type = types[i].type;
            a->swapped = order == '>';
            return LS_OK;
        }
    return ls_fail(e, LS_EINVAL,
                   "%s: has elements of type '%s', which can't be read; save numbers, e.g. "
                   "x.astype('<f4')",
                   a->file.path, h->descr);
}

static ls_status use_header(ls_array *a, const header *h, ls_error *e) {
    const char *path = a->file.path;
    LS_TRY(set_type(a, h, e));
    if (h->fortran)
        return ls_fail(e, LS_EINVAL, "%s: is in Fortran's order; save numpy.ascontiguousarray(x)",
                       path);
    if (h->ndims < 1 || h->ndims > LS_ARRAY_DIMS)
        return ls_fail(e, LS_EINVAL, "%s: has %d dimensions, 1 to %d are possible", path, h->ndims,
                       LS_ARRAY_DIMS);
    a->ndims = h->ndims;
    memcpy(a->dims, h->dims, sizeof a->dims);
    return LS_OK;
}

static ls_status read_header(ls_array *a, ls_error *e) {
    const ls_plain *f = &a->file;
    const uint8_t *p = f->data;
    if (f->nbytes < 12 || memcmp(p, magic, sizeof magic) != 0)
        return ls_fail(e, LS_EINVAL, "%s: is not an .npy file: it does not begin with \\x93NUMPY",
                       f->path);
    if (p[6] < 1 || p[6] > 3)
        return ls_fail(e, LS_EINVAL, "%s: is of version %d of .npy; 1 to 3 are known", f->path,
                       p[6]);
    size_t at = p[6] == 1 ? 10 : 12, n = p[8] | (size_t)p[9] << 8;
    if (p[6] > 1) n |= (size_t)p[10] << 16 | (size_t)p[11] << 24;
    if (n > LONGEST_HEADER || n > f->nbytes - at)
        return ls_fail(e, LS_EINVAL, "%s: is truncated or damaged: its header has %zu bytes",
                       f->path, n);
    literal l = {(const char *)p + at, (const char *)p + at + n};
    header h = {0};
    bool good = take_header(&l, &h);
    if (!good && h.is_record)
        return ls_fail(e, LS_EINVAL,
                       "%s: its elements have several named values, which can't be read; save each "
                       "as an array, e.g. x['NAME']",
                       f->path);
    if (!good)
        return ls_fail(e, LS_EINVAL, "%s: its header is not understood at offset %zu", f->path,
                       (size_t)(l.at - (const char *)p));
    a->at = at + n;
    return use_header(a, &h, e);
}

static bool recognizes(const ls_first_file *f) {
    if (f->is_dir || f->named) return !f->is_dir;
    return f->nbytes >= sizeof magic && memcmp(f->bytes, magic, sizeof magic) == 0;
}

static ls_status open_npy(const ls_files *files, const ls_source_options *o, ls_source **s_p,
                          ls_error *e) {
    return ls_arrays_open(files, o, read_header, s_p, e);
}

const ls_data_format ls_format_npy = {
    .name = "npy",
    .has_missing = true,
    .suffixes = {".npy"},
    .recognizes = recognizes,
    .open = open_npy,
};
