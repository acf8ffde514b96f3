/* classes.c - see classes.h. */
#include "source/classes.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Sets *at_p to the place of the text: where it is, or where it belongs. */
static bool search(const ls_classes *c, const char *text, size_t n, int *at_p) {
    int low = 0, high = c->n;
    while (low < high) {
        int middle = low + (high - low) / 2;
        int order = strncmp(c->names[middle], text, n);
        if (order == 0 && c->names[middle][n]) order = 1;
        if (order == 0) {
            *at_p = middle;
            return true;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *at_p = low;
    return false;
}

void ls_classes_add(ls_classes *c, const char *text, size_t n) {
    int at = 0;
    if (c->too_many || search(c, text, n, &at)) return;
    if (n > LS_CLASS_NBYTES || c->n == LS_CLASSES_MOST) {
        ls_classes_free(c);
        c->too_many = true;
        return;
    }
    c->names = ls_grow(c->names, (size_t)c->n, sizeof *c->names);
    memmove(c->names + at + 1, c->names + at, (size_t)(c->n - at) * sizeof *c->names);
    c->names[at] = ls_alloc(n + 1);
    memcpy(c->names[at], text, n);
    c->n++;
}

void ls_classes_join(ls_classes *c, const ls_classes *from) {
    for (int i = 0; i < from->n; i++) ls_classes_add(c, from->names[i], strlen(from->names[i]));
    if (!from->too_many) return;
    ls_classes_free(c);
    c->too_many = true;
}

int ls_classes_find(const ls_classes *c, const char *text, size_t n) {
    int at = 0;
    return search(c, text, n, &at) ? at : -1;
}

void ls_classes_free(ls_classes *c) {
    for (int i = 0; i < c->n; i++) free(c->names[i]);
    free(c->names);
    *c = (ls_classes){0};
}
