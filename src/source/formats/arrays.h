/* arrays.h - a source over arrays whose first dimension counts samples: IDX and .npy files.
 *
 * Files of data come with or without files of labels, as many as there are files of data, in the
 * same order. A label of a whole number becomes the field "label" (LS_I32); any other one becomes
 * the field "target".
 */
#ifndef LS_SOURCE_FORMATS_ARRAYS_H
#define LS_SOURCE_FORMATS_ARRAYS_H

#include "data/files.h"
#include "source/options.h"
#include "source/plain.h"
#include "source/source.h"

enum { LS_ARRAY_DIMS = LS_FIELD_DIMS + 1 };

typedef struct ls_array {
    ls_plain file;
    ls_dtype type;
    bool swapped; /* bytes are in the other order than the machine's */
    int ndims;    /* at least 1 */
    int64_t dims[LS_ARRAY_DIMS];
    size_t at;      /* offset of the first element in the file */
    size_t nbytes;  /* size of an element along the first dimension */
    bool is_pixels; /* [n,h,w] are images of one channel */
} ls_array;

/* Reads the header of a->file: sets type, swapped, ndims, dims and at. */
typedef ls_status ls_array_header(ls_array *a, ls_error *);

ls_status ls_arrays_open(const ls_files *, const ls_source_options *, ls_array_header *,
                         ls_source **s_p, ls_error *);

#endif
