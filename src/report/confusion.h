/* confusion.h - which classes a classifier takes for which: a matrix of counts, and its picture. */
#ifndef LS_REPORT_CONFUSION_H
#define LS_REPORT_CONFUSION_H

#include <stdint.h>

#include "report/canvas.h"

typedef struct ls_confusion {
    int n;              /* classes */
    uint64_t *counts;   /* [n][n] samples of the first class that were taken for the second */
    char *const *names; /* [nnames] of the first classes; others are numbers */
    int nnames;
} ls_confusion;

/* From pairs [nsamples] of a predicted and the right class (negative: not counted), each `stride`
 * doubles after the one before. The caller frees counts. */
ls_confusion ls_confusion_of(const double *pairs, uint64_t nsamples, size_t stride, int n);

/* A picture: a row for each right class, its cells coloured by their parts of the row, with its
 * recall at the right and the precisions below. The caller closes the canvas. */
void ls_confusion_draw(const ls_confusion *, bool is_svg, ls_canvas *);

#endif
