/* sheet.h - a contact sheet: the first images of a source side by side, as a PNG file. */
#ifndef LS_REPORT_SHEET_H
#define LS_REPORT_SHEET_H

#include "base/file.h"
#include "source/source.h"

/* Writes n images at most, in rows, from left to right. A damaged sample stays blank.
 * Errors: LS_EINVAL: the source has no images, or the sheet would be too large. LS_EIO. */
ls_status ls_sheet_write(const ls_source *, int64_t n, const char *path, ls_file_writer *,
                         ls_error *);

#endif
