/* filled.h - NaN in arrays stands for a missing value: as data.missing says, its sample is left
 * out, or the mean of the column stands for it. */
#ifndef LS_SOURCE_FORMATS_FILLED_H
#define LS_SOURCE_FORMATS_FILLED_H

#include "source/options.h"

/* Takes `from` over, whose fields have no numbering; nothing is done unless data.missing is set.
 * All samples are read. The rules name fields. what: names the files in messages. LS_EINVAL: a rule
 * names no field, a field without a rule has NaN, or no sample is left. */
ls_status ls_filled_open(ls_source *from, const ls_source_options *, const char *what,
                         ls_source **s_p, ls_error *);

#endif
