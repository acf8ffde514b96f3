/* mem.h - allocation at set-up, mapped pages, and growing strings.
 *
 * ls_alloc() and friends never return NULL: running out of memory at set-up ends the program with a
 * message, since nothing useful can be done. Large buffers whose size depends on the user's
 * settings come from ls_map(), which returns an error instead. Nothing here is called inside a
 * training step.
 */
#ifndef LS_BASE_MEM_H
#define LS_BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

void *ls_alloc(size_t nbytes); /* zeroed; the caller frees it */
void *ls_realloc(void *p, size_t nbytes);
/* Makes room for one more element behind the n of array p, which is NULL at n = 0, else the result
 * of the call before. The array doubles at powers of two, so n calls copy at most 2n elements. */
void *ls_grow(void *p, size_t n, size_t size);
char *ls_strdup(const char *s);
/* For qsort() of texts, in the order of their bytes. */
int ls_compare_texts(const void *a, const void *b);
/* printf into a new string; the caller frees it. */
char *ls_format(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#define LS_NEW(type)          ((type *)ls_alloc(sizeof(type)))
#define LS_NEW_ARRAY(type, n) ((type *)ls_alloc_array((n), sizeof(type)))
void *ls_alloc_array(size_t n, size_t size);

/* Zeroed private pages, 4 KiB aligned. `what` names the buffer in the error message. */
ls_status ls_map(size_t nbytes, const char *what, void **p_p, ls_error *);
/* Zeroed pages that are shared with processes that are forked later. */
ls_status ls_map_shared(size_t nbytes, const char *what, void **p_p, ls_error *);
void ls_unmap(void *p, size_t nbytes);

/* A growing array of bytes; always followed by a 0 that is not counted. */
typedef struct ls_buf {
    char *data;
    size_t len, cap;
} ls_buf;

void ls_buf_append(ls_buf *, const void *data, size_t nbytes);
void ls_buf_printf(ls_buf *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void ls_buf_free(ls_buf *);

#endif
