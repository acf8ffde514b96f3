/* pixels.h - data.normalize of pixels: what they become before the first layer. Of columns:
 * scales.h.
 *
 *     {mean: [0.5], deviation: [0.25]}    (x / 255 - mean) / deviation, by channel
 *     auto                                as measured on the training part, which replaces it
 */
#ifndef LS_NETWORKS_PIXELS_H
#define LS_NETWORKS_PIXELS_H

#include "config/config.h"
#include "lockstep/model.h"

typedef struct ls_pixel_scale {
    ls_normalize_options numbers; /* the first [channels] */
    int channels;                 /* 0: none, pixels become numbers from -1 to 1 */
} ls_pixel_scale;

/* Is data.normalize a word that data replace by numbers? */
bool ls_pixels_are_open(const ls_config *);
/* LS_EINVAL: it is neither of the above. */
ls_status ls_pixels_read(const ls_config *, ls_pixel_scale *s_p, ls_error *);
/* Writes it as a config has it, with 6 digits. */
void ls_pixels_write(const ls_pixel_scale *, ls_config_tree *);

#endif
