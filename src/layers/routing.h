/* routing.h - which experts compute a row, and with which weights.
 *
 * A row's experts are the k with the greatest logits, or other scores (router_bias.c); of equal
 * ones those with lower numbers. Their weights are those of the softmax over all logits, or of the
 * softmax over the chosen ones alone (normalized). Each expert's rows are in their order, so a
 * gradient of its weights is a chain over samples and positions that does not depend on
 * micro-batches.
 *
 * With a capacity, an expert takes at most that number of a sample's choices, in the order of rows,
 * and the others are dropped: they have no slot. The weights of a row's other choices stay.
 *
 * Shazeer et al., "Outrageously large neural networks: the sparsely-gated mixture-of-experts
 * layer", ICLR 2017; Jiang et al., "Mixtral of experts", 2024 (normalized weights).
 */
#ifndef LS_LAYERS_ROUTING_H
#define LS_LAYERS_ROUTING_H

#include "model/layer.h"

enum { LS_EXPERTS_MOST = 128 };

typedef struct ls_routing {
    int64_t rows, experts, k;
    bool normalized;
    int64_t sample, capacity; /* rows of a sample, choices that an expert takes of it; 0: all */
    int32_t *expert;          /* [rows, k] of each row, in ascending order */
    float *weight;            /* [rows, k] */
    int32_t *slot;   /* [rows, k] its place among all choices, sorted by expert, then by row; -1: it
                      * is dropped */
    int32_t *choice; /* [rows * k] of each place: row * k + i */
    int32_t *first;  /* [experts + 1] each expert's first place */
} ls_routing;

/* Floats of memory for the arrays, for each sample of T rows. */
size_t ls_routing_floats(int64_t T, int64_t experts, int64_t k);
/* Places the arrays at `memory`, of [rows * k * 4 + experts + 1] floats up to a multiple of 4;
 * returns its end. */
float *ls_routing_place(ls_routing *, float *memory);

/* The choices of a sample of T rows that an expert takes, with this factor: at least one. */
int64_t ls_routing_capacity(float factor, int64_t T, int64_t experts, int64_t k);

/* On the device of ls_compute, if it has one, of the arrays of which the host can read nothing. */

/* Chooses from scores [rows, experts] (NULL: logits), weighs by logits [rows, experts], and
 * sorts. */
void ls_routing_choose(const ls_compute *, const float *logits, const float *scores, ls_routing *);

/* Does a row with these scores [experts] choose one of the experts [first, end)? And the part of
 * rows that do, if all choices are as likely. */
bool ls_routing_has_chosen(const ls_chosen_rows *, const float *scores);
double ls_routing_part(const ls_chosen_rows *);

/* dlogits [rows, experts] from the gradients dweight [rows, k], 0 of what is dropped. */
void ls_routing_back(const ls_compute *, const float *logits, const float *dweight,
                     const ls_routing *, float *dlogits);

#endif
