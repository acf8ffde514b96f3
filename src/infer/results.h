/* results.h - pictures of a trained classifier: which classes it confuses, and its worst
 * mistakes. */
#ifndef LS_INFER_RESULTS_H
#define LS_INFER_RESULTS_H

#include "dataset/dataset.h"
#include "model/model.h"
#include "report/confusion.h"

/* From the records (model/measure.h) of all samples of the validation part, if the model has a
 * confusion matrix: RUN/NAME.svg, by the metric's name; if samples are images:
 * RUN/mistakes.svg, a contact sheet of those with a wrong class and the highest losses, and
 * RUN/mistakes.csv, which says what they are. Prints their paths. A failure is logged. */
void ls_results_write(const ls_model *, const ls_dataset *, const double *records, const char *run);
/* The matrix of one measure, with the names of the classes, which are the data's. The caller frees
 * its counts. */
ls_confusion_matrix ls_results_confusion(const ls_model *, const ls_dataset *, const ls_measure *,
                                         const double *records);

#endif
