/* published_record.h - what a run keeps of the published model that it began with (model.from), so that
 * it is complete without it: RUN/published.json has the architecture, with the ids of its tokens and
 * its greatest context, and the chat template.
 *
 *     {"config": {...}, "template": "..."}       config: as Hugging Face's config.json
 *
 * A run that begins with such a run (train.from) has a copy.
 */
#ifndef LS_STORAGE_PUBLISHED_RECORD_H
#define LS_STORAGE_PUBLISHED_RECORD_H

#include "config/config.h"
#include "weights/architecture.h"

#define LS_PUBLISHED_RECORD "published.json"

typedef struct ls_published_record {
    bool there; /* false: the run began with no published model, or is older than the file */
    ls_architecture arch;
    ls_buf template; /* empty: it has none */
} ls_published_record;

/* Writes the file of a run with this config, unless it is there or there is nothing to write. */
ls_status ls_published_record_make(const char *run, const ls_config *, ls_error *);

/* path: a run, or a checkpoint in one. LS_EINVAL: the file is damaged. */
ls_status ls_published_record_read(const char *path, ls_published_record *r_p, ls_error *);
void ls_published_record_free(ls_published_record *);

#endif
