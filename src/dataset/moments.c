/* moments.c - see moments.h. */
#include "dataset/moments.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cores.h"
#include "base/escape.h"
#include "base/plural.h"
#include "networks/scales.h"
#include "source/adapt.h"
#include "source/finite.h"
#include "source/note.h"
#include "tensor/pool.h"

/* Samples are divided into blocks, whose number follows from that of the samples alone. A block's
 * moments are those of its samples in their order; they are joined in the order of the blocks. */
enum { MOST_BLOCKS = 256 };

/* After n numbers: their mean, and the sum of the squares of what they differ from it. */
typedef struct moments {
    double n, mean, squares;
} moments;

/* Welford, "Note on a method for calculating corrected sums of squares and products",
 * Technometrics 4, 1962. */
static void add(moments *m, double x) {
    double d = x - m->mean;
    m->n++;
    m->mean += d / m->n;
    m->squares += d * (x - m->mean);
}

/* Chan, Golub & LeVeque, "Updating formulae and a pairwise algorithm for computing sample
 * variances", 1979. */
static void join(moments *a, const moments *b) {
    double n = a->n + b->n, d = b->mean - a->mean;
    if (b->n <= 0) return;
    a->mean += d * (b->n / n);
    a->squares += b->squares + d * d * (a->n * b->n / n);
    a->n = n;
}

/* A field of the model, in the files. */
typedef struct measured {
    const ls_field *f;
    bool alike;       /* all its numbers have one mean */
    size_t count, at; /* numbers of a sample; the first of its moments */
} measured;

typedef struct measuring {
    const ls_source *files;
    const ls_split *split;
    measured list[LS_SOURCE_FIELDS]; /* [n] */
    int n;
    size_t nmoments; /* of a block */
    uint64_t nblocks;
    moments *of;         /* [nblocks][nmoments] */
    ls_status *statuses; /* [nblocks] */
    ls_error *errors;    /* [nblocks] */
} measuring;

static uint64_t block_begin(const measuring *m, uint64_t block) {
    return m->split->ntrain * block / m->nblocks;
}

static void add_sample(const measuring *m, const uint8_t *sample, moments *to) {
    for (int k = 0; k < m->n; k++) {
        const measured *w = &m->list[k];
        const uint8_t *at = sample + w->f->offset;
        size_t size = ls_dtype_size(w->f->type);
        for (size_t i = 0; i < w->count; i++)
            add(&to[w->at + (w->alike ? 0 : i)], (double)ls_adapt_real(w->f->type, at + i * size));
    }
}

static ls_status read_sample(const measuring *m, uint64_t i, uint8_t *sample, ls_error *e) {
    LS_TRY(m->files->read(m->files, i, sample, e));
    for (int k = 0; k < m->n; k++) LS_TRY(ls_finite_check(m->files, i, m->list[k].f, 1, sample, e));
    return LS_OK;
}

static ls_status measure_block(const measuring *m, uint64_t block, uint8_t *sample, ls_error *e) {
    for (uint64_t i = block_begin(m, block); i < block_begin(m, block + 1); i++) {
        uint64_t at = ls_split_train(m->split, i);
        LS_TRY(read_sample(m, at, sample, e));
        add_sample(m, sample, &m->of[block * m->nmoments]);
    }
    return LS_OK;
}

static void measure_blocks(void *arg, int thread, int nthreads) {
    const measuring *m = arg;
    int64_t i = 0, end = 0;
    uint8_t *sample = ls_alloc(m->files->nbytes);
    ls_pool_share((int64_t)m->nblocks, 1, thread, nthreads, &i, &end);
    for (; i < end; i++) {
        m->statuses[i] = measure_block(m, (uint64_t)i, sample, &m->errors[i]);
        if (m->statuses[i] != LS_OK) break;
    }
    free(sample);
}

/* Joins all blocks in the first one. */
static ls_status measure(measuring *m, ls_error *e) {
    ls_pool *pool = NULL;
    LS_TRY(ls_pool_create(ls_cores(), &pool, e));
    ls_pool_run(pool, measure_blocks, m);
    ls_pool_free(pool);
    for (uint64_t b = 0; b < m->nblocks; b++) {
        if (m->statuses[b] != LS_OK && e) *e = m->errors[b];
        if (m->statuses[b] != LS_OK) return m->statuses[b];
        for (size_t i = 0; b > 0 && i < m->nmoments; i++)
            join(&m->of[i], &m->of[b * m->nmoments + i]);
    }
    return LS_OK;
}

