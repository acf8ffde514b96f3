/* noise.c - see noise.h. */
#include "optim/noise.h"

#include <math.h>
#include <string.h>

#include "base/random.h"

static const double DECAY = 0.99; /* of averages, a step */

/* ---- a virtual worker's gradient ---- */

void ls_noise_draw(uint64_t seed, int64_t step, ls_noise_signs *s) {
    uint32_t w[4];
    for (size_t i = 0; i < LS_NOISE_SIGNS; i++) {
        if (i % 128 == 0) ls_random_words(seed, LS_STREAM_NOISE, (uint64_t)step, i / 128, w);
        s->signs[i] = w[i / 32 % 4] >> (i % 32) & 1 ? 1.0f : -1.0f;
    }
    ls_random_words(seed, LS_STREAM_NOISE, (uint64_t)step, LS_NOISE_SIGNS, w);
    s->key[0] = ((uint64_t)w[0] << 32 | w[1]) | 1;
    s->key[1] = (uint64_t)w[2] << 32 | w[3];
}

/* The multiply-shift hash: the signs of any two blocks are nearly independent. */
static double sign_of(const ls_noise_signs *s, size_t block) {
    return ((uint64_t)block * s->key[0] + s->key[1]) >> 63 ? 1 : -1;
}

/* The unit of the lowest bin is 2^LOWEST. */
enum { DIGITS = 32, LOWEST = 128 - DIGITS * LS_NOISE_BINS };

static void add_exactly(double x, double bins[LS_NOISE_BINS]) {
    int exponent = 0;
    if (!isfinite(x)) {
        bins[LS_NOISE_BINS - 1] += x;
        return;
    }
    frexp(x, &exponent);
    for (int i = (exponent - 1 - LOWEST) / DIGITS; exponent > LOWEST && i >= 0 && x != 0; i--) {
        double unit = ldexp(1, LOWEST + i * DIGITS), part = trunc(x / unit) * unit;
        bins[i] += part;
        x -= part;
    }
}

void ls_noise_add_block(const ls_noise_signs *s, size_t nblocks, size_t block, const float sums[2],
                        double bins[LS_NOISE_SUMS]) {
    size_t dim = block / ls_noise_turns(nblocks) % LS_NOISE_DIMS;
    add_exactly((double)sums[0], bins);
    add_exactly(sign_of(s, block) * (double)sums[1], bins + (1 + dim) * LS_NOISE_BINS);
}

void ls_noise_add_up(const double bins[LS_NOISE_SUMS], double numbers[LS_NOISE_NUMBERS]) {
    for (int k = 0; k < LS_NOISE_NUMBERS; k++) {
        numbers[k] = 0;
        for (int i = LS_NOISE_BINS - 1; i >= 0; i--) numbers[k] += bins[k * LS_NOISE_BINS + i];
    }
}

/* ---- a step ---- */

int ls_noise_nlevels(int V) {
    int n = 0;
    for (int size = 1; size < V; size *= 2) n++;
    return n + 1;
}

int ls_noise_level_size(int V, int level) {
    return level + 1 < ls_noise_nlevels(V) ? 1 << level : V;
}

/* The estimated square of the norm of the gradient sum over virtual workers [lo, lo + size). */
static double projected_square(const ls_noise_sums *n, int lo, int size) {
    double square = 0;
    for (int k = 0; k < LS_NOISE_DIMS; k++) {
        double sum = 0;
        for (int v = lo; v < lo + size; v++) sum += n->numbers[v * LS_NOISE_NUMBERS + 1 + k];
        square += sum * sum;
    }
    return square;
}

/* The mean over the level's whole nodes. The sum of `size` virtual workers is their part of the
 * batch's mean gradient: V / size times it is their own mean. */
static double norm_of_level(const ls_noise_sums *n, int size) {
    double sum = 0, times = n->scale * n->V / size;
    int nodes = n->V / size;
    for (int i = 0; i < nodes; i++) sum += projected_square(n, i * size, size);
    return sum / nodes * times * times;
}

