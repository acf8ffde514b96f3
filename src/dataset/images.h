/* images.h - how a run reads images: what its config and its model say, and what is measured. */
#ifndef LS_DATASET_IMAGES_H
#define LS_DATASET_IMAGES_H

#include "config/config.h"
#include "data/split.h"
#include "model/model.h"
#include "source/images/fit.h"

typedef struct ls_images {
    ls_image_way way; /* its fields are those below */
    ls_field fields[LS_SOURCE_FIELDS];
} ls_images;

/* Fills in *i, which must then stay where it is. m: the run's model; NULL: it is not built yet. The
 * shape that the model reads is wanted of each image, as it is before data.augment. LS_EINVAL: a
 * key is not possible. */
ls_status ls_images_of(const ls_config *, const ls_model *m, ls_images *i, ls_error *);

/* Replaces `data.normalize: auto` by mean and deviation of the pixels of the training part, whose
 * samples `files` has as the files have them. `what` names it in messages. LS_EINVAL: samples have
 * no image, or several. */
ls_status ls_images_measure(ls_config *, const ls_source *files, const ls_split *, const char *what,
                            ls_error *);

#endif
