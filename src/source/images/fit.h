/* fit.h - how images of any size become images of one size.
 *
 *     decoded -> upright (orientation.h) -> gray, if one channel is wanted -> scaled (resample.h)
 *     -> the centre -> three channels, if they are wanted
 *
 * What the keys leave open is decided once all sizes of a data set are known: images of one size
 * stay as they are, and those of several are scaled until they cover the model's input, or a square
 * if that is not decided, and lose what is beyond. Nothing is random.
 */
#ifndef LS_SOURCE_IMAGES_FIT_H
#define LS_SOURCE_IMAGES_FIT_H

#include "source/bytes.h"
#include "source/images/image.h"
#include "source/options.h"

enum { LS_IMAGE_USUAL_SIDE = 128 }; /* of the square, at most */

/* Reads the keys data.resize and data.crop: "", "64", "64x48" or "64\n48", height first. LS_EINVAL:
 * it is none of them. */
ls_status ls_image_way_read(const char *resize, const char *crop, ls_image_way *w_p, ls_error *);
/* Do keys say how images are read? */
bool ls_image_way_is_given(const ls_image_way *);

/* An image of a file: its upright shape, and whether EXIF says that the file's is another one. */
typedef struct ls_image_seen {
    ls_image_shape shape;
    bool turned;
} ls_image_seen;

/* The sizes of a data set's upright images; zero-initialised: none so far. */
typedef struct ls_image_sizes {
    uint32_t *list; /* [n] height << 16 | width; distinct ones after ls_image_sizes_end() */
    size_t n;
    uint64_t ncolour, ngray;
    uint64_t nturned; /* of which EXIF says that they are not upright */
    int64_t median;   /* of the shorter sides, once all are known */
} ls_image_sizes;

void ls_image_sizes_add(ls_image_sizes *, ls_image_seen);
void ls_image_sizes_end(ls_image_sizes *); /* no image follows */
void ls_image_sizes_free(ls_image_sizes *);
/* To an index, and from it: sizes that are not possible make the bytes bad. */
void ls_image_sizes_put(const ls_image_sizes *, ls_buf *);
void ls_image_sizes_take(ls_image_sizes *, ls_bytes *);

typedef enum ls_image_scaling {
    LS_IMAGE_AS_IT_IS,
    LS_IMAGE_TO_SIDE, /* the shorter side becomes `side` */
    LS_IMAGE_TO_SIZE, /* both become height, width */
    LS_IMAGE_TO_COVER /* the smallest of at least shape.height, shape.width with the same aspect */
} ls_image_scaling;

/* How images become a field; any threads may use it. */
typedef struct ls_image_fit {
    ls_image_scaling scaling;
    int64_t side, height, width;
    ls_image_shape shape; /* of the field: the centre */
    bool cuts;            /* data.crop is given: images as they are may have other sizes */
    bool unturned;
} ls_image_fit;

/* What is decided on. */
typedef struct ls_image_case {
    const ls_image_way *way; /* NULL: nothing is wanted */
    const ls_image_sizes *sizes;
    const char *field;
    const char *what; /* a path, which names the data in messages */
} ls_image_case;

/* Decides how the images of a field are read. Logs what no key
 * says, and notes in the source which side a square has that nobody has asked for, and that images
 * are turned. LS_EINVAL: an image has too few pixels for a crop. */
ls_status ls_image_fit_decide(const ls_image_case *, ls_image_fit *f_p, ls_source *, ls_error *);
/* Decides how a field of raw pixels, all of one shape, is read. */
ls_status ls_image_fit_of(const ls_image_way *, const ls_field *, const char *what,
                          ls_image_fit *f_p, ls_error *);

/* LS_EINVAL: as ls_image_inspect() says. */
ls_status ls_image_fit_inspect(bool unturned, const uint8_t *data, size_t nbytes,
                               ls_image_seen *s_p, ls_error *);
/* Decodes an image into out, of f->shape. LS_EINVAL: it is damaged, or is not what was decided. */
ls_status ls_image_fit_decode(const ls_image_fit *, const uint8_t *data, size_t nbytes,
                              uint8_t *out, ls_error *);
/* Fits pixels of shape s into out. */
ls_status ls_image_fit_pixels(const ls_image_fit *, const uint8_t *in, ls_image_shape s,
                              uint8_t *out, ls_error *);

#endif
