/* ids.h - which text is which id in the columns of a source of ratings or clicks, and how its
 * numbers were scaled: what later files and predictions need. A run keeps it as RUN/ids.json:
 *
 *     {"format": "lockstep ids", "version": 1,
 *      "columns": [{"name": "userId", "ids": ["17", "4", ...]}, ...],    id 0, id 1, ...
 *      "numbers": [{"name": "age", "mean": "0x1.8p+5", "times": "0x1p-3"}]}   (x - mean) times
 */
#ifndef LS_SOURCE_IDS_H
#define LS_SOURCE_IDS_H

#include "source/id_names.h"

#define LS_IDS_FILE "ids.json"
enum { LS_IDS_NBYTES = 1 << 30 }; /* at most */

typedef struct ls_id_column {
    char *name;
    ls_id_names ids;
} ls_id_column;

typedef struct ls_id_scale {
    char *name;
    double mean, times;
} ls_id_scale;

typedef struct ls_ids {    /* zero-initialised: empty */
    ls_id_column *columns; /* [n] in the order in which the model's ids follow each other */
    size_t n;
    ls_id_scale *numbers; /* [nnumbers] */
    size_t nnumbers;
} ls_ids;

/* Appends a column without ids; the pointer is valid until the next is added. */
ls_id_column *ls_ids_add_column(ls_ids *, const char *name);
void ls_ids_add_number(ls_ids *, const char *name, double mean, double times);
void ls_ids_free(ls_ids *);

void ls_ids_write(const ls_ids *, ls_buf *);
/* Reads the file in a run's or checkpoint's directory. LS_EIO: it is not there. LS_EINVAL: it is
 * damaged. */
ls_status ls_ids_read(const char *dir, ls_ids *i_p, ls_error *);

#endif
