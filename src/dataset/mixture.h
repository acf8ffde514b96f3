/* mixture.h - data.mix: several sources of samples, each with a weight.
 *
 *     - {path: photos.tar, weight: 1}
 *     - {path: drawings.csv, weight: 2.5, format: csv}
 *     - {path: x-idx3-ubyte, labels: x-idx1-ubyte}       weight 1
 *
 * What weights mean: data/mix.h.
 */
#ifndef LS_DATASET_MIXTURE_H
#define LS_DATASET_MIXTURE_H

#include "data/mix.h"
#include "source/source.h"

typedef struct ls_mixture_part {
    const char *path, *labels, *format; /* labels, format: NULL: not given */
    double weight;                      /* from 0.001 to 1000 */
} ls_mixture_part;

typedef struct ls_mixture {
    char *text; /* that the parts point into */
    int n;
    ls_mixture_part parts[LS_MIX_PARTS];
} ls_mixture;

/* Reads the key's value: a map a line, pairs separated by tabs (base/yaml.h). LS_EINVAL: an unknown
 * key, a value that is not possible, a part without a path, too many parts. */
ls_status ls_mixture_read(const char *text, ls_mixture *m_p, ls_error *);
void ls_mixture_free(ls_mixture *);

/* Opens all parts as one source (source/mixed.h). options: of each, but for labels and format,
 * which are the part's if it names them. dir: of relative paths. base: as of
 * ls_base_numbering_follow(). */
ls_status ls_mixture_open(const ls_mixture *, const char *dir, const ls_numbering *base,
                          const ls_source_options *, ls_source **s_p, ls_error *);

#endif
