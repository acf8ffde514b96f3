/* page_text.c - see page_text.h. The assembler reads the files; LS_WATCH_FOLDER is that of this file. */
#include "watch/page_text.h"

#define PART(symbol, path)                                                                         \
    __asm__(".section .rodata\n.global " #symbol "\n.type " #symbol ", %object\n" #symbol ":\n"    \
            ".incbin \"" LS_WATCH_FOLDER path "\"\n.global " #symbol "_end\n" #symbol              \
            "_end:\n.byte 0\n.previous\n");                                                        \
    extern const char symbol[], symbol##_end[]

PART(ls_page_html, "/page/page.html");
PART(ls_page_css, "/page/page.css");
PART(ls_page_js, "/page/page.js");

const ls_page_file ls_page_files[LS_NPAGE_FILES] = {
    [LS_PAGE_HTML] = {"", "text/html; charset=utf-8", ls_page_html, ls_page_html_end},
    [LS_PAGE_CSS] = {"page.css", "text/css; charset=utf-8", ls_page_css, ls_page_css_end},
    [LS_PAGE_JS] = {"page.js", "text/javascript; charset=utf-8", ls_page_js, ls_page_js_end},
};
