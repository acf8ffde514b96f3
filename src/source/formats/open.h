/* open.h - opens files as a source: finds their format, and its reader. */
#ifndef LS_SOURCE_FORMATS_OPEN_H
#define LS_SOURCE_FORMATS_OPEN_H

#include "source/options.h"

/* paths: one or several, or patterns, one a line (data.path). options may be NULL. Errors name the
 * file and what to do. */
ls_status ls_source_open(const char *paths, const ls_source_options *options, ls_source **s_p,
                         ls_error *);
/* Do samples of this format have different sizes and follow each other in files? Then samples that
 * are neighbours are read faster. */
bool ls_source_in_records(const char *format);

#endif
