/* confusion.h - which classes a classifier takes for which: a matrix of counts, and its picture. */
#ifndef LS_REPORT_CONFUSION_H
#define LS_REPORT_CONFUSION_H

#include <stdint.h>

#include "base/mem.h"

typedef struct ls_confusion_matrix {
    int n;              /* classes */
    uint64_t *counts;   /* [n][n] samples of the first class that were taken for the second */
    char *const *names; /* [nnames] of the first classes; others are numbers */
    int nnames;
} ls_confusion_matrix;

/* From pairs [nsamples] of a predicted and the right class (negative: not counted), each `stride`
 * doubles after the one before. The caller frees counts. */
ls_confusion_matrix ls_confusion_of(const double *pairs, uint64_t nsamples, size_t stride, int n);

/* How well one class is predicted. */
typedef struct ls_class_score {
    uint64_t samples; /* whose right class it is */
    double precision,
        recall; /* parts of those taken for it, and of its samples; NaN: there are none */
    double f1;  /* their harmonic mean; 0 if both are */
} ls_class_score;
ls_class_score ls_confusion_score(const ls_confusion_matrix *, int class);
/* Appends a line for each class: name, samples, precision, recall, F1; and their means over the
 * classes that have samples or are predicted, where a missing figure of a class counts as 0. */
void ls_confusion_table(const ls_confusion_matrix *, ls_buf *);

/* A picture: a row for each right class, whose cells are coloured by their parts of the row;
 * recalls are at the right, precisions below. */
void ls_confusion_svg(const ls_confusion_matrix *, ls_buf *out);

#endif
