/* fitted.h - a source of pixels, such as IDX or NumPy files have them, as data.resize and the like
 * say. Sources of image files do this themselves, since only they have images of several sizes.
 */
#ifndef LS_SOURCE_IMAGES_FITTED_H
#define LS_SOURCE_IMAGES_FITTED_H

#include "source/images/fit.h"

/* Takes `from` over, also on failure. It is returned as it is, if no key asks for a change, or it
 * has made the changes itself (ls_source.fits). `what` (a path) names it in messages. LS_EINVAL: it
 * has no images, or they are too small. */
ls_status ls_fitted_open(ls_source *from, const ls_image_way *, const char *what, ls_source **s_p,
                         ls_error *);

#endif
