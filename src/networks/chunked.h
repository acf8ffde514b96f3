/* chunked.h - language models whose samples are cut into chunks (parallel.context_virtual), as
 * DeepSpeed-Ulysses cuts them: Jacobs et al., arXiv 2309.14509; or computed together, each a chunk
 * or several (parallel.expert_virtual).
 *
 * Chunk k of n has rows [T k / n, T (k + 1) / n) of a sample. Computations by row have a layer for
 * each chunk, and the layers of all chunks share their parameters. Attention has a layer for each
 * of several groups of heads: it reads the queries, keys and values of its heads from all chunks of
 * the sample, and these chunks read what it computes. The layers of a group belong to a chunk, so
 * workers that divide the chunks divide the groups, too.
 *
 * With parallel.expert_virtual E samples are computed together (ls_build_together()): the first
 * ones of the chunks are those of the first sample. Layers of experts read the chunks of all
 * samples (expert_groups.h).
 */
#ifndef LS_NETWORKS_CHUNKED_H
#define LS_NETWORKS_CHUNKED_H

#include "config/config.h"
#include "layers/layers.h"

enum { LS_CHUNKS_MOST = 8 };

typedef struct ls_chunked {
    ls_model *m;
    int64_t T;         /* rows of a sample; a multiple of `each` */
    int each, samples; /* chunks of a sample; samples that are computed together */
    int n;             /* each * samples */
    /* What the config says of `each` and `n`. In a model of whole samples these two are 1. */
    int each_planned, planned;
} ls_chunked;

/* Refuses what the keys can't have together, or a model that can't be cut. */
ls_status ls_chunked_check(const ls_config *, ls_error *);

/* cut: false: of a model with the same parameters, and whole samples. */
ls_chunked ls_chunked_of(const ls_config *, bool cut, ls_model *);
/* The rows of a chunk. */
int64_t ls_chunked_rows_each(const ls_chunked *);

/* Layers that are added next are those of the chunk. In a model of whole samples only the places of
 * their parameters are the chunk's. Returns its rows. */
ls_row_range ls_chunked_begin(const ls_chunked *, int chunk);
/* The chunk's numbers of a field that has one for each row; and all numbers of its sample. */
ls_value *ls_chunked_part(const ls_chunked *, const ls_value *field, int chunk);
ls_value *ls_chunked_field(const ls_chunked *, const ls_value *field, int chunk);
/* n chunks, from `first` on. */
typedef struct ls_chunk_range {
    int first, n;
} ls_chunk_range;
ls_chunk_range ls_chunked_all(const ls_chunked *);
ls_chunk_range ls_chunked_of_sample(const ls_chunked *, int sample);
/* The chunk's rows of y, which has those of all in the range; a layer with this name. */
ls_value *ls_chunked_cut(const ls_chunked *, ls_value *y, const char *name, ls_chunk_range,
                         int chunk);
/* The rows of the range's chunks, from x [range.n]. */
ls_value *ls_chunked_join(const ls_chunked *, ls_value *const *x, ls_chunk_range);
/* The value's layer, which has been added last, computes the range's chunks. */
ls_value *ls_chunked_spanning(const ls_chunked *, ls_value *, ls_chunk_range);

/* What attention reads of a chunk: queries, keys and values [T / n, ..], or one value of all. */
typedef struct ls_chunked_rows {
    ls_value *x[3]; /* [nx] */
    int nx;
} ls_chunked_rows;

typedef struct ls_chunked_heads {
    ls_attention_options o;
    ls_dropout_mask drop; /* `first` is the first head's number */
} ls_chunked_heads;

/* Attention by `heads` and `kv_heads` heads, of the rows of a sample's chunks: out [each] are each
 * chunk's. The name is that of the first group's layer. */
void ls_chunked_attend(const ls_chunked *, int sample, const ls_chunked_rows *rows,
                       ls_chunked_heads, ls_value **out);

#endif
