/* export_ids.c - see export_ids.h. */
#include "cli/export_ids.h"

#include <stdlib.h>

#include "base/file.h"
#include "base/output.h"
#include "base/print.h"
#include "source/ids.h"

ls_status cli_export_ids(const char *checkpoint, const char *file, bool quiet, ls_error *e) {
    char *from = ls_format("%s/" LS_IDS_FILE, checkpoint), *to = ls_format("%s.ids.json", file);
    ls_buf text = {0};
    bool there = ls_file_exists(from);
    ls_status s = there ? ls_file_read(from, LS_IDS_NBYTES, &text, e) : LS_OK;
    if (there && s == LS_OK) s = ls_output_write(to, text.data, text.len, e);
    if (there && s == LS_OK && !quiet) ls_print("%s: which id is which row\n", to);
    ls_buf_free(&text);
    free(from);
    free(to);
    return s;
}
