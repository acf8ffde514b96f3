/* chunked.h - language models whose samples are cut into chunks (parallel.context_virtual), as
 * DeepSpeed-Ulysses cuts them: Jacobs et al., arXiv 2309.14509; or whose chunks are whole samples
 * (parallel.expert_virtual).
 *
 * Chunk k of n has rows [T k / n, T (k + 1) / n) of a sample. What is computed by row has a layer for
 * each chunk, and the layers of all chunks share their parameters. Attention has a layer for each of
 * several groups of heads: it reads the queries, keys and values of its heads from all chunks, and
 * all chunks read what it computes. The layers of a group belong to a chunk, so workers that divide
 * the chunks divide the groups, too.
 *
 * With parallel.expert_virtual n samples are computed together (ls_build_together()), chunk k the
 * k-th of them: attention, too, has a layer for each. In both, layers of experts read all chunks
 * (expert_groups.h).
 */
#ifndef LS_NETWORKS_CHUNKED_H
#define LS_NETWORKS_CHUNKED_H

#include "config/config.h"
#include "layers/layers.h"

enum { LS_CHUNKS_MOST = 8 };

typedef struct ls_chunked {
    ls_model *m;
    int n;
    int64_t T;     /* rows of a sample; a multiple of n, unless a chunk is a sample */
    bool together; /* a chunk is a sample */
} ls_chunked;

/* Refuses what the keys can't have together, or a model that can't be cut. */
ls_status ls_chunked_check(const ls_config *, ls_error *);

/* The config's chunks. */
int ls_chunked_count(const ls_config *);
/* The rows of a chunk. */
int64_t ls_chunked_rows_each(const ls_chunked *);

/* Layers that are added next are those of chunk k. Returns its rows. */
ls_row_range ls_chunked_begin(const ls_chunked *, int chunk);
/* The chunk's numbers of a field's part that has one for each row. */
ls_value *ls_chunked_part(const ls_chunked *, const ls_value *field, int chunk);
/* The chunk's rows of y, which has those of all; a layer with this name. */
ls_value *ls_chunked_cut(const ls_chunked *, ls_value *y, const char *name, int chunk);
/* The rows of all chunks, from x [n]. */
ls_value *ls_chunked_join(const ls_chunked *, ls_value *const *x);
/* The value's layer, which has been added last, computes samples of all chunks. */
ls_value *ls_chunked_spanning(const ls_chunked *, ls_value *);

/* What attention reads of a chunk: queries, keys and values [T / n, ..], or one value of all. */
typedef struct ls_chunked_rows {
    ls_value *x[3]; /* [nx] */
    int nx;
} ls_chunked_rows;

/* Attention by `heads` and `kv_heads` heads, of all chunks' rows: out [n] are each chunk's. The name
 * is that of the first group's layer. */
void ls_chunked_attend(const ls_chunked *, const ls_chunked_rows *rows, ls_attention_options,
                       ls_value **out);

#endif
