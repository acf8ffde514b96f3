/* fake.c - see fake.h. */
#include "perf/fake.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"

enum { SEED = 1 };

typedef struct fake {
    ls_source source;
    unsigned char *samples; /* [count][nbytes] */
} fake;

static void fill_integers(const ls_field *f, uint32_t classes, uint64_t first, void *at) {
    size_t size = ls_dtype_size(f->type), n = f->nbytes / size;
    unsigned char *to = at;
    for (size_t i = 0; i < n; i++, to += size) {
        uint32_t w[4];
        ls_random_words(SEED, LS_STREAM_SAMPLE, 1, first + i, w);
        uint32_t x = f->type == LS_U8 ? w[0] % 256 : w[0] % classes;
        if (size == 1)
            *to = (unsigned char)x;
        else
            memcpy(to, &x, sizeof x);
    }
}

static void fill_sample(const ls_model *m, uint64_t i, unsigned char *sample) {
    for (int k = 0; k < m->ninputs; k++) {
        const ls_field *f = &m->inputs[k];
        unsigned char *at = sample + f->offset;
        ls_random_place place = {SEED, LS_STREAM_SAMPLE, 2 + (uint64_t)k, i * f->nbytes};
        if (f->type == LS_F32)
            ls_random_normal(place, f->nbytes / sizeof(float), 1, (float *)(void *)at);
        else
            fill_integers(f, m->classes[k] ? (uint32_t)m->classes[k] : 2, place.index, at);
    }
}

static ls_status read_fake(const ls_source *s, uint64_t i, void *sample, ls_error *e) {
    (void)e;
    memcpy(sample, ((const fake *)s)->samples + i * s->nbytes, s->nbytes);
    return LS_OK;
}

static void close_fake(ls_source *s) {
    free(((fake *)s)->samples);
    free(s);
}

ls_source *ls_fake_source(const ls_model *m, uint64_t count) {
    fake *f = LS_NEW(fake);
    f->source = (ls_source){.format = "random",
                            .count = count,
                            .nfields = m->ninputs,
                            .nbytes = m->sample_nbytes,
                            .read = read_fake,
                            .close = close_fake};
    memcpy(f->source.fields, m->inputs, (size_t)m->ninputs * sizeof *m->inputs);
    f->samples = ls_alloc(count * m->sample_nbytes);
    for (uint64_t i = 0; i < count; i++) fill_sample(m, i, f->samples + i * m->sample_nbytes);
    return &f->source;
}
