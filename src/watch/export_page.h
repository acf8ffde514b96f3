/* export_page.h - the page as one file, with the runs in it, which opens without a server. */
#ifndef LS_WATCH_EXPORT_PAGE_H
#define LS_WATCH_EXPORT_PAGE_H

#include "watch/watcher.h"

/* Appends the page, with each run's curves in `columns` stretches, of a watcher that is settled. */
void ls_export_page(const ls_watcher *, int columns, ls_buf *out);

#endif