/* Projections are noisy, but their leaves and root are known exactly: what the levels between are
 * off the straight line from leaves to root, by projections, is added to the exact line. */
static void norms_of_levels(const ls_noise_sums *n, double leaf, double root, double *norms) {
    int nlevels = ls_noise_nlevels(n->V);
    for (int j = 0; j < nlevels; j++) norms[j] = norm_of_level(n, ls_noise_level_size(n->V, j));
    double leaf_off = leaf - norms[0], root_off = root - norms[nlevels - 1];
    for (int j = 0; j < nlevels; j++) {
        double part = (1.0 / ls_noise_level_size(n->V, j) - 1.0 / n->V) / (1 - 1.0 / n->V);
        norms[j] += root_off + (leaf_off - root_off) * part;
    }
}

static bool is_finite(const ls_noise_step *s, int nlevels) {
    bool all = isfinite(s->trace) && isfinite(s->square);
    for (int j = 0; j < nlevels; j++) all = all && isfinite(s->norms[j]);
    return all;
}

void ls_noise_of(const ls_noise_sums *n, ls_noise_step *out) {
    int V = n->V, nlevels = ls_noise_nlevels(V);
    double each = 0, scale = n->scale * n->scale, b = (double)n->samples / V;
    *out = (ls_noise_step){0};
    if (V < 2 || n->samples == 0 || n->samples % (uint64_t)V) return;
    for (int v = 0; v < V; v++) each += n->numbers[v * LS_NOISE_NUMBERS];
    each *= scale * V; /* the mean over virtual workers of |V times its part|^2 */
    double whole = n->whole * scale;
    out->samples = b;
    out->trace = b * V * (each - whole) / (V - 1);
    out->square = (V * whole - each) / (V - 1);
    norms_of_levels(n, each, whole, out->norms);
    out->known = is_finite(out, nlevels);
}

/* ---- a run ---- */

void ls_noise_add(ls_noise_mean *m, const ls_noise_step *s) {
    if (!s->known) return;
    if (m->samples != s->samples) memset(m->norms, 0, sizeof m->norms);
    m->samples = s->samples;
    m->trace = DECAY * m->trace + (1 - DECAY) * s->trace;
    m->square = DECAY * m->square + (1 - DECAY) * s->square;
    for (int j = 0; j < LS_NOISE_LEVELS; j++)
        m->norms[j] = DECAY * m->norms[j] + (1 - DECAY) * s->norms[j];
    m->steps++;
}

/* The line y = a + c x through y = norms of levels at x = 1 / samples, by least squares of relative
 * distances. */
static void fit_line(const ls_noise_mean *m, int V, ls_noise_scale *out) {
    int n = ls_noise_nlevels(V);
    double w = 0, wx = 0, wxx = 0, wy = 0, wxy = 0, sum = 0;
    for (int j = 0; j < n; j++) {
        double y = m->norms[j], x = 1 / (m->samples * ls_noise_level_size(V, j));
        double weight = 1 / (y * y);
        w += weight;
        wx += weight * x;
        wxx += weight * x * x;
        wy += weight * y;
        wxy += weight * x * y;
    }
    double c = (w * wxy - wx * wy) / (w * wxx - wx * wx), a = (wy - c * wx) / w;
    for (int j = 0; j < n; j++) {
        double y = m->norms[j], x = 1 / (m->samples * ls_noise_level_size(V, j));
        double distance = (y - a - c * x) / y;
        sum += distance * distance;
    }
    if (a > 0 && c > 0) out->fit = c / a;
    if (n > 2) out->misfit = sqrt(sum / (n - 2));
}

ls_noise_scale ls_noise_scale_of(const ls_noise_mean *m, int V) {
    ls_noise_scale s = {NAN, NAN, NAN};
    if (m->steps == 0) return s;
    if (m->square > 0 && m->trace > 0) s.simple = m->trace / m->square;
    fit_line(m, V, &s);
    return s;
}
