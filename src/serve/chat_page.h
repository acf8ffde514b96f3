/* chat_page.h - the files of a page to chat with, which are built into the program. */
#ifndef LS_SERVE_CHAT_PAGE_H
#define LS_SERVE_CHAT_PAGE_H

#include <stdbool.h>

#include "http/server.h"

/* Answers with the file of this path, e.g. "/". False: there is none. */
bool ls_chat_page_answer(const char *path, ls_http_answer *);

#endif
