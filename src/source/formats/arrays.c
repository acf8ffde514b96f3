/* arrays.c - see arrays.h. */
#include "source/formats/arrays.h"

#include <stdlib.h>
#include <string.h>

#include "source/formats/filled.h"
#include "tensor/dtype.h"

typedef struct arrays {
    ls_source source;
    ls_array *data, *labels; /* [n]; labels may be NULL */
    uint64_t *begins;        /* [n + 1] of each file's samples */
    size_t n;
} arrays;

static void free_list(ls_array *list, size_t n) {
    for (size_t i = 0; list && i < n; i++) ls_plain_close(&list[i].file);
    free(list);
}

static void close_arrays(ls_source *s) {
    arrays *a = (arrays *)s;
    free_list(a->data, a->n);
    free_list(a->labels, a->n);
    free(a->begins);
    free(a);
}

/* ---- open ---- */

/* Compares the header with the file's size. */
static ls_status check_size(ls_array *a, ls_error *e) {
    const char *path = a->file.path;
    uint64_t room = a->file.nbytes - a->at, nbytes = ls_dtype_size(a->type);
    for (int i = 1; i < a->ndims; i++) {
        if (a->dims[i] < 1)
            return ls_fail(e, LS_EINVAL, "%s: dimension %d is %lld, at least 1 is needed", path, i,
                           (long long)a->dims[i]);
        if ((uint64_t)a->dims[i] > LS_SAMPLE_NBYTES / nbytes)
            return ls_fail(e, LS_EINVAL, "%s: a sample has more than %zu MB, the limit", path,
                           LS_SAMPLE_NBYTES >> 20);
        nbytes *= (uint64_t)a->dims[i];
    }
    a->nbytes = nbytes;
    uint64_t n = (uint64_t)a->dims[0];
    if (n > room / nbytes)
        return ls_fail(e, LS_EINVAL,
                       "%s: is truncated: its header announces %llu samples of %llu bytes, but it "
                       "ends at offset %zu, in sample %llu; copy or download it again",
                       path, (unsigned long long)n, (unsigned long long)nbytes, a->file.nbytes,
                       (unsigned long long)(room / nbytes));
    if (n * nbytes != room)
        return ls_fail(e, LS_EINVAL,
                       "%s: %llu bytes follow the %llu samples that its header announces, from "
                       "offset %llu; the header or the file is wrong",
                       path, (unsigned long long)(room - n * nbytes), (unsigned long long)n,
                       (unsigned long long)(a->at + n * nbytes));
    return LS_OK;
}

typedef struct opening {
    const ls_source_options *options;
    ls_array_header *header;
} opening;

/* An array's header and size, before its contents. */
typedef struct checking {
    const opening *how;
    ls_array *array;
} checking;

static ls_status check_array(const ls_plain *file, void *context, ls_error *e) {
    const checking *c = context;
    ls_array a = {.file = *file};
    LS_TRY(c->how->header(&a, e));
    LS_TRY(check_size(&a, e));
    *c->array = a;
    return LS_OK;
}

/* *list_p [files->n] belongs to the caller also after an error. */
static ls_status open_list(const opening *o, const ls_files *files, ls_array **list_p,
                           ls_error *e) {
    ls_array *list = *list_p = LS_NEW_ARRAY(ls_array, files->n);
    for (size_t i = 0; i < files->n; i++) {
        checking c = {o, &list[i]};
        ls_plain file = {0};
        ls_status s = ls_plain_open_checked(files->paths[i], o->options, check_array, &c, &file, e);
        list[i].file = file;
        LS_TRY(s);
    }
    return LS_OK;
}

/* Without the option "labels": where some files have samples of one number and the others of
 * several, the former are labels. */
static ls_status split(const ls_array *all, size_t n, arrays *a, ls_error *e) {
    size_t nlabels = 0;
    for (size_t i = 0; i < n; i++) nlabels += all[i].ndims == 1;
    if (nlabels == n) nlabels = 0;
    if (nlabels && nlabels * 2 != n)
        return ls_fail(e, LS_EINVAL,
                       "%s: %zu files of data come with %zu files of labels; each file of data "
                       "needs one",
                       all[0].file.path, n - nlabels, nlabels);
    a->n = n - nlabels;
    a->data = LS_NEW_ARRAY(ls_array, a->n);
    if (nlabels) a->labels = LS_NEW_ARRAY(ls_array, a->n);
    for (size_t i = 0, k = 0, l = 0; i < n; i++) {
        if (nlabels && all[i].ndims == 1)
            a->labels[l++] = all[i];
        else
            a->data[k++] = all[i];
    }
    return LS_OK;
}

