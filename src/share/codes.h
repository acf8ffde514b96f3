/* share/codes.h - gradients that are encoded: their pieces, and whose codes are sent to whom.
 *
 * Codes that are sent are decoded where they arrive, and summed there in the tree's order. Not
 * where each round is reduced, nor with estimates (EF21), which a code does not hold. Factors
 * always are sent, also by a worker to itself.
 */
#ifndef LS_SHARE_CODES_H
#define LS_SHARE_CODES_H

#include "share/share.h"

/* The pieces of a bucket, in ascending order; returns their number. What lies between them is no
 * parameter, and 0. */
int ls_share_pieces(const ls_share *, int bucket, const ls_code_piece **pieces_p);
/* The complete settings for a piece in a step. */
ls_compression ls_share_piece_how(const ls_share *, const ls_code_piece *, int64_t step);
/* Is a step's sum that of the new first moment, in place of the gradient? */
bool ls_share_sums_momentum(const ls_share *, int64_t step);

/* The virtual workers that have codes: all of them; of Deltas, the first of each replica. */
bool ls_share_is_coded(const ls_share *, int vw);
/* Their number among those of a worker, and among all before vw. */
int ls_share_ncoded(const ls_share *, int worker);
int ls_share_coded_before(const ls_share *, int vw);
/* The i-th of a worker's. */
int ls_share_coded(const ls_share *, int worker, int i);
/* The bytes of a virtual worker's code of a bucket that a worker decodes: the pieces in which its
 * part of the bucket (ls_share_owned()) lies. */
ls_range ls_share_code_part(const ls_share *, int bucket, int worker);
/* Bytes of a worker's own codes in a step; of those that it decodes; and of those that it sends in
 * the largest bucket, if it does not send all to all. */
size_t ls_share_own_codes_nbytes(const ls_share *, int worker);
size_t ls_share_all_codes_nbytes(const ls_share *, int worker);
size_t ls_share_sent_codes_nbytes(const ls_share *, int worker);

/* ---- gradients as two factors of low rank (compress/powersgd.c) ---- */

/* Each factor is summed by itself, on all workers. Needs a model whose matrices are undivided. Is a
 * parameter a matrix that might be sent as factors? Places all of them so that none is divided
 * among buckets. */
bool ls_share_is_matrix(const ls_param *);
void ls_share_place_matrices(ls_model *);
/* The piece of a parameter that has a second factor; NULL: it has none. */
const ls_code_piece *ls_share_factor_of(const ls_share *, const ls_param *);
/* Floats of a bucket that the exchange of a round sums: first factors and what is summed as it is,
 * or second factors. */
size_t ls_share_round_floats(const ls_share *, int bucket, int round);
/* Bytes of a worker's factors in a step. */
size_t ls_share_factors_nbytes(const ls_share *, int worker);

#endif
