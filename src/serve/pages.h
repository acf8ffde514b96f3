/* pages.h - the memory of keys and values: pages of LS_KEPT_PAGE positions that texts share.
 *
 * Pages are parts of a file in memory (memfd). A text has a range of addresses of its own, into
 * which its pages are mapped one after the other, so that layers see one array, and a page that
 * several texts begin with is there once (as in vAttention, Prabhu et al., ASPLOS 2025; pages and
 * counts of users: Kwon et al., "PagedAttention", SOSP 2023). On a device they are parts of its
 * memory, and kernels read a page's place from the numbers of the text's pages (as in
 * PagedAttention).
 *
 * Each LS_PAGE_PART positions of a page that have been computed get a name, a hash of all tokens up
 * to their end and of what else decides the contents. A text shares a full page that has the right
 * name, and copies a page of which only the beginning has it. A page that no text uses stays until
 * its memory is needed; the page that has been unused for longest is reused first.
 */
#ifndef LS_SERVE_PAGES_H
#define LS_SERVE_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "device/device.h"
#include "tensor/kernels.h"

enum { LS_PAGE_NAME = 16, LS_PAGE_PART = 16, LS_PAGE_PARTS = LS_KEPT_PAGE / LS_PAGE_PART };

/* The name of a page's contents. */
typedef struct ls_page_name {
    unsigned char bytes[LS_PAGE_NAME];
} ls_page_name;

typedef struct ls_pages ls_pages;

/* n pages of page_nbytes, which become whole pages of the system; or, if a device is given, that
 * many in its memory. LS_ENOMEM, LS_EIO: there is no such memory. */
ls_status ls_pages_open(ls_device *, size_t page_nbytes, int n, ls_pages **p_p, ls_error *);
void ls_pages_close(ls_pages *);          /* after all views; NULL is fine */
size_t ls_pages_stride(const ls_pages *); /* bytes from one page of a view to the next */
int ls_pages_count(const ls_pages *);
int ls_pages_used(const ls_pages *); /* by views */

/* A text's pages. */
typedef struct ls_page_view {
    char *memory; /* [room] pages, of which the first n are there; of a device: all of its pages */
    int n, room;
    int *of; /* [n] their numbers */
} ls_page_view;

ls_status ls_page_view_open(const ls_pages *, int room, ls_page_view *v_p, ls_error *);
void ls_page_view_close(ls_pages *, ls_page_view *);
/* The view's last page is followed by a free one. False: there is none, or the system refuses
 * it. */
bool ls_page_view_grow(ls_pages *, ls_page_view *);
/* The same with the page whose last part has this name, whether or not other texts use it. False:
 * there is none. */
bool ls_page_view_find(ls_pages *, ls_page_view *, const ls_page_name *);
/* The same with a new page, a copy of one that has a part of this name. */
bool ls_page_view_copy(ls_pages *, ls_page_view *, const ls_page_name *);
/* All positions of the view up to the end of part i, counted from its first page's first part, are
 * computed, and nobody writes to them any more. */
void ls_page_view_name(ls_pages *, const ls_page_view *, int64_t i, const ls_page_name *);
/* Leaves all pages. */
void ls_page_view_clear(ls_pages *, ls_page_view *);

#endif