static ls_status open_files(const opening *o, const ls_files *files, arrays *a, ls_error *e) {
    ls_array *all = NULL;
    ls_status s = open_list(o, files, &all, e);
    if (s == LS_OK && !o->options->labels) {
        s = split(all, files->n, a, e);
        if (s != LS_OK)
            free_list(all, files->n);
        else
            free(all);
        return s;
    }
    if (s != LS_OK) {
        free_list(all, files->n);
        return s;
    }
    a->data = all;
    a->n = files->n;
    ls_files labels = {0};
    LS_TRY(ls_files_find(o->options->labels, &labels, e));
    if (labels.n == files->n) {
        s = open_list(o, &labels, &a->labels, e);
    } else {
        s = ls_fail(e, LS_EINVAL, "%s: %zu files of labels for %zu files of data", labels.paths[0],
                    labels.n, files->n);
    }
    ls_files_free(&labels);
    return s;
}

/* All files of a list have the shape and type of the first. */
static ls_status check_same(const ls_array *list, size_t n, ls_error *e) {
    for (size_t i = 1; i < n; i++) {
        bool same = list[i].type == list[0].type && list[i].ndims == list[0].ndims &&
                    memcmp(&list[i].dims[1], &list[0].dims[1],
                           sizeof list[0].dims - sizeof list[0].dims[0]) == 0;
        if (!same)
            return ls_fail(e, LS_EINVAL,
                           "%s: its samples have another shape or type than those of %s",
                           list[i].file.path, list[0].file.path);
    }
    return LS_OK;
}

static ls_status check_counts(const arrays *a, ls_error *e) {
    for (size_t i = 0; a->labels && i < a->n; i++)
        if (a->labels[i].dims[0] != a->data[i].dims[0])
            return ls_fail(e, LS_EINVAL,
                           "%s: has %lld labels, but %s has %lld samples; these files don't belong "
                           "together",
                           a->labels[i].file.path, (long long)a->labels[i].dims[0],
                           a->data[i].file.path, (long long)a->data[i].dims[0]);
    return LS_OK;
}

/* ---- elements ---- */

static void swap_bytes(uint8_t *p, size_t size, size_t nbytes) {
    for (size_t at = 0; at < nbytes; at += size)
        for (size_t i = 0; i < size / 2; i++) {
            uint8_t b = p[at + i];
            p[at + i] = p[at + size - 1 - i];
            p[at + size - 1 - i] = b;
        }
}

static void copy(const ls_array *a, uint64_t i, uint8_t *out) {
    memcpy(out, a->file.data + a->at + i * a->nbytes, a->nbytes);
    if (a->swapped) swap_bytes(out, ls_dtype_size(a->type), a->nbytes);
    if (a->type == LS_BOOL)
        for (size_t k = 0; k < a->nbytes; k++) out[k] = out[k] != 0;
}

static int64_t label_at(const ls_array *a, uint64_t i) {
    uint8_t bytes[8];
    copy(a, i, bytes);
    return ls_whole_at(a->type, bytes);
}

static bool are_classes(const ls_array *labels) {
    return labels->ndims == 1 && ls_dtype_is_whole(labels->type);
}

/* Classes are counted from 0. */
static ls_status check_labels(const ls_array *a, ls_error *e) {
    for (uint64_t i = 0; i < (uint64_t)a->dims[0]; i++) {
        int64_t v = label_at(a, i);
        if (v < 0 || v > INT32_MAX)
            return ls_fail(e, LS_EINVAL,
                           "%s: label %llu, at offset %llu, is %lld; labels are from 0 to %d",
                           a->file.path, (unsigned long long)i,
                           (unsigned long long)(a->at + i * a->nbytes), (long long)v, INT32_MAX);
    }
    return LS_OK;
}

