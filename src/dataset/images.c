/* images.c - see images.h. */
#include "dataset/images.h"

#include <math.h>
#include <stdlib.h>

#include "base/cores.h"
#include "networks/fields.h"
#include "networks/pixels.h"
#include "source/images/augment.h"
#include "tensor/pool.h"

/* ---- what is wanted ---- */

/* Appends the shape that images of a field have before data.augment. */
static void add_wanted(ls_images *i, const ls_augment *a, const ls_field *f) {
    if (!ls_field_is_image(f) || i->way.nfields == LS_SOURCE_FIELDS) return;
    ls_field *to = &i->fields[i->way.nfields++];
    *to = *f;
    if (!ls_augment_shape_before(a, to)) to->dims[0] = to->dims[1] = 0;
}

ls_status ls_images_of(const ls_config *c, const ls_model *m, ls_images *i, ls_error *e) {
    ls_augment a;
    LS_TRY(ls_image_way_read(c->data.resize, c->data.crop, &i->way, e));
    LS_TRY(ls_augment_read(c->data.augment, &a, e));
    i->way.unturned = !c->data.exif;
    i->way.channels = c->data.channels == LS_CHANNELS_AUTO ? 0
                      : c->data.channels == LS_CHANNELS_1  ? 1
                                                           : 3;
    i->way.fields = i->fields;
    for (int k = 0; m && k < m->ninputs; k++) add_wanted(i, &a, &m->inputs[k]);
    if (m || !*c->model.input.text) return LS_OK;
    ls_fields *f = LS_NEW(ls_fields);
    ls_status s = ls_fields_read(&c->model.input, f, e);
    for (int k = 0; s == LS_OK && k < f->n; k++) add_wanted(i, &a, &f->list[k]);
    free(f);
    return s;
}

/* ---- mean and deviation ---- */

/* Sums of pixels and of their squares, in whole numbers: their order does not matter. */
typedef struct sums {
    uint64_t x[3], xx[3];
    ls_status status;
    ls_error error;
} sums;

typedef struct measuring {
    const ls_source *files;
    const ls_split *split;
    const ls_field *image;
    sums *of; /* one for each thread */
} measuring;

static void add_pixels(sums *s, const uint8_t *pixels, const ls_field *f) {
    size_t channels = (size_t)f->dims[2];
    for (size_t i = 0; i < f->nbytes; i += channels)
        for (size_t c = 0; c < channels; c++) {
            s->x[c] += pixels[i + c];
            s->xx[c] += (uint64_t)pixels[i + c] * pixels[i + c];
        }
}

static void measure_share(void *arg, int thread, int nthreads) {
    const measuring *m = arg;
    sums *s = &m->of[thread];
    int64_t i = 0, end = 0;
    uint8_t *sample = ls_alloc(m->files->nbytes);
    ls_pool_share((int64_t)m->split->ntrain, 1, thread, nthreads, &i, &end);
    for (; i < end && s->status == LS_OK; i++) {
        uint64_t at = ls_split_train(m->split, (uint64_t)i);
        s->status = m->files->read(m->files, at, sample, &s->error);
        if (s->status == LS_OK) add_pixels(s, sample + m->image->offset, m->image);
    }
    free(sample);
}

static ls_status sum_pixels(measuring *m, sums *all, ls_error *e) {
    int n = ls_cores();
    ls_pool *pool = NULL;
    LS_TRY(ls_pool_create(n, &pool, e));
    m->of = LS_NEW_ARRAY(sums, (size_t)n);
    ls_pool_run(pool, measure_share, m);
    ls_pool_free(pool);
    *all = (sums){0};
    for (int t = 0; t < n && all->status == LS_OK; t++) {
        for (int c = 0; c < 3; c++) {
            all->x[c] += m->of[t].x[c];
            all->xx[c] += m->of[t].xx[c];
        }
        all->status = m->of[t].status;
        if (all->status != LS_OK && e) *e = m->of[t].error;
    }
    free(m->of);
    return all->status;
}

/* The mean and deviation of pixels from 0 to 1. A channel whose pixels are all equal is only
 * shifted. */
static void to_scale(const sums *s, double n, int channels, ls_pixel_scale *scale) {
    scale->channels = channels;
    for (int c = 0; c < channels; c++) {
        double mean = (double)s->x[c] / n, square = (double)s->xx[c] / n - mean * mean;
        double deviation = square > 0 ? sqrt(square) / 255 : 0;
        scale->numbers.mean[c] = (float)(mean / 255);
        scale->numbers.deviation[c] = deviation > 1e-6 ? (float)deviation : 1;
    }
}

static ls_status find_image(const ls_source *s, const char *what, const ls_field **f_p,
                            ls_error *e) {
    const ls_field *found = NULL;
    for (int k = 0; k < s->nfields; k++) {
        if (!ls_field_is_image(&s->fields[k])) continue;
        if (found)
            return ls_fail(e, LS_EINVAL,
                           "%s: has the images '%s' and '%s', and data.normalize: auto is for one; "
                           "set {mean: [...], deviation: [...]}",
                           what, found->name, s->fields[k].name);
        found = &s->fields[k];
    }
    *f_p = found;
    if (found) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: has no images; leave data.normalize out", what);
}

ls_status ls_images_measure(ls_config *c, const ls_source *files, const ls_split *split,
                            const char *what, ls_error *e) {
    measuring m = {.files = files, .split = split};
    ls_pixel_scale scale = {0};
    sums all;
    LS_TRY(find_image(files, what, &m.image, e));
    LS_TRY(sum_pixels(&m, &all, e));
    int channels = (int)m.image->dims[2];
    double n = (double)split->ntrain * (double)m.image->nbytes / channels;
    to_scale(&all, n, channels, &scale);
    ls_pixels_write(&scale, &c->data.normalize);
    return LS_OK;
}
