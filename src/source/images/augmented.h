/* augmented.h - a source whose images are changed (augment.h): at random by draw(), for training,
 * and only padded and cropped at the centre by read(), for validation.
 */
#ifndef LS_SOURCE_IMAGES_AUGMENTED_H
#define LS_SOURCE_IMAGES_AUGMENTED_H

#include "source/images/augment.h"

/* Takes `from` over, also on failure. `what` (a path) names it in messages. LS_EINVAL: it has no
 * images, or they are too small for a crop. */
ls_status ls_augmented_open(ls_source *from, const ls_augment *, const char *what, ls_source **s_p,
                            ls_error *);

#endif
