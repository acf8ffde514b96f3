/* share/mesh.h - which layers a cell of the mesh has, and who writes which buckets: for passes.
 *
 * All layers that read a value are of one cell. If it is not the cell that computes the value, this
 * one sends the value there, and gets its gradient back.
 */
#ifndef LS_SHARE_MESH_H
#define LS_SHARE_MESH_H

#include "share/config.h"

/* The cell that runs the layer; its worker for the same virtual workers as `worker`. */
int ls_share_cell_of(const ls_share *, int layer);
int ls_share_runner(const ls_share *, int worker, int layer);
int ls_share_holder_of(const ls_share *, int bucket);
/* A worker's micro-batch, of all of a step. */
int ls_share_sequence(const ls_share *, int worker, int vw, int micro);
/* Does another cell read what this layer computes? */
bool ls_share_crosses(const ls_share *, int layer);
/* Is the layer's Backward two actions, one for its inputs and a later one for its parameters? */
bool ls_share_splits(const ls_share *, int layer);
/* The pass in which the layer computes gradients of its parameters. A layer that can't be split has
 * all of its Backward there: in the first pass if earlier layers wait for the gradients of its
 * inputs. */
ls_back ls_share_writes_in(const ls_share *, int layer);
/* The layers of a stage, [*first_p, *end_p). */
void ls_share_stage_layers(const ls_share *, int stage, int *first_p, int *end_p);

/* The buckets that have parameters of a layer, in ascending order; returns their number. */
int ls_share_touched(const ls_share *, int layer, const int **buckets_p);
/* Is the layer the first one of its holder and chunk that writes the bucket, in the order of
 * Backward, and of its passes? */
bool ls_share_opens(const ls_share *, int bucket, int layer);
/* Is it the last one of these? */
bool ls_share_closes(const ls_share *, int bucket, int layer);
/* The last one of a chunk among the workers that have the bucket; -1: none of the chunk writes
 * it. */
int ls_share_closer(const ls_share *, int bucket, int chunk);
/* Do layers of this chunk in a cell that does not have the bucket write a part of it? And the cell
 * that gets that part: of those that have the bucket, the one with the same chunks. */
bool ls_share_sends_part(const ls_share *, int bucket, int cell, int chunk);
int ls_share_receiver(const ls_share *, int bucket, int cell);
/* Do layers of the cell read or write the bucket's parameters? The part that they do. */
bool ls_share_touches(const ls_share *, int bucket, int cell);
ls_range ls_share_touched_part(const ls_share *, int bucket, int cell);

/* ---- how ls_share_make() fills the table ---- */

/* Cuts layers into stages, and finds the values that cells send each other. LS_EINVAL: it can't be
 * done. */
ls_status ls_share_cut_stages(ls_share *, ls_error *);
/* Before buckets are cut: lists where they end since a parameter follows one of another stage,
 * slice or chunk: in blocks around that place. */
void ls_share_list_ends(ls_share *);
void ls_share_cut_buckets(ls_share *);
/* Once there are buckets: finds who writes what. */
ls_status ls_share_assign_buckets(ls_share *, ls_error *);
/* Once each bucket has its workers: cuts it into shards. */
void ls_share_cut_shards(ls_share *);
void ls_share_cut_pieces(ls_share *);

#endif
