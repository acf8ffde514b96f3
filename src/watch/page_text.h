/* page_text.h - the files of the page, as parts of the program. */
#ifndef LS_WATCH_PAGE_TEXT_H
#define LS_WATCH_PAGE_TEXT_H

#include <stddef.h>

typedef struct ls_page_file {
    const char *name, *type;
    const char *text, *end;
} ls_page_file;

enum { LS_PAGE_HTML, LS_PAGE_CSS, LS_PAGE_JS, LS_NPAGE_FILES };
extern const ls_page_file ls_page_files[LS_NPAGE_FILES];

#endif
