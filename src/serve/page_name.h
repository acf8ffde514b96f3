/* page_name.h - names of pages by what they hold: SHA-256 of the page before, and of their tokens.
 * The name before a text's first page says which adapter the text has.
 *
 * Prompts come from strangers, so the hash must be one for which no two texts with the same name
 * can be found.
 */
#ifndef LS_SERVE_PAGE_NAME_H
#define LS_SERVE_PAGE_NAME_H

#include "serve/pages.h"

/* The name before a text's first page. adapter: its number; 0: none. */
ls_page_name ls_page_name_start(int adapter);
ls_page_name ls_page_name_of(const ls_page_name *before, const uint32_t *tokens, int n);

#endif
