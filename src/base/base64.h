/* base64.h - bytes as text (RFC 4648, section 4), with padding and without line ends. */
#ifndef LS_BASE_BASE64_H
#define LS_BASE_BASE64_H

#include <stddef.h>

/* free() it. At most 1 GiB. */
char *ls_base64_encode(const void *data, size_t nbytes);

/* The bytes, and a 0 that is not counted; free() them. NULL: it is not base64. */
char *ls_base64_decode(const char *text, size_t *nbytes_p);

#endif
