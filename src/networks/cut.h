/* cut.h - how a language model is cut: its products into slices (sliced.h), its samples into chunks
 * (chunked.h). Layers are added chunk by chunk, and of a chunk slice by slice, between those of
 * attention, which read the chunks of a sample, and those of experts (expert_groups.h).
 *
 *     for (int k = 0; k < c->chunks.n; k++) {
 *         ls_cut_begin(c, k);
 *         x[k] = ... x[k] ...
 *     }
 */
#ifndef LS_NETWORKS_CUT_H
#define LS_NETWORKS_CUT_H

#include "networks/chunked.h"
#include "networks/sequence.h"

typedef struct ls_cut {
    ls_sliced s;
    ls_chunked chunks;
    float dropout;     /* model.dropout; 0: none, as in a model that does not train */
    int block;         /* } whose layers are being added */
    int chunk;         /* } */
    ls_row_range rows; /* its rows */
} ls_cut;

/* As the config says. whole: of a model with the same parameters, and whole samples. */
ls_cut ls_cut_of(const ls_config *, bool whole, ls_model *);

/* Layers that are added next are those of the chunk, and its first slice; or of another slice. */
void ls_cut_begin(ls_cut *, int chunk);
void ls_cut_begin_slice(ls_cut *, int slice);

/* of [slices]: all rows of a chunk, for each slice; and the sum of what they compute. With one
 * slice these are x, and of [0]. The slice is 0 afterwards. */
void ls_cut_fork(ls_cut *, const ls_sequence *x, ls_value **of);
ls_sequence ls_cut_join(ls_cut *, ls_value **of);

/* x + y, which has dropout: what attention or the feed-forward layer adds to a chunk's rows of the
 * residual stream. And the rows of an embedding with dropout. */
ls_sequence ls_cut_add(const ls_cut *, const ls_sequence *x, const ls_sequence *y, ls_dropout_in);
ls_sequence ls_cut_embedded(const ls_cut *, const ls_sequence *);

/* What a slice of a chunk computes from x, in the model `of`. */
typedef ls_value *ls_cut_compute(void *of, ls_value *x);
/* The sum over the chunk's slices. */
ls_sequence ls_cut_in_slices(ls_cut *, const ls_sequence *x, ls_cut_compute *, void *of);

/* Attention of a model: the slice's queries, keys and values of a chunk; its heads, as a layer of
 * this name; and what the chunk's rows get from their result. */
typedef struct ls_cut_attention {
    void *of;
    const char *scope;
    ls_sequence_norm norm; /* of its inputs */
    ls_chunked_rows (*project)(void *of, ls_value *x);
    ls_attention_options (*heads)(void *of, const char *name);
    int64_t (*first_head)(void *of); /* of the slice, among the model's heads of queries */
    ls_cut_compute *project_out;
} ls_cut_attention;

/* added [chunks.n]: what attention adds to x [chunks.n]. */
void ls_cut_attend(ls_cut *, const ls_cut_attention *, const ls_sequence *x, ls_sequence *added);

/* The loss of the chunk's rows. targets: those of a sample. */
void ls_cut_loss(ls_cut *, const ls_sequence *x, ls_value *targets, ls_sequence_end);

#endif
