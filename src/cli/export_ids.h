/* export_ids.h - beside the exported weights of a recommender: which id is which row. */
#ifndef LS_CLI_EXPORT_IDS_H
#define LS_CLI_EXPORT_IDS_H

#include <stdbool.h>

#include "base/error.h"

/* Writes FILE.ids.json, a copy of the checkpoint's ids.json (source/ids.h), if it has one, and says so
 * unless `quiet`. */
ls_status cli_export_ids(const char *checkpoint, const char *file, bool quiet, ls_error *);

#endif
