/* page_text.c - see page_text.h. The assembler reads the files; LS_WATCH_FOLDER is that of this
 * file. */
#include "watch/page_text.h"

#define PART(symbol, path)                                                                         \
    __asm__(".section .rodata\n.global " #symbol "\n.type " #symbol ", %object\n" #symbol ":\n"    \
            ".incbin \"" LS_WATCH_FOLDER path "\"\n.global " #symbol "_end\n" #symbol              \
            "_end:\n.byte 0\n.previous\n");                                                        \
    extern const char symbol[], symbol##_end[]

PART(ls_page_html, "/page/page.html");
PART(ls_page_css, "/page/page.css");
/* The script is one function, so that its names are its own. */
#define SCRIPT(name) ".incbin \"" LS_WATCH_FOLDER "/page/" name ".js\"\n"
__asm__(".section .rodata\n.global ls_page_js\n.type ls_page_js, %object\nls_page_js:\n"
        ".ascii \"\\\"use strict\\\";\\n(() => {\\n\"\n" /**/
        SCRIPT("base") SCRIPT("view") SCRIPT("runs") SCRIPT("list") SCRIPT("axis") SCRIPT("marks")
            SCRIPT("chart") SCRIPT("charts") SCRIPT("details") SCRIPT("workers") SCRIPT("timeline")
                SCRIPT("difference") SCRIPT("live") SCRIPT("begin") /**/
        ".ascii \"})();\\n\"\n.global ls_page_js_end\nls_page_js_end:\n.byte 0\n.previous\n");
extern const char ls_page_js[], ls_page_js_end[];

const ls_page_file ls_page_files[LS_NPAGE_FILES] = {
    [LS_PAGE_HTML] = {"", "text/html; charset=utf-8", ls_page_html, ls_page_html_end},
    [LS_PAGE_CSS] = {"page.css", "text/css; charset=utf-8", ls_page_css, ls_page_css_end},
    [LS_PAGE_JS] = {"page.js", "text/javascript; charset=utf-8", ls_page_js, ls_page_js_end},
};
