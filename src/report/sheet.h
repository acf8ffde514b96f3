/* sheet.h - a contact sheet: images of a source side by side, with captions, as SVG. */
#ifndef LS_REPORT_SHEET_H
#define LS_REPORT_SHEET_H

#include "base/file.h"
#include "source/survey.h"

typedef struct ls_sheet {
    const ls_source *source;
    const uint64_t *samples; /* [n] in rows, from left to right */
    char *const *captions;   /* [n] below each image, in one line or several; NULL: none */
    int64_t n;
} ls_sheet;

/* A damaged sample stays blank, and captions of more than about 24 letters lose their middle.
 * Errors: LS_EINVAL: the source has no images, or the sheet would be too large. LS_EIO. */
ls_status ls_sheet_write(const ls_sheet *, const char *path, ls_file_writer *, ls_error *);
/* Writes a sheet of at most n samples that a survey has picked: images of a class stand
 * together. */
ls_status ls_sheet_of(const ls_survey *, int64_t n, const char *path, ls_file_writer *, ls_error *);

#endif
