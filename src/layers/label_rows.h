/* label_rows.h - the rows of a call that have a label, times a table of classes, a block of rows at
 * a time (vocabulary.h): what the losses of language models share. Rows with a negative label
 * cost nothing: the others are gathered.
 *
 * The layer's field 0 has the labels, and its parameter 0 is the table. Its work memory begins with
 * the numbers of the rows that count (ls_label_rows_numbers() floats a sample); `own` floats for
 * the layer itself follow, then the block.
 */
#ifndef LS_LAYERS_LABEL_ROWS_H
#define LS_LAYERS_LABEL_ROWS_H

#include "layers/vocabulary.h"
#include "model/builder.h"

typedef struct ls_label_rows ls_label_rows;

struct ls_label_rows {
    const ls_layer *l;
    const ls_layer_call *c;
    size_t own;  /* floats, in this call */
    int64_t all; /* rows in the list */
    /* The factor of the gradient of a row of the call; on a device, scales has those of samples
     * (ls_vocabulary_targets). */
    float (*scale)(const ls_label_rows *, int64_t row);
    const float *scales;
    const int32_t *begins;
    const int32_t *row; /* [v.rows] the numbers of the block's rows */
    ls_vocabulary v;    /* the block */
};

/* What the layer declares for its table and its rows, beside its own. */
void ls_label_rows_declare(ls_layer *, int64_t C, int64_t V);
/* Floats of work memory: for the numbers of a sample's rows (even), and for a row of a block. */
size_t ls_label_rows_numbers(int64_t T);
size_t ls_label_rows_block(int64_t C, int64_t V);

/* The numbers of the call's rows, at the beginning of its work memory. */
int32_t *ls_label_rows_list(const ls_layer_call *);
/* Writes those of the rows with a label, or of all rows, which no device does, and sets b->all;
 * returns it. */
int64_t ls_label_rows_find(ls_label_rows *b, bool all);
/* The rows of the block that begins with `row`, a part of the list. */
int64_t ls_label_rows_count(const ls_label_rows *, const int32_t *row);

int32_t ls_label_of(const ls_layer *, const ls_layer_call *, int64_t row);

/* The layer, which has the labels of its rows, is the model's loss. all NULL: these are the
 * sample's rows; else a chunk of them, and `all` are the labels of the sample. */
void ls_labels_weigh(ls_model *, ls_layer *, ls_value *all);
/* The labels that those of a sample are counted in: of its rows, or all; and the field that has
 * them. */
int64_t ls_labels_all(const ls_layer *, int *field_p);
/* The rows of a sample, in all its chunks, that have a label. Needs ls_labels_weigh(). */
int64_t ls_labels_count(const ls_layer *, const ls_layer_call *, int64_t sample);

/* Opens the block of these rows, a part of the list, and computes its logits. *b must stay where it
 * is; l, c, own, scale and all are set. */
void ls_label_rows_open(ls_label_rows *b, const int32_t *row, int64_t rows);
/* From the losses of the block: the gradient of its logits, of the table, and of its rows in dx. */
void ls_label_rows_back(const ls_label_rows *);
/* dx = 0, if it is wanted. */
void ls_label_rows_clear(const ls_layer *, const ls_layer_call *);
/* The logits of all rows: y [n * T, V]. */
void ls_label_rows_logits(ls_label_rows *b);

#endif
