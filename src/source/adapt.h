/* adapt.h - a source whose samples have the fields that a model reads, in the model's layout.
 *
 * Each wanted field is looked up by name. Its dimensions must be those that are wanted; dimensions
 * of 1 at the end don't count, so [28, 28] is [28, 28, 1], and one number is [1]. Its type may
 * differ where every value can be converted:
 *
 *     wanted     from
 *     f32        any number, rounded to the nearest f32
 *     whole      any whole number, and an f32 that has no others in its file; a value out of range
 *                is refused when it is read
 *     others     the same type
 *
 * Whole numbers in one dimension whose negative values are possible (`padded`) may come from a
 * list, or from fewer or more numbers: what is missing is -1, and what is too long is refused, or
 * cut at its end.
 */
#ifndef LS_SOURCE_ADAPT_H
#define LS_SOURCE_ADAPT_H

#include "source/source.h"

typedef struct ls_adapt_wanted {
    const ls_field *fields; /* [nfields] with their places in a sample */
    int nfields;
    const int *classes; /* [nfields] of a field with classes: its values are from 0 to this, without
                         * it; 0: the field has none */
    const bool *padded; /* [nfields] of these: negative values are possible, too; NULL: of none */
    const int *ignored; /* [nfields] of these: this one is read as -1; 0: none. NULL: of no field */
    bool cuts;          /* longer lists than those fields are cut */
    size_t nbytes;      /* size of a sample */
    const char *what;   /* names the data in messages: a path */
    int *missing_p;     /* the number of a field that `from` lacks, else unchanged; may be NULL */
} ls_adapt_wanted;

/* Takes `from` over, also on failure; copies what is wanted. LS_EINVAL: a field is missing, or
 * can't be converted. Its read() refuses values out of range, and NaN and infinities, with the
 * sample's number. */
ls_status ls_adapt(ls_source *from, const ls_adapt_wanted *, ls_source **s_p, ls_error *);

/* A number of a field as an f32, as a model reads it. */
float ls_adapt_real(ls_dtype, const uint8_t *);
/* Appends type and dimensions: "u8 [28, 28, 1]". */
void ls_field_put_shape(const ls_field *, ls_buf *);

#endif
