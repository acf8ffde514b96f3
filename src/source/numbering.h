/* numbering.h - how texts of files became numbers, and what stands for missing values.
 *
 * A reader numbers the texts of a column, and the directories of images, in the order of their
 * bytes: another file with other texts has other numbers. What one source has decided is therefore
 * a value of its own, which other sources of the same run follow (ls_source_follow()): those of
 * data.mix, those of data.val_path, and later files that are evaluated. A run's data.json has it.
 */
#ifndef LS_SOURCE_NUMBERING_H
#define LS_SOURCE_NUMBERING_H

#include "base/error.h"
#include "base/json.h"
#include "source/classes.h"

typedef struct ls_numbered {
    char *name;    /* of the column, member or feature in the files */
    char *field;   /* the field that it is, or a part of */
    bool joined;   /* it is one number of that field, which others follow in this order */
    bool text;     /* its values are texts */
    ls_classes in; /* text: their numbers; empty: each source has its own */
    bool fills;    /* `mean` stands for a missing value */
    double mean;   /* of nvalues */
    uint64_t nvalues;
} ls_numbered;

typedef struct ls_numbering { /* zero-initialised: none */
    ls_numbered *list;        /* [n] in the order of the files */
    size_t n;
} ls_numbering;

/* Appends a code, which owns copies of both texts; the pointer is valid until the next is added. */
ls_numbered *ls_numbering_add(ls_numbering *, const char *name, const char *field);
/* The code of this name; the search begins at number `near`. NULL: there is none. */
const ls_numbered *ls_numbering_find(const ls_numbering *, const char *name, size_t near);
ls_numbering ls_numbering_copy(const ls_numbering *);
void ls_numbering_free(ls_numbering *);
bool ls_numbering_same(const ls_numbering *, const ls_numbering *);

/* Unites the numberings of several sources: where one source has texts all have, with a number for
 * each text of any source, and means are those of all values. The fields are those of the first
 * source. */
ls_numbering ls_numbering_unite(const ls_numbering *const *parts, int n);

ls_classes ls_classes_copy(const ls_classes *);
/* Are all names of `part` among these? LS_EINVAL: the message names those that are not, the file
 * `what` and the field. */
ls_status ls_classes_check(const ls_classes *part, const ls_classes *all, const char *what,
                           const char *field, ls_error *);

/* A list of objects, for data.json; the caller owns it. */
ls_json *ls_numbering_json(const ls_numbering *);
/* NULL has none. False: it is no such list. */
bool ls_numbering_read(const ls_json *, ls_numbering *c_p);

#endif
