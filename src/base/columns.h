/* columns.h - how many columns text takes on a terminal. */
#ifndef LS_BASE_COLUMNS_H
#define LS_BASE_COLUMNS_H

#include <stddef.h>

/* The current width of the terminal `fd`; `otherwise` if `fd` is not a terminal or does not report
 * a width. */
int ls_columns_of(int fd, int otherwise);

/* The current height of the terminal `fd`, in rows; else `otherwise`. */
int ls_columns_rows(int fd, int otherwise);

/* How many bytes of the UTF-8 text [n] fit into `most` columns: a wide character takes two, a
 * combining character none, a byte that is not UTF-8 one. Any thread. */
size_t ls_columns_cut(const char *text, size_t n, int most);

#endif
