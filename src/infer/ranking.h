/* ranking.h - how high a model ranks the items that were held out: HR@k and NDCG@k of users.
 *
 * full: all items that the user has not chosen in the training part are ranked by their scores, of
 * equal ones those with lower numbers first. HR@k is 1 if one of the user's held-out items is among
 * the first k. NDCG@k is the sum of 1 / log2(rank + 1) over those that are (rank from 1), divided
 * by its largest possible value. Both are means over users.
 *
 * sampled: each held-out item is ranked among c items without any interaction of the user, which
 * are drawn by its number. HR@k is the part of them among the first k, NDCG@k the mean of 1 /
 * log2(rank + 1), or 0 beyond k. Jarvelin & Kekalainen, "Cumulated gain-based evaluation of IR
 * techniques", ACM TOIS 20 (2002) 422-446.
 *
 * The two are not comparable: Krichene & Rendle, "On sampled metrics for item recommendation", KDD
 * 2020. */
#ifndef LS_INFER_RANKING_H
#define LS_INFER_RANKING_H

#include "dataset/dataset.h"
#include "infer/infer.h"
#include "report/evaluation.h"

typedef struct ls_ranking ls_ranking;

/* Does the model have such metrics? */
bool ls_ranking_is_wanted(const ls_model *);
/* The infer must outlive it. nusers: the number of users that are ranked, spread evenly over those
 * with held-out items; 0, or more than there are: all of these. LS_EINVAL: the data have no
 * interactions, or the model does not read user and items. */
ls_status ls_ranking_open(const ls_infer *, const ls_dataset *, uint64_t nusers, ls_ranking **r_p,
                          ls_error *);
void ls_ranking_close(ls_ranking *); /* NULL is fine */
uint64_t ls_ranking_users(const ls_ranking *);
/* Numbers of a record, of one user. */
size_t ls_ranking_size(const ls_ranking *);
/* The record of user i of those that count. */
ls_status ls_ranking_record(ls_ranking *, uint64_t i, double *record, ls_error *);
/* Appends the metrics, from the records of all users. */
void ls_ranking_add(const ls_ranking *, const double *records, ls_evaluation *);

#endif
