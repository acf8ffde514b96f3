/* pages.h - pages of memory that are given back to the system, and those that must stay.
 *
 * A driver copies to and from the pages that it has pinned, whatever the process does to its
 * mapping: where these were given back, the next access gets other pages, and a copy silently reads
 * and writes the old ones. */
#ifndef LS_BASE_PAGES_H
#define LS_BASE_PAGES_H

#include <stddef.h>

/* Memory that a driver has pinned for this process, until it is let go; several holders may hold
 * the same. Any thread. */
void ls_pages_hold(const void *p, size_t nbytes);
void ls_pages_let_go(const void *p);

/* Returns the whole pages of this memory to the system, unless a part is held: they read as zeros.
 * Shared memory is removed from its file. Any thread. */
void ls_pages_return(void *p, size_t nbytes);

/* Sets memory, of whole pages, to zeros: pages that are in memory, which another process may hold,
 * stay there; others are returned. */
void ls_pages_clear(void *p, size_t nbytes);

#endif
