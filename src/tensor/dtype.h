/* dtype.h - names and sizes of element types and operations; the public part is in group.h. */
#ifndef LS_TENSOR_DTYPE_H
#define LS_TENSOR_DTYPE_H

#include "lockstep/group.h"

/* Elements of a caller's own reduction (ls_reduction), of nbytes: any number up to LS_MOST_ELEMENT.
 * Only their size is known; ls_dtype_size() returns it. */
enum { LS_OWN_ELEMENTS = 256 };
static inline ls_dtype ls_dtype_own(size_t nbytes) {
    return (ls_dtype)(LS_OWN_ELEMENTS + (int)nbytes);
}
static inline bool ls_dtype_is_own(ls_dtype t) {
    return (unsigned)t - LS_OWN_ELEMENTS <= LS_MOST_ELEMENT;
}

/* The alignment of an element. */
size_t ls_dtype_align(ls_dtype dtype);
/* True if the operation is defined for elements of the type. */
bool ls_op_takes(ls_op op, ls_dtype dtype);
/* The types that it is defined for, for messages: "integers". */
const char *ls_op_takes_what(ls_op op);
/* True for bf16 and f16, which are widened to f32 for reductions. */
static inline bool ls_dtype_is_half(ls_dtype t) { return t == LS_BF16 || t == LS_F16; }

/* True for integers and bool. */
bool ls_dtype_is_whole(ls_dtype dtype);
/* The value of an integer or a bool; INT64_MAX if it is larger. */
int64_t ls_whole_at(ls_dtype dtype, const void *from);

/* Element i of a flat buffer. */
static inline const void *ls_flat_at(ls_dtype t, const void *flat, size_t i) {
    return (const char *)flat + i * ls_dtype_size(t);
}
static inline void *ls_flat_at_mut(ls_dtype t, void *flat, size_t i) {
    return (char *)flat + i * ls_dtype_size(t);
}

#endif
