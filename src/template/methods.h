/* methods.h - what methods of texts and filters share. */
#ifndef LS_TEMPLATE_METHODS_H
#define LS_TEMPLATE_METHODS_H

#include "template/value.h"

/* Python's str.strip(): white space, or the characters of argument 0, at the start, the end or
 * both.
 */
ls_status ls_text_strip(ls_rendering *, const ls_datum *text, const ls_template_arguments *,
                        int sides, ls_datum *x_p);
enum { LS_STRIP_LEFT = 1, LS_STRIP_RIGHT = 2 };

ls_status ls_text_replace(ls_rendering *, const ls_datum *text, const ls_template_arguments *,
                          ls_datum *x_p);
/* Upper or lower case; 'c': the first character upper, the others lower; 't': so each word. Letters
 * beyond ASCII are refused. */
ls_status ls_text_case(ls_rendering *, const ls_datum *text, char which, ls_datum *x_p);
/* The items of a list as texts, with `between` between them. */
ls_status ls_text_join(ls_rendering *, const ls_datum *list, const ls_datum *between,
                       ls_datum *x_p);
/* Keys and values of a dict, as lists of two. */
ls_status ls_dict_items(ls_rendering *, const ls_datum *dict, ls_datum *x_p);
/* Jinja's filter dictsort: these, sorted. */
ls_status ls_dict_sort(ls_rendering *, const ls_datum *dict, const ls_template_arguments *,
                       ls_datum *x_p);

#endif
