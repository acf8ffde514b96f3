/* conv.c - see conv.h.
 *
 * An implicit GEMM: no matrix of windows is written. Rows of an image with a border of zeros are
 * laid out in work memory; in them the values of a window that belong to one row of the kernel,
 * (s, c), are contiguous. A tile (kernels.h) is then a part of a row of pixels x 16 or 32 channels,
 * whose chains run over the rows of the kernel and, in each, over that contiguous part.
 *
 * y and dx are the same computation, a sweep: dx is a sweep over dy with the kernel's rows and
 * columns reversed. With a stride, pixels of dx fall into stride_h * stride_w classes, each of
 * which meets other rows and columns of the kernel: a sweep for each.
 *
 * dw has tiles of (s, c) x channels of dy, whose chains run over pixels: the same tile with other
 * strides. Its blocks of x and dy stay in the first-level cache while all tiles pass over them.
 *
 * Threads split pixels of y and dx, and (r, s, c) of dw; each lays out what it needs.
 */
#include "tensor/conv.h"

#include <stdbool.h>
#include <string.h>

#include "base/min.h"
#include "tensor/conv_device.h"

enum {
    EACH = 16,            /* channels of a block where each channel is a group */
    WEIGHTS = 384 * 1024, /* floats of work memory for packed weights, or dy */
    PIXELS = 256 * 1024,  /* floats of work memory for pixels */
    BLOCK = 48 * 1024,    /* floats of pixels laid out at a time, if a row needs no more */
    NEAR = 6 * 1024,      /* floats of x and dy for one pass of dw's tiles, a part of L1 */
    KEPT = 10 * 1024,     /* floats of weights that tiles share, a part of L1 */
    WIDEST = 32,          /* columns of a tile */
    MOST_RUN = WEIGHTS / WIDEST,
    MOST_SIZE = 1 << 20
};
_Static_assert(WEIGHTS + PIXELS <= LS_GEMM_WORK, "both are parts of the GEMM's work memory");

static int64_t up(int64_t a, int64_t unit) { return (a + unit - 1) / unit * unit; }

/* ---- sizes ---- */

static bool is_depthwise(const ls_conv *v) { return v->groups == v->in && v->groups == v->out; }

int64_t ls_conv_out_h(const ls_conv *v) {
    return (v->h + 2 * v->pad_h - v->kernel_h) / v->stride_h + 1;
}
int64_t ls_conv_out_w(const ls_conv *v) {
    return (v->w + 2 * v->pad_w - v->kernel_w) / v->stride_w + 1;
}

static ls_status check_range(const char *what, int64_t value, int64_t least, ls_error *e) {
    if (value >= least && value <= MOST_SIZE) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s is %lld; it must be between %lld and %d", what,
                   (long long)value, (long long)least, MOST_SIZE);
}

