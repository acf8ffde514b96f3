/* read_idx.c - IDX files, as of MNIST: 0, 0, the type, the number of dimensions, each dimension as
 * 4 bytes, then the elements; numbers are big-endian.
 *
 * Source: http://yann.lecun.com/exdb/mnist, "the IDX file format".
 */
#include "source/format.h"
#include "source/formats/arrays.h"

/* 0x08 to 0x0e; 0x0a is not defined. */
static const struct {
    uint8_t code;
    ls_dtype type;
} types[] = {{0x08, LS_U8},  {0x09, LS_I8},  {0x0b, LS_I16},
             {0x0c, LS_I32}, {0x0d, LS_F32}, {0x0e, LS_F64}};
enum { NTYPES = sizeof types / sizeof *types };

/* NTYPES: there is no such type. */
static int type_of(uint8_t code) {
    int i = 0;
    while (i < NTYPES && types[i].code != code) i++;
    return i;
}

static int64_t big_endian(const uint8_t *p) {
    return (int64_t)p[0] << 24 | (int64_t)p[1] << 16 | (int64_t)p[2] << 8 | (int64_t)p[3];
}

static ls_status read_header(ls_array *a, ls_error *e) {
    const ls_plain *f = &a->file;
    const uint8_t *p = f->data;
    if (f->nbytes < 4 || p[0] || p[1] || type_of(p[2]) == NTYPES)
        return ls_fail(
            e, LS_EINVAL,
            "%s: is not an IDX file: it does not begin with 0, 0 and a type from 8 to 14", f->path);
    a->type = types[type_of(p[2])].type;
    a->ndims = p[3];
    if (a->ndims < 1 || a->ndims > LS_ARRAY_DIMS)
        return ls_fail(e, LS_EINVAL, "%s: has %d dimensions, 1 to %d are possible", f->path,
                       a->ndims, LS_ARRAY_DIMS);
    a->at = 4 + 4 * (size_t)a->ndims;
    if (f->nbytes < a->at)
        return ls_fail(e, LS_EINVAL, "%s: is truncated: it ends at offset %zu, in its header",
                       f->path, f->nbytes);
    for (int i = 0; i < a->ndims; i++) a->dims[i] = big_endian(p + 4 + 4 * i);
    a->swapped = true;
    a->is_pixels = a->type == LS_U8;
    return LS_OK;
}

static bool recognizes(const ls_first_file *f) {
    const uint8_t *p = f->bytes;
    if (f->is_dir || f->named) return !f->is_dir;
    return f->nbytes >= 4 && p[0] == 0 && p[1] == 0 && type_of(p[2]) < NTYPES && p[3] >= 1 &&
           p[3] <= LS_ARRAY_DIMS;
}

static ls_status open_idx(const ls_files *files, const ls_source_options *o, ls_source **s_p,
                          ls_error *e) {
    return ls_arrays_open(files, o, read_header, s_p, e);
}

const ls_data_format ls_format_idx = {
    .name = "idx",
    .has_missing = true,
    .suffixes = {"-ubyte", ".idx", ".idx1", ".idx3", ".idx4"},
    .recognizes = recognizes,
    .open = open_idx,
};
