/* chat_page.c - see chat_page.h. The assembler reads the files; LS_SERVE_FOLDER is that of this
 * file. */
#include "serve/chat_page.h"

#include <string.h>

#define PART(symbol, path)                                                                         \
    __asm__(".section .rodata\n.global " #symbol "\n.type " #symbol ", %object\n" #symbol ":\n"    \
            ".incbin \"" LS_SERVE_FOLDER path "\"\n.global " #symbol "_end\n" #symbol              \
            "_end:\n.byte 0\n.previous\n");                                                        \
    extern const char symbol[], symbol##_end[]

PART(ls_chat_html, "/page/chat.html");
PART(ls_chat_css, "/page/chat.css");
PART(ls_chat_js, "/page/chat.js");

bool ls_chat_page_answer(const char *path, ls_http_answer *a) {
    static const struct {
        const char *path, *type, *text, *end;
    } files[] = {{"/", "text/html; charset=utf-8", ls_chat_html, ls_chat_html_end},
                 {"/chat.css", "text/css; charset=utf-8", ls_chat_css, ls_chat_css_end},
                 {"/chat.js", "text/javascript; charset=utf-8", ls_chat_js, ls_chat_js_end}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (strcmp(files[i].path, path) != 0) continue;
        a->type = files[i].type;
        a->text = files[i].text;
        a->ntext = (size_t)(files[i].end - files[i].text);
        return true;
    }
    return false;
}
