/* predictions.h - what a model predicts of samples, as rows of CSV or JSON lines.
 *
 *     sample,file,label,label_probability          CLASSES: the most probable class
 *     0,cat/tabby.jpg,cat,0.931
 *
 *     {"sample":0,"file":"cat/tabby.jpg","label":[{"class":"cat","probability":0.931}, ...]}
 *
 * The sample's number is followed by keys, as the data have them: the name of a file and the row in
 * it, or a user and an item. With `top` k above 1 there are the k most probable classes, in CSV as
 * label_1, label_1_probability, label_2, ...; among equal ones the lower class comes first. A
 * sample with several rows of classes (a label for each pixel) has the most probable class of each.
 * CHANCES, NUMBERS and SCORES are numbers: one column, or NAME_0, NAME_1, ...
 */
#ifndef LS_REPORT_PREDICTIONS_H
#define LS_REPORT_PREDICTIONS_H

#include "base/mem.h"
#include "model/prediction.h"

enum { LS_PREDICTED_TOP = 1000 };

/* Appends the name of a class that ls_predictor_output.classes does not have. arg: the writer's. */
typedef void ls_put_class(const void *arg, int64_t class, ls_buf *);

enum { LS_PREDICTED_KEYS = 2 };

typedef struct ls_predicted_key {
    const char *name; /* of the column */
    bool is_number;
} ls_predicted_key;

/* A sample that is predicted. */
typedef struct ls_predicted_sample {
    uint64_t number;
    ls_buf keys[LS_PREDICTED_KEYS];      /* texts, each with a 0 at its end */
    const float *values[LS_PREDICTIONS]; /* of each output; NULL: none, its cells are empty */
} ls_predicted_sample;

typedef struct ls_predictions {
    bool json, logits;                        /* logits: not probabilities */
    ls_predicted_key keys[LS_PREDICTED_KEYS]; /* [nkeys] */
    int nkeys;
    int64_t top;                     /* classes of a sample */
    const ls_predictor_output *list; /* [n] */
    int n;
    ls_put_class *put_class; /* NULL: classes without names are numbers */
    const void *arg;
} ls_predictions;

/* LS_EINVAL: top is not possible. */
ls_status ls_predictions_check(const ls_predictions *, ls_error *);
/* CSV: the line of the columns' names. */
void ls_predictions_begin(const ls_predictions *, ls_buf *);
void ls_predictions_add(const ls_predictions *, const ls_predicted_sample *, ls_buf *);

/* top [k]: the numbers of the greatest of x [n], in order; of equal ones the first. Those that are
 * not a number come last. Returns how many there are: k, or n if that is less. */
int64_t ls_top_of(const float *x, int64_t n, int64_t k, int64_t *top);

/* Appends a cell of CSV, in quotes; or in quotes only if it needs them. */
void ls_csv_quote(ls_buf *, const char *text);
void ls_csv_put(ls_buf *, const char *text);

#endif
