/* methods.h - what methods, filters and operators share. */
#ifndef LS_TEMPLATE_METHODS_H
#define LS_TEMPLATE_METHODS_H

#include "template/value.h"

/* ---- texts ---- */

/* Python's str.strip(): white space, or the characters of `set` (NULL or none: not given), at the
 * start, the end or both. */
ls_status ls_text_strip(ls_rendering *, const ls_datum *text, const ls_datum *set, int sides,
                        ls_datum *x_p);
enum { LS_STRIP_LEFT = 1, LS_STRIP_RIGHT = 2 };

/* Replaces at most `most` times, below 0 always. */
ls_status ls_text_replace(ls_rendering *, const ls_datum *text, const ls_datum pair[2],
                          int64_t most, ls_datum *x_p);
/* Upper ('u') or lower ('l') case, or each the other ('s'); 'c': the first character upper, the
 * others lower; 't': so each word. Characters that would become several are refused. */
ls_status ls_text_case(ls_rendering *, const ls_datum *text, char which, ls_datum *x_p);
/* The items of a list as texts, with `between` between them. */
ls_status ls_text_join(ls_rendering *, const ls_datum *list, const ls_datum *between,
                       ls_datum *x_p);
/* For HTML: &, <, >, ' and ". The text is marked as safe. */
ls_status ls_text_escape(ls_rendering *, const ls_datum *text, ls_datum *x_p);
/* The lines of a text, as str.splitlines(). */
ls_status ls_text_lines(ls_rendering *, const ls_datum *text, bool ends, ls_datum *list_p);
/* Pads a text with `fill` to `width` characters; align: '<', '>' or '^'. */
ls_status ls_text_pad(ls_rendering *, const ls_datum *text, int64_t width, char align,
                      const ls_datum *fill, ls_datum *x_p);
/* Appends n times the character `fill`. */
void ls_text_fill(const ls_datum *fill, int64_t n, ls_buf *out);
const ls_template_entry *ls_text_method(const char *name);

/* text % values, and text.format(values). */
ls_status ls_text_printf(ls_rendering *, const ls_datum *text, const ls_datum *values,
                         ls_datum *x_p);
ls_status ls_text_format(ls_rendering *, const ls_datum *text, const ls_template_arguments *,
                         ls_datum *x_p);

/* How one value is formatted: [[fill]align][sign][#][0][width][,][.precision][type]. */
typedef struct ls_format_spec {
    ls_datum fill;    /* one character */
    char align, sign; /* 0: not given */
    bool alternate, zero;
    char group;               /* , _ or 0 */
    int64_t width, precision; /* -1: not given */
    char type;                /* 0: not given */
} ls_format_spec;
ls_status ls_format_integer(ls_rendering *, int64_t, const ls_format_spec *, ls_buf *);
ls_status ls_format_real(ls_rendering *, double, const ls_format_spec *, ls_buf *);
ls_status ls_format_text(ls_rendering *, const ls_datum *text, const ls_format_spec *, ls_buf *);

/* ---- lists ---- */

/* By what items are sorted, compared or grouped: a member of them, as "a.b.0", or the item
 * itself. */
typedef struct ls_item_key {
    const ls_datum *attribute; /* NULL or none: the item */
    const ls_datum *otherwise; /* where there is no such member; NULL: undefined */
    bool any_case;             /* texts in lower case */
} ls_item_key;
ls_status ls_item_key_of(ls_rendering *, const ls_item_key *, const ls_datum *item, ls_datum *x_p);

/* Sorts items [n] by their keys; equal ones keep their order. */
ls_status ls_items_sort(ls_rendering *, const ls_item_key *, bool down, const ls_datum *list,
                        ls_datum *sorted_p);
/* Keys and values of a dict, as tuples of two in a list. */
ls_status ls_dict_items(ls_rendering *, const ls_datum *dict, ls_datum *list_p);
/* The dict, sorted by its keys. */
ls_status ls_dict_by_key(ls_rendering *, const ls_datum *dict, ls_datum *dict_p);

/* ---- filters, by where they are ---- */

ls_template_function ls_filter_tojson;
extern const ls_template_entry ls_list_filters[], ls_number_filters[];

#endif