/* ---- the source ---- */

static ls_status read_arrays(const ls_source *s, uint64_t i, void *sample, ls_error *e) {
    (void)e;
    const arrays *a = (const arrays *)s;
    size_t part = ls_source_part(a->begins, a->n, i);
    i -= a->begins[part];
    uint8_t *out = sample;
    copy(&a->data[part], i, out + s->fields[0].offset);
    if (!a->labels) return LS_OK;
    if (are_classes(a->labels)) {
        int32_t label = (int32_t)label_at(&a->labels[part], i);
        memcpy(out + s->fields[1].offset, &label, sizeof label);
    } else {
        copy(&a->labels[part], i, out + s->fields[1].offset);
    }
    return LS_OK;
}

static const char *file_of(const ls_source *s, uint64_t i) {
    const arrays *a = (const arrays *)s;
    return a->data[ls_source_part(a->begins, a->n, i)].file.path;
}

static ls_record_at record_of(const ls_source *s, uint64_t i) {
    const arrays *a = (const arrays *)s;
    return (ls_record_at){i, i - a->begins[ls_source_part(a->begins, a->n, i)]};
}

static ls_status add_data_field(arrays *a, const ls_array *d, ls_error *e) {
    ls_field f = {.name = "x", .type = d->type, .ndims = d->ndims - 1};
    memcpy(f.dims, &d->dims[1], (size_t)f.ndims * sizeof *f.dims);
    if (d->is_pixels && f.ndims == 2) f.dims[f.ndims++] = 1;
    if (ls_field_is_image(&f)) memcpy(f.name, "image", sizeof "image");
    return ls_source_add_field(&a->source, d->file.path, &f, e);
}

static ls_status add_label_field(arrays *a, const ls_array *l, ls_error *e) {
    ls_field f = {.name = "label", .type = LS_I32};
    if (!are_classes(l)) {
        f = (ls_field){.name = "target", .type = l->type, .ndims = l->ndims - 1};
        memcpy(f.dims, &l->dims[1], (size_t)f.ndims * sizeof *f.dims);
    }
    return ls_source_add_field(&a->source, l->file.path, &f, e);
}

static ls_status describe(arrays *a, ls_error *e) {
    ls_hasher *hasher = ls_hasher_new();
    a->begins = LS_NEW_ARRAY(uint64_t, a->n + 1);
    for (size_t i = 0; i < a->n; i++) {
        const ls_array *d = &a->data[i], *l = a->labels ? &a->labels[i] : NULL;
        a->begins[i + 1] = a->begins[i] + (uint64_t)d->dims[0];
        ls_hasher_add(hasher, &d->file.hash, sizeof d->file.hash);
        if (l) ls_hasher_add(hasher, &l->file.hash, sizeof l->file.hash);
        a->source.nfiles += l ? 2 : 1;
        a->source.file_nbytes += d->file.file_nbytes + (l ? l->file.file_nbytes : 0);
    }
    a->source.count = a->begins[a->n];
    a->source.hash = ls_hasher_finish(hasher);
    LS_TRY(add_data_field(a, a->data, e));
    if (!a->labels) return LS_OK;
    for (size_t i = 0; i < a->n && are_classes(a->labels); i++)
        LS_TRY(check_labels(&a->labels[i], e));
    return add_label_field(a, a->labels, e);
}

ls_status ls_arrays_open(const ls_files *files, const ls_source_options *options,
                         ls_array_header *header, ls_source **s_p, ls_error *e) {
    opening o = {options, header};
    arrays *a = LS_NEW(arrays);
    a->source.read = read_arrays;
    a->source.file = file_of;
    a->source.record = record_of;
    a->source.close = close_arrays;
    ls_status s = open_files(&o, files, a, e);
    if (s == LS_OK) s = check_same(a->data, a->n, e);
    if (s == LS_OK && a->labels) s = check_same(a->labels, a->n, e);
    if (s == LS_OK) s = check_counts(a, e);
    if (s == LS_OK) s = describe(a, e);
    if (s == LS_OK) return ls_filled_open(&a->source, options, files->paths[0], s_p, e);
    close_arrays(&a->source);
    return s;
}