ls_status ls_conv_check(const ls_conv *v, ls_error *e) {
    const struct {
        const char *what;
        int64_t value, least;
    } sizes[] = {{"the image's height", v->h, 1},
                 {"the image's width", v->w, 1},
                 {"the number of input channels", v->in, 1},
                 {"the number of output channels", v->out, 1},
                 {"the kernel's height", v->kernel_h, 1},
                 {"the kernel's width", v->kernel_w, 1},
                 {"the stride", v->stride_h, 1},
                 {"the stride", v->stride_w, 1},
                 {"the padding", v->pad_h, 0},
                 {"the padding", v->pad_w, 0},
                 {"the number of groups", v->groups, 1}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        LS_TRY(check_range(sizes[i].what, sizes[i].value, sizes[i].least, e));
    if (v->in % v->groups || v->out % v->groups)
        return ls_fail(e, LS_EINVAL,
                       "%lld input and %lld output channels can't be divided into "
                       "%lld groups",
                       (long long)v->in, (long long)v->out, (long long)v->groups);
    if (v->h + 2 * v->pad_h < v->kernel_h || v->w + 2 * v->pad_w < v->kernel_w)
        return ls_fail(e, LS_EINVAL,
                       "the kernel of %lld x %lld is larger than the padded image of "
                       "%lld x %lld",
                       (long long)v->kernel_h, (long long)v->kernel_w,
                       (long long)(v->h + 2 * v->pad_h), (long long)(v->w + 2 * v->pad_w));
    /* A row of the kernel has MOST_RUN weights per output channel, a window has PIXELS floats. */
    int64_t most = is_depthwise(v) ? up(v->in, EACH) : ls_max(v->in, v->out) / v->groups;
    int64_t limit = ls_min(MOST_RUN / v->kernel_w, PIXELS / 2 / (v->kernel_w * v->kernel_h));
    if (most > limit)
        return ls_fail(e, LS_EINVAL,
                       "%lld channels of a group with a kernel of %lld x %lld; at "
                       "most %lld are possible",
                       (long long)most, (long long)v->kernel_h, (long long)v->kernel_w,
                       (long long)limit);
    return LS_OK;
}

/* ---- pixels in work memory ---- */

/* Output i of a row or column reads the source at first + i * stride + tap. */
typedef struct axis {
    int64_t first, stride, taps;
} axis;

/* An image whose windows are read. */
typedef struct source {
    const float *p; /* [n, h, w, c] */
    int64_t h, w, c;
    int64_t depth; /* channels of a group */
    int64_t pixel; /* floats between pixels in work memory: depth, or a multiple of EACH */
    axis y, x;
} source;

/* The outputs [i, i + rows) x [j, j + cols) of a sample, and the windows they read. */
typedef struct block {
    int64_t sample, i, rows, j, cols;
    const float *p;
    int64_t line; /* floats between rows */
} block;

static int64_t span_of(const axis *a, int64_t outputs) {
    return (outputs - 1) * a->stride + a->taps;
}

/* The most outputs whose windows fit into `floats`, if an input costs `unit`; at least one. */
static int64_t outputs_within(const axis *a, int64_t floats, int64_t unit) {
    return ls_max(1, (floats / unit - a->taps) / a->stride + 1);
}

/* The columns and rows of outputs that are laid out at a time. */
static int64_t cols_within(const source *s, int64_t cols) {
    return ls_min(cols, outputs_within(&s->x, PIXELS, s->pixel * ls_max(1, s->y.taps)));
}
static int64_t rows_within(const source *s, int64_t cols, int64_t floats) {
    return outputs_within(&s->y, floats, ls_max(1, span_of(&s->x, cols)) * s->pixel);
}

static bool is_inside(const axis *a, int64_t begin, int64_t outputs, int64_t size) {
    int64_t first = a->first + begin * a->stride;
    return first >= 0 && first + span_of(a, outputs) <= size;
}

/* One row: zeros outside of [0, w). */
static void lay_row(const source *s, const float *row, int64_t first, int64_t n, float *out) {
    int64_t begin = ls_min(n, ls_max(0, -first)), end = ls_max(begin, ls_min(n, s->w - first));
    memset(out, 0, (size_t)(begin * s->pixel) * sizeof *out);
    const float *p = row + (first + begin) * s->c;
    float *q = out + begin * s->pixel;
    if (s->depth == s->c && s->pixel == s->c) {
        memcpy(q, p, (size_t)((end - begin) * s->c) * sizeof *q);
    } else {
        for (int64_t i = begin; i < end; i++, p += s->c, q += s->pixel) {
            memcpy(q, p, (size_t)s->depth * sizeof *q);
            for (int64_t c = s->depth; c < s->pixel; c++) q[c] = 0.0f;
        }
    }
    memset(out + end * s->pixel, 0, (size_t)((n - end) * s->pixel) * sizeof *out);
}

/* Lays out the windows of b, group g, in `work`; or reads them in place. */
static void lay_block(const source *s, int64_t g, block *b, float *work) {
    int64_t i = s->y.first + b->i * s->y.stride, j = s->x.first + b->j * s->x.stride;
    const float *sample = s->p + b->sample * s->h * s->w * s->c;
    if (s->pixel == s->c && is_inside(&s->y, b->i, b->rows, s->h) &&
        is_inside(&s->x, b->j, b->cols, s->w)) {
        b->line = s->w * s->c;
        b->p = sample + (i * s->w + j) * s->c;
        return;
    }
    int64_t lines = span_of(&s->y, b->rows), n = span_of(&s->x, b->cols);
    b->line = n * s->pixel;
    b->p = work;
    for (int64_t r = i; r < i + lines; r++, work += b->line)
        if (r < 0 || r >= s->h)
            memset(work, 0, (size_t)b->line * sizeof *work);
        else
            lay_row(s, sample + r * s->w * s->c + g * s->depth, j, n, work);
}

/* ---- sweeps: y and dx ---- */

/* Where outputs go: output i of `count` is at first + i * step. */
typedef struct place {
    int64_t first, step, count;
} place;

typedef struct sweep {
    const ls_kernels *k;
    int64_t n, groups;
    bool each; /* each channel is a group; they are computed together, as one group */
    source from;
    float *to; /* [n, h, w, c] */
    int64_t h, w, c;
    int64_t width; /* channels of a group */
    place y, x;
    const float *weights; /* strides of the weights, in floats */
    int64_t w_row, w_col, w_depth, w_width, w_group;
    ls_gemm_start start;
    const float *bias;
} sweep;

/* Channels [first, first + n) of a group of outputs: the columns of a tile. */
typedef struct columns {
    bool each; /* each channel is a group */
    int64_t first, n;
    int regs;
    int64_t wide; /* floats of a row of the tile */
} columns;

static columns columns_at(const ls_kernels *k, bool each, int64_t first, int64_t width) {
    int64_t lanes = each ? EACH : k->conv_lanes;
    int64_t n = ls_min(each ? EACH : 2 * lanes, width - first);
    int regs = n > lanes ? 2 : 1;
    return (columns){each, first, n, regs, regs * lanes};
}

/* The most rows of a tile. */
static int64_t rows_most(const ls_kernels *k, const columns *u) {
    return u->each ? k->conv_each_rows : k->conv_cells / u->regs;
}

static int64_t steps_of(const sweep *s) {
    return s->from.y.taps * s->from.x.taps * (s->each ? 1 : s->from.depth);
}

/* Packs weights [taps, depth, wide]; columns from n on become zeros. */
static void pack_weights(const sweep *s, int64_t g, const columns *u, float *out) {
    int64_t depth = s->each ? 1 : s->from.depth;
    for (int64_t r = 0; r < s->from.y.taps; r++)
        for (int64_t c = 0; c < s->from.x.taps; c++) {
            const float *p =
                s->weights + g * s->w_group + r * s->w_row + c * s->w_col + u->first * s->w_width;
            for (int64_t d = 0; d < depth; d++, p += s->w_depth, out += u->wide) {
                if (s->w_width == 1)
                    memcpy(out, p, (size_t)u->n * sizeof *out);
                else
                    for (int64_t i = 0; i < u->n; i++) out[i] = p[i * s->w_width];
                for (int64_t i = u->n; i < u->wide; i++) out[i] = 0.0f;
            }
        }
}

/* A tile with columns that do not exist is computed in separate memory. */
static void run_tile(const ls_kernels *k, const columns *u, const ls_conv_tile *t, const float *a,
                     const float *b, float *c) {
    void (*run)(const ls_conv_tile *, const float *, const float *, float *) =
        u->each ? k->conv_each : k->conv_tile;
    if (u->n == u->wide) {
        run(t, a, b, c);
        return;
    }
    float full[LS_TILE_MOST] = {0};
    ls_conv_tile edge = *t;
    size_t row = (size_t)u->n * sizeof *c;
    edge.c_row = u->wide;
    for (int r = 0; r < t->rows && !t->start; r++)
        memcpy(full + r * u->wide, c + r * t->c_row, row);
    run(&edge, a, b, full);
    for (int r = 0; r < t->rows; r++) memcpy(c + r * t->c_row, full + r * u->wide, row);
}

/* A part of the kernel: its weights, the first numbers of x or dy that they meet, the outputs. */
typedef struct kernel_part {
    const float *weights, *from;
    float *to;
} kernel_part;

/* Column block u of the outputs of b, for the part of the kernel that tile `t` has. */
static void sweep_taps(const sweep *s, const block *b, const columns *u, const ls_conv_tile *t,
                       const kernel_part *p) {
    ls_conv_tile part = *t;
    int64_t most = rows_most(s->k, u), pieces = (b->cols + most - 1) / most;
    for (int64_t i = 0; i < b->rows; i++) {
        const float *a = p->from + i * s->from.y.stride * b->line;
        float *c = p->to + i * s->y.step * s->w * s->c;
        for (int64_t piece = 0; piece < pieces; piece++) {
            int64_t first = b->cols * piece / pieces, end = b->cols * (piece + 1) / pieces;
            part.rows = (int)(end - first);
            run_tile(s->k, u, &part, a + first * t->a_row, p->weights, c + first * t->c_row);
        }
    }
}

/* Column block u of the outputs of b: as many rows of the kernel at a time, or as large a part of
 * one, as have weights in the first-level cache; chains continue. */
static void sweep_block(const sweep *s, int64_t g, const block *b, const columns *u,
                        const float *weights) {
    float start[WIDEST] = {0};
    int64_t channel = g * s->width + u->first, rows = s->from.y.taps;
    if (s->start == LS_GEMM_BIAS) memcpy(start, s->bias + channel, (size_t)u->n * sizeof *start);
    int64_t inner = s->from.x.taps * (s->each ? 1 : s->from.depth);
    ls_conv_tile t = {.regs = u->regs,
                      .a_outer = b->line,
                      .a_inner = s->each ? s->from.pixel : 1,
                      .a_row = s->from.x.stride * s->from.pixel,
                      .b_outer = inner * u->wide,
                      .b_inner = u->wide,
                      .c_row = s->x.step * s->c,
                      .start = s->start == LS_GEMM_ADD ? NULL : start};
    int64_t y = s->y.first + b->i * s->y.step, x = s->x.first + b->j * s->x.step;
    float *to = s->to + ((b->sample * s->h + y) * s->w + x) * s->c + channel;
    int64_t most = ls_max(1, KEPT / ls_max(1, t.b_outer)), parts = (t.b_outer + KEPT - 1) / KEPT;
    int64_t run = ls_max(1, parts > 1 ? (inner + parts - 1) / parts : inner);
    const float *from = b->p + (s->each ? u->first : 0);
    for (int64_t r = 0; r == 0 || r < rows; r += most)
        for (int64_t at = 0; at == 0 || at < inner; at += run) {
            t.outer = ls_min(most, rows - r);
            t.inner = ls_min(run, inner - at);
            sweep_taps(s, b, u, &t,
                       &(kernel_part){weights + r * t.b_outer + at * u->wide,
                                      from + r * b->line + at * t.a_inner, to});
            t.start = NULL;
        }
}

/* What a thread has packed, and what it computes with it. */
typedef struct work {
    int64_t g;
    int64_t first, end;          /* rows of outputs, of all samples */
    int64_t column, columns_end; /* channels of the group */
    float *weights, *pixels;
} work;

static void sweep_columns(const sweep *s, const work *w) {
    int64_t most_cols = cols_within(&s->from, s->x.count), steps = steps_of(s);
    int64_t most_rows = most_cols < s->x.count ? 1 : rows_within(&s->from, most_cols, BLOCK);
    for (int64_t at = w->first, rows = 0; at < w->end; at += rows) {
        block b = {.sample = at / s->y.count, .i = at % s->y.count};
        rows = ls_min(ls_min(most_rows, s->y.count - b.i), w->end - at);
        b.rows = rows;
        for (; b.j < s->x.count; b.j += b.cols) {
            b.cols = ls_min(most_cols, s->x.count - b.j);
            b.p = w->pixels;
            if (steps) lay_block(&s->from, w->g, &b, w->pixels);
            const float *weights = w->weights;
            for (int64_t k = w->column; k < w->columns_end;) {
                columns u = columns_at(s->k, s->each, k, s->width);
                sweep_block(s, w->g, &b, &u, weights);
                weights += steps * u.wide;
                k += u.n;
            }
        }
    }
}

/* As many columns at a time as have packed weights in work memory. */
static void sweep_group(const sweep *s, work *w) {
    int64_t steps = steps_of(s);
    for (w->column = 0; w->column < s->width; w->column = w->columns_end) {
        w->columns_end = w->column;
        for (int64_t used = 0; w->columns_end < s->width;) {
            columns u = columns_at(s->k, s->each, w->columns_end, s->width);
            if (used + steps * u.wide > WEIGHTS) break;
            pack_weights(s, w->g, &u, w->weights + used);
            used += steps * u.wide;
            w->columns_end += u.n;
        }
        sweep_columns(s, w);
    }
}

/* The part of thread `thread`. If weights are too many, some rows of the kernel at a time; chains
 * continue. */
static void run_sweep(const ls_compute *compute, const sweep *s, int thread, int nthreads) {
    work w = {.weights = ls_compute_gemm_work(compute, thread)};
    w.pixels = w.weights + WEIGHTS;
    ls_pool_share(s->n * s->y.count, 1, thread, nthreads, &w.first, &w.end);
    if (w.first == w.end) return;
    int64_t run = s->from.x.taps * (s->each ? 1 : s->from.depth);
    int64_t most = WEIGHTS / (ls_max(1, run) * WIDEST), taps = s->from.y.taps;
    for (w.g = 0; w.g < s->groups; w.g++)
        for (int64_t r = 0; r == 0 || r < taps; r += most) {
            sweep part = *s;
            part.from.y.first += r;
            part.from.y.taps = ls_min(most, taps - r);
            part.weights += r * s->w_row;
            if (r) part.start = LS_GEMM_ADD;
            sweep_group(&part, &w);
        }
}

typedef struct call {
    const ls_compute *compute;
    const ls_conv *v;
    const ls_conv_job *job;
} call;

static source source_of(const ls_conv *v, const float *p, int64_t h, int64_t w, int64_t c) {
    bool each = is_depthwise(v);
    int64_t depth = each ? c : c / v->groups;
    return (source){
        .p = p, .h = h, .w = w, .c = c, .depth = depth, .pixel = each ? up(c, EACH) : depth};
}

/* What is the same for y and dx. */
static sweep sweep_of(const call *a) {
    bool each = is_depthwise(a->v);
    return (sweep){.k = a->compute->k,
                   .n = a->job->n,
                   .groups = each ? 1 : a->v->groups,
                   .each = each,
                   .w_group = a->v->out / a->v->groups,
                   .start = a->job->start,
                   .bias = a->job->bias};
}

static source source_of_x(const ls_conv *v, const float *x) {
    source s = source_of(v, x, v->h, v->w, v->in);
    s.y = (axis){-v->pad_h, v->stride_h, v->kernel_h};
    s.x = (axis){-v->pad_w, v->stride_w, v->kernel_w};
    return s;
}

static void forward_run(void *arg, int thread, int nthreads) {
    const call *a = arg;
    const ls_conv *v = a->v;
    sweep s = sweep_of(a);
    s.from = source_of_x(v, a->job->x);
    s.to = a->job->y;
    s.h = ls_conv_out_h(v), s.w = ls_conv_out_w(v), s.c = v->out;
    s.width = s.each ? s.c : s.c / v->groups;
    s.y = (place){0, 1, s.h};
    s.x = (place){0, 1, s.w};
    s.weights = a->job->w;
    s.w_width = 1;
    s.w_depth = v->out;
    s.w_col = v->in / v->groups * s.w_depth;
    s.w_row = v->kernel_w * s.w_col;
    run_sweep(a->compute, &s, thread, nthreads);
}

void ls_conv_forward(const ls_compute *compute, const ls_conv *v, const ls_conv_job *job) {
    if (compute->device) {
        ls_conv_device_forward(compute, v, job);
        return;
    }
    call a = {compute, v, job};
    ls_pool_run(compute->pool, forward_run, &a);
}

/* The rows (or columns) of dx at phase + i * stride: which rows of dy and of the kernel they meet.
 * Output i meets row first + i + j of dy with row tap - j * stride of the kernel. */
typedef struct phase {
    place to;
    axis from;
    int64_t tap;
} phase;

static phase phase_of(int64_t at, int64_t size, int64_t pad, int64_t stride, int64_t kernel) {
    int64_t least = (at + pad) % stride;
    int64_t taps = least < kernel ? (kernel - least + stride - 1) / stride : 0;
    return (phase){.to = {at, stride, at < size ? (size - at + stride - 1) / stride : 0},
                   .from = {(at + pad - least) / stride - (taps - 1), 1, taps},
                   .tap = taps ? least + (taps - 1) * stride : 0};
}

static void back_x_run(void *arg, int thread, int nthreads) {
    const call *a = arg;
    const ls_conv *v = a->v;
    sweep s = sweep_of(a);
    int64_t pixel = v->in / v->groups * v->out; /* weights of one r and s */
    s.to = a->job->dx;
    s.h = v->h, s.w = v->w, s.c = v->in;
    s.width = s.each ? s.c : s.c / v->groups;
    s.w_width = s.each ? 1 : v->out;
    s.w_depth = 1;
    s.w_row = -v->stride_h * v->kernel_w * pixel;
    s.w_col = -v->stride_w * pixel;
    for (int64_t i = 0; i < v->stride_h; i++)
        for (int64_t j = 0; j < v->stride_w; j++) {
            phase y = phase_of(i, v->h, v->pad_h, v->stride_h, v->kernel_h);
            phase x = phase_of(j, v->w, v->pad_w, v->stride_w, v->kernel_w);
            s.from = source_of(v, a->job->dy, ls_conv_out_h(v), ls_conv_out_w(v), v->out);
            s.from.y = y.from, s.from.x = x.from;
            s.y = y.to, s.x = x.to;
            s.weights = a->job->w + (y.tap * v->kernel_w + x.tap) * pixel;
            run_sweep(a->compute, &s, thread, nthreads);
        }
}

void ls_conv_back_x(const ls_compute *compute, const ls_conv *v, const ls_conv_job *job) {
    if (compute->device) {
        ls_conv_device_back_x(compute, v, job);
        return;
    }
    call a = {compute, v, job};
    ls_pool_run(compute->pool, back_x_run, &a);
}

/* ---- dw ---- */

typedef struct gradient {
    const ls_kernels *k;
    bool each;
    int64_t n, groups;
    source x;
    const float *dy;        /* [n, h, w, c] */
    int64_t h, w, c, width; /* width: channels of a group */
    float *dw;              /* rows (r, s, channel of the group) of c */
    int64_t line;           /* rows of one r */
    int64_t first, end;     /* the thread's rows */
} gradient;

/* A column block of the pixels of dy. */
typedef struct dy_pixels {
    const float *p;
    int64_t line, pixel; /* floats between rows, and between pixels */
} dy_pixels;

/* Pixels of one column block are contiguous, and are read in place. */
static bool is_in_place(const gradient *d, const columns *u) { return d->c == u->wide; }

/* The block's channels [channel, ...) of dy. */
static const float *dy_at(const gradient *d, const block *b, int64_t channel) {
    return d->dy + ((b->sample * d->h + b->i) * d->w + b->j) * d->c + channel;
}

/* Lays out group g's channels of the block's pixels of dy as [column block, pixel, wide], except
 * those that are read in place. */
static void lay_dy(const gradient *d, int64_t g, const block *b, float *out) {
    for (int64_t k = 0; k < d->width;) {
        columns u = columns_at(d->k, d->each, k, d->width);
        for (int64_t i = 0; i < b->rows && !is_in_place(d, &u); i++) {
            const float *p = dy_at(d, b, g * d->width + k) + i * d->w * d->c;
            for (int64_t j = 0; j < b->cols; j++, p += d->c, out += u.wide) {
                memcpy(out, p, (size_t)u.n * sizeof *out);
                for (int64_t z = u.n; z < u.wide; z++) out[z] = 0.0f;
            }
        }
        k += u.n;
    }
}

/* Continues the thread's rows of column block u over a block's pixels. */
static void gradient_columns(const gradient *d, int64_t g, const block *b, const columns *u,
                             const dy_pixels *dy) {
    const source *x = &d->x;
    int64_t unit = d->each ? x->pixel : 1; /* floats between rows of dw in a block of x */
    ls_conv_tile t = {.regs = u->regs,
                      .outer = b->rows,
                      .inner = b->cols,
                      .a_outer = x->y.stride * b->line,
                      .a_inner = x->x.stride * x->pixel,
                      .a_row = unit,
                      .b_outer = dy->line,
                      .b_inner = dy->pixel,
                      .c_row = d->c};
    int64_t most = rows_most(d->k, u);
    for (int64_t m = d->first, n = 0; m < d->end; m += n) {
        int64_t r = m / d->line, at = m % d->line;
        int64_t left = ls_min(d->line - at, d->end - m);
        n = left / ((left + most - 1) / most);
        t.rows = (int)n;
        const float *a = b->p + r * b->line + at * unit + (d->each ? u->first : 0);
        run_tile(d->k, u, &t, a, dy->p, d->dw + m * d->c + g * d->width + u->first);
    }
}

/* Passes over a block some rows at a time, which stay in the first-level cache. */
static void gradient_block(const gradient *d, int64_t g, const block *b, const float *dy) {
    for (int64_t k = 0; k < d->width;) {
        columns u = columns_at(d->k, d->each, k, d->width);
        int64_t row = d->x.y.stride * b->line + b->cols * u.wide;
        block near = *b;
        bool in_place = is_in_place(d, &u);
        dy_pixels at = {dy, b->cols * u.wide, u.wide};
        if (in_place) at = (dy_pixels){dy_at(d, b, g * d->width + k), d->w * d->c, d->c};
        for (int64_t i = 0; i < b->rows; i += near.rows) {
            near.rows = ls_min(ls_max(1, NEAR / row), b->rows - i);
            near.p = b->p + i * d->x.y.stride * b->line;
            gradient_columns(d, g, &near, &u, &at);
            at.p += near.rows * at.line;
        }
        if (!in_place) dy += b->rows * b->cols * u.wide;
        k += u.n;
    }
}

static void gradient_group(const gradient *d, int64_t g, float *dy, float *pixels) {
    int64_t wide = up(d->width, WIDEST);
    int64_t most_cols = ls_min(cols_within(&d->x, d->w), WEIGHTS / wide), most_rows = 1;
    if (most_cols == d->w)
        most_rows = ls_max(1, ls_min(rows_within(&d->x, d->w, BLOCK), WEIGHTS / (wide * d->w)));
    block b = {0};
    for (b.sample = 0; b.sample < d->n; b.sample++)
        for (b.i = 0; b.i < d->h; b.i += b.rows) {
            b.rows = ls_min(most_rows, d->h - b.i);
            for (b.j = 0; b.j < d->w; b.j += b.cols) {
                b.cols = ls_min(most_cols, d->w - b.j);
                lay_block(&d->x, g, &b, pixels);
                lay_dy(d, g, &b, dy);
                gradient_block(d, g, &b, dy);
            }
        }
}

static void back_w_run(void *arg, int thread, int nthreads) {
    const call *a = arg;
    const ls_conv *v = a->v;
    bool each = is_depthwise(v);
    gradient d = {.k = a->compute->k,
                  .each = each,
                  .n = a->job->n,
                  .groups = each ? 1 : v->groups,
                  .x = source_of_x(v, a->job->x),
                  .dy = a->job->dy,
                  .h = ls_conv_out_h(v),
                  .w = ls_conv_out_w(v),
                  .c = v->out,
                  .width = each ? v->out : v->out / v->groups,
                  .dw = a->job->dw,
                  .line = v->kernel_w * (v->in / v->groups)};
    int64_t unit = each ? 1 : d.k->conv_cells / 2;
    ls_pool_share(v->kernel_h * d.line, unit, thread, nthreads, &d.first, &d.end);
    if (d.first == d.end) return;
    if (a->job->start != LS_GEMM_ADD)
        memset(d.dw + d.first * d.c, 0, (size_t)((d.end - d.first) * d.c) * sizeof *d.dw);
    float *dy = ls_compute_gemm_work(a->compute, thread);
    for (int64_t g = 0; g < d.groups; g++) gradient_group(&d, g, dy, dy + WEIGHTS);
}

void ls_conv_back_w(const ls_compute *compute, const ls_conv *v, const ls_conv_job *job) {
    if (compute->device) {
        ls_conv_device_back_w(compute, v, job);
        return;
    }
    call a = {compute, v, job};
    ls_pool_run(compute->pool, back_w_run, &a);
}

/* ---- db ---- */

static void back_bias_run(void *arg, int thread, int nthreads) {
    const call *a = arg;
    int64_t first = 0, end = 0, pixels = ls_conv_out_h(a->v) * ls_conv_out_w(a->v);
    ls_pool_share(a->v->out, EACH, thread, nthreads, &first, &end);
    if (a->job->start != LS_GEMM_ADD)
        for (int64_t k = first; k < end; k++) a->job->db[k] = 0.0f;
    a->compute->k->column_sum(a->job->n * pixels, a->v->out, first, end, a->job->dy, a->job->db);
}

void ls_conv_back_bias(const ls_compute *compute, const ls_conv *v, const ls_conv_job *job) {
    if (compute->device) {
        ls_conv_device_back_bias(compute, v, job);
        return;
    }
    call a = {compute, v, job};
    ls_pool_run(compute->pool, back_bias_run, &a);
}
