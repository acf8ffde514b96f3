/* classes.h - the distinct texts of a column, numbered in the order of their bytes. */
#ifndef LS_SOURCE_CLASSES_H
#define LS_SOURCE_CLASSES_H

#include <stdbool.h>
#include <stddef.h>

enum { LS_CLASSES_MOST = 1000, LS_CLASS_NBYTES = 256 };

typedef struct ls_classes { /* zero-initialised: empty */
    char **names;           /* [n] sorted by bytes */
    int n;
    bool too_many; /* over LS_CLASSES_MOST texts, or one over LS_CLASS_NBYTES bytes: not classes */
} ls_classes;

/* Adds text [n], which has no zero byte, unless it is there. Once there are too many, the names are
 * freed and nothing is added. */
void ls_classes_add(ls_classes *, const char *text, size_t n);
/* Adds those of `from`. */
void ls_classes_join(ls_classes *, const ls_classes *from);
/* The number of text [n], or -1. */
int ls_classes_find(const ls_classes *, const char *text, size_t n);
void ls_classes_free(ls_classes *);

#endif
