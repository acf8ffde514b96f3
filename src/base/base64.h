/* base64.h - bytes as text (RFC 4648, section 4): padded, without line breaks. */
#ifndef LS_BASE_BASE64_H
#define LS_BASE_BASE64_H

#include <stddef.h>

/* The caller frees the text. At most 1 GiB. */
char *ls_base64_encode(const void *data, size_t nbytes);

/* The bytes, followed by a 0 that is not counted; the caller frees them. NULL: the text is not
 * base64. */
char *ls_base64_decode(const char *text, size_t *nbytes_p);

#endif