/* ---- as a scale ---- */

static float deviation_of(const moments *m) { return (float)sqrt(m->squares / m->n); }

/* A column is left as it is if its numbers are too large for squares in f32. */
static bool fits(const moments *m, size_t n, float most) {
    for (size_t i = 0; i < n; i++)
        if (!(fabs(m[i].mean) <= (double)most && deviation_of(&m[i]) <= most)) return false;
    return true;
}

static void add_scale(const measuring *m, const measured *w, bool is_target, ls_scales *to) {
    size_t n = w->alike ? 1 : w->count;
    if (!fits(&m->of[w->at], n, is_target ? LS_SCALE_TARGET_MOST : LS_SCALE_MOST)) return;
    ls_field_scale *s = ls_scales_add(to, w->f->name, (int64_t)n);
    for (size_t i = 0; i < n; i++) {
        float deviation = deviation_of(&m->of[w->at + i]);
        bool constant = deviation < (is_target ? LS_SCALE_TARGET_LEAST : LS_SCALE_LEAST);
        s->mean[i] = (float)m->of[w->at + i].mean;
        s->deviation[i] = !constant ? deviation : is_target ? 1 : 0;
    }
}

static void put_name(const char *name, ls_buf *b) {
    ls_buf_printf(b, "'");
    ls_buf_escape(b, LS_ESCAPE_LINE, name, strlen(name));
    ls_buf_printf(b, "'");
}

/* target: the target's scale; NULL: it has none. */
static void note_scales(const ls_scales *s, const ls_field_scale *target) {
    long long columns = 0;
    for (int i = 0; i < s->n; i++) columns += &s->list[i] == target ? 0 : s->list[i].n;
    ls_buf b = {0};
    if (columns)
        ls_buf_printf(&b, "%lld column%s of numbers %s scaled to mean 0 and deviation 1", columns,
                      ls_plural(columns), columns == 1 ? "is" : "are");
    if (target) {
        ls_buf_printf(&b, "%sthe loss is in units of the variance of ", columns ? "; " : "");
        put_name(target->field, &b);
        ls_buf_printf(&b, ", %.4g^2", (double)target->deviation[0]);
    }
    if (b.len) ls_note("data.normalize: %s (off: as they are)", b.data);
    ls_buf_free(&b);
}

static void write_scales(ls_config *c, const measuring *m, int target) {
    ls_scales s = {0};
    int of_target = -1;
    for (int k = 0; k < m->n; k++) {
        int n = s.n;
        add_scale(m, &m->list[k], k == target, &s);
        if (k == target && s.n > n) of_target = n;
    }
    if (s.n) ls_scales_write(&s, &c->data.normalize);
    note_scales(&s, of_target < 0 ? NULL : &s.list[of_target]);
    ls_scales_free(&s);
}

/* ---- all ---- */

static void find_fields(measuring *m, const ls_fields *wanted, int target) {
    for (int i = 0; i < wanted->n; i++) {
        const ls_field *f = ls_source_field(m->files, wanted->list[i].name);
        if (!f || f->is_list || f->trouble) continue; /* reading it will fail */
        measured *w = &m->list[m->n++];
        *w = (measured){.f = f, .count = f->nbytes / ls_dtype_size(f->type), .at = m->nmoments};
        w->alike = f->ndims > 1 || i == target || w->count == 1;
        m->nmoments += w->alike ? 1 : w->count;
    }
}

ls_status ls_moments_measure(ls_config *c, const ls_source *files, const ls_split *split,
                             ls_error *e) {
    ls_fields *wanted = LS_NEW(ls_fields);
    measuring m = {.files = files, .split = split};
    int target = -1;
    ls_status s = ls_scales_wanted(c, wanted, &target, e);
    if (s == LS_OK) find_fields(&m, wanted, target);
    free(wanted);
    if (s != LS_OK || !m.n) return s;
    m.nblocks = split->ntrain < MOST_BLOCKS ? split->ntrain : MOST_BLOCKS;
    m.of = LS_NEW_ARRAY(moments, (size_t)m.nblocks * m.nmoments);
    m.statuses = LS_NEW_ARRAY(ls_status, (size_t)m.nblocks);
    m.errors = LS_NEW_ARRAY(ls_error, (size_t)m.nblocks);
    s = measure(&m, e);
    if (s == LS_OK) write_scales(c, &m, target);
    free(m.of);
    free(m.statuses);
    free(m.errors);
    return s;
}
