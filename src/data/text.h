/* text.h - the text that a run is trained on: one file, or several, one after the other. */
#ifndef LS_DATA_TEXT_H
#define LS_DATA_TEXT_H

#include "base/file.h"

typedef struct ls_text {
    const uint8_t *data; /* [nbytes] */
    size_t nbytes;
    char *name;    /* for messages: "a.txt", or "a.txt and 2 more files" */
    ls_mapped one; /* where it is one file */
    void *joined;  /* where it is several */
} ls_text;

/* paths: files and patterns (as glob(7) has them), one a line. The files come in the order of the
 * lines, those that match a pattern in the order of their names' bytes; a file that several
 * patterns match comes once. A path that exists is no pattern.
 *
 * Errors: LS_EIO: a file can't be read. LS_EINVAL: a pattern matches no file; of several files, one
 * that is not UTF-8 (it is named). LS_ENOMEM. */
ls_status ls_text_open(const char *paths, ls_text *t_p, ls_error *);
void ls_text_close(ls_text *);

#endif
