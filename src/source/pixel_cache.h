/* pixel_cache.h - pixels of a source's images as they were decoded and scaled, in a file of the
 * cache: to decode a large photograph anew takes longer than a step of a small network.
 *
 *     DIR/index/NAME.pixels    a place for the images of each sample; NAME: a hash of the contents
 *                              of all files, the decoders, and how images are scaled
 *
 * Other contents or another scale have another file, so what is found is never of another image. A
 * place also has a hash of its pixels and its number: one that was never written, or only in part,
 * or is damaged is decoded again. So processes of several hosts may share the file without a lock.
 *
 * Any thread may call all but open and close.
 */
#ifndef LS_SOURCE_PIXEL_CACHE_H
#define LS_SOURCE_PIXEL_CACHE_H

#include "source/options.h"
#include "source/source.h"

/* NULL: there is none, since images are not scaled, or nothing may be kept. s: as it was opened,
 * with its hash; most_nbytes: of all places; further samples have none. */
ls_pixel_cache *ls_pixel_cache_open(const ls_source *s, const ls_source_options *o,
                                    const char *what);
void ls_pixel_cache_close(ls_pixel_cache *); /* NULL is fine */

/* The pixels of the field at this offset in sample i. False: they are not there, and `out` is
 * undefined. p may be NULL. */
bool ls_pixel_cache_get(const ls_pixel_cache *p, uint64_t i, size_t offset, void *out);
void ls_pixel_cache_put(ls_pixel_cache *p, uint64_t i, size_t offset, const void *in);

#endif
