/* text.h - the text that a run is trained on: one file, or several joined. */
#ifndef LS_DATA_TEXT_H
#define LS_DATA_TEXT_H

#include "base/file.h"
#include "base/stamp.h"

typedef struct ls_text {
    const uint8_t *data; /* [nbytes] */
    size_t nbytes;
    char *name;    /* for messages: "a.txt", or "a.txt and 2 more files" */
    ls_mapped one; /* } used if there is one file */
    char *path;    /* } */
    ls_stamp was;  /* } its state when it was opened */
    void *joined;  /* used if there are several */
    size_t size;   /* of what is joined */
} ls_text;

/* paths: files and patterns (glob(7)), one a line. Files are joined in the order of the lines;
 * those that match a pattern, in byte order of their names. A file that several patterns match is
 * taken once. A path that exists is not a pattern. Byte order marks are left out.
 *
 * Errors: LS_EIO: a file can't be read. LS_EINVAL: a pattern matches no file, or one of several
 * files is not UTF-8 (the message names it). LS_ENOMEM. */
ls_status ls_text_open(const char *paths, ls_text *t_p, ls_error *);
/* Called after the last use. LS_EIO: the file was written to, or truncated, meanwhile. */
ls_status ls_text_check(const ls_text *, ls_error *);
void ls_text_close(ls_text *);
/* Logs that the text has line ends other than LF, which are taken as they are. */
void ls_text_log_ends(const uint8_t *text, size_t nbytes, const char *name);

#endif
