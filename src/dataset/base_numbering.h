/* base_numbering.h - how texts become numbers in a run that begins with the weights of another one
 * (train.from): as in that one, since its weights belong to these numbers.
 */
#ifndef LS_DATASET_BASE_NUMBERING_H
#define LS_DATASET_BASE_NUMBERING_H

#include "source/ids.h"
#include "source/source.h"

/* Lets a source that was just opened follow the base's numbering, with its own columns that the
 * base lacks. If its label has a text that the base lacks, the label has its own numbers, which is
 * logged. base: NULL or without columns: nothing is done. what: names the files. LS_EINVAL: another
 * column has such a text, or columns that are joined in one field are not there. */
ls_status ls_base_numbering_follow(ls_source *, const ls_numbering *base, const char *what,
                                   ls_error *);

/* Ids of ratings and clicks are in the order of their files. LS_EINVAL: they stand for others than
 * those of the base, a run or checkpoint, so its rows of weights would, too. Scales that differ are
 * logged. */
ls_status ls_base_ids_check(const ls_ids *, const char *base, ls_error *);

#endif
