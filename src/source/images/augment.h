/* augment.h - random changes of images during training: of places, sizes and colours.
 *
 * A list of steps, as the key data.augment has them, applied in their order:
 *
 *     - flip: 0.5       mirrored left to right with this probability
 *     - pad: 4          this number of pixels of zeros is added at each of the four sides
 *     - crop: 28x24     a rectangle of this height and width, at a random place; `crop: 28` is a
 *                       square
 *     - cutout: 8       a square of zeros with this side, centred at a random pixel; parts beyond
 *                       the edges are cut off (DeVries & Taylor, arXiv:1708.04552)
 *     - resized_crop: 64x48   a rectangle at a random place, with a random area and a random ratio
 *                       of its sides, scaled to this height and width (Szegedy et al.,
 *                       arXiv:1409.4842). Its area is at least 0.08 of the image's, or `scale` of
 *                       it ({resized_crop: 64, scale: 0.5}), the ratio 3:4 to 4:3
 *     - brightness: 0.4   a factor from 1 - 0.4, but at least 0, to 1 + 0.4
 *     - contrast: 0.4     the same
 *     - saturation: 0.4   the same
 *     - hue: 0.1        turned by at most this part of the circle of colours; at most 0.5
 *
 * What is drawn is a function of the seed, the epoch, the sample's number and the step's place in
 * the list: the same for any number of workers and threads. All images of a sample are changed in
 * the same way. For validation nothing is random: images are padded, cropped at the centre
 * (resized_crop: the largest part of this ratio, scaled), and not changed otherwise.
 *
 * Not here: normalizing, which is part of the model.
 */
#ifndef LS_SOURCE_IMAGES_AUGMENT_H
#define LS_SOURCE_IMAGES_AUGMENT_H

#include "source/source.h"

enum { LS_AUGMENT_STEPS = 15 };

typedef enum ls_augment_kind {
    LS_AUGMENT_FLIP,
    LS_AUGMENT_PAD,
    LS_AUGMENT_CROP,
    LS_AUGMENT_CUTOUT,
    LS_AUGMENT_RESIZED_CROP,
    LS_AUGMENT_BRIGHTNESS,
    LS_AUGMENT_CONTRAST,
    LS_AUGMENT_SATURATION,
    LS_AUGMENT_HUE
} ls_augment_kind;

typedef struct ls_augment_step {
    ls_augment_kind kind;
    double p;              /* probability of a flip; how much a colour changes */
    double scale;          /* of a resized crop: its least part of the area */
    int64_t height, width; /* pixels; of a pad or cut-out, both are the same */
} ls_augment_step;

typedef struct ls_augment {
    int nsteps; /* 0: nothing is changed */
    ls_augment_step steps[LS_AUGMENT_STEPS];
} ls_augment;

/* Reads the key's value: a step a line, "crop=28x24" (base/yaml.h). LS_EINVAL: an unknown step, a
 * value that is not possible, too many steps. */
ls_status ls_augment_read(const char *text, ls_augment *a_p, ls_error *);

/* The shape of an image after all steps, in the dimensions of `image`; `what` names the data in
 * messages. LS_EINVAL: a crop is larger than the image is then, or gray images are to get other
 * colours. */
ls_status ls_augment_shape(const ls_augment *, const char *what, ls_field *image, ls_error *);

/* The other way: the shape before all steps, of an image that has the field's after them. False: it
 * may be any, since a step cuts a rectangle out of it; the field is unchanged. */
bool ls_augment_shape_before(const ls_augment *, ls_field *image);

/* in: an image of this field's shape, LS_U8; out: one of the shape that ls_augment_shape() gives.
 * draw NULL: for validation. They do not overlap. */
void ls_augment_apply(const ls_augment *, const ls_draw *, const ls_field *image, const uint8_t *in,
                      uint8_t *out);

#endif
