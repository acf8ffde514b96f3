/* columns.h - how much room text takes on a terminal. */
#ifndef LS_BASE_COLUMNS_H
#define LS_BASE_COLUMNS_H

#include <stddef.h>

/* The columns of the terminal `fd` now; `otherwise` where it is none, or does not say. */
int ls_columns_of(int fd, int otherwise);

/* Bytes of UTF-8 text [n] whose characters take at most `most` columns: two for wide ones, none for
 * those that combine. What is no character takes one. Any thread. */
size_t ls_columns_cut(const char *text, size_t n, int most);

#endif
