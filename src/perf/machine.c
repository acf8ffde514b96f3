/* machine.c - see machine.h.
 *
 * Numbers in the file have units that keep them readable: microseconds, nanoseconds per byte, and
 * billions (of operations or elements) per second. A table's keys are its sizes: "64x128x512" or
 * "65536".
 */
#include "perf/machine.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/output.h"
#include "base/yaml.h"

static const char *const names[] = {[LS_WORK_PRODUCT] = "product",
                                    [LS_WORK_PRODUCT_DX] = "product_dx",
                                    [LS_WORK_PRODUCT_DW] = "product_dw",
                                    [LS_WORK_PRODUCT_BF16] = "product_bf16",
                                    [LS_WORK_PRODUCT_DX_BF16] = "product_dx_bf16",
                                    [LS_WORK_PRODUCT_DW_BF16] = "product_dw_bf16",
                                    [LS_WORK_NORM] = "norm",
                                    [LS_WORK_NORM_DX] = "norm_dx",
                                    [LS_WORK_NORM_DPARAMS] = "norm_dparams",
                                    [LS_WORK_COLUMN_SUM] = "column_sum",
                                    [LS_WORK_GELU] = "gelu",
                                    [LS_WORK_GELU_BACK] = "gelu_back",
                                    [LS_WORK_SOFTMAX] = "softmax",
                                    [LS_WORK_SOFTMAX_AGAIN] = "softmax_again",
                                    [LS_WORK_SOFTMAX_DX] = "softmax_dx",
                                    [LS_WORK_LOSS] = "loss",
                                    [LS_WORK_LOSS_DX] = "loss_dx",
                                    [LS_WORK_ADD] = "add",
                                    [LS_WORK_WIDEN] = "widen",
                                    [LS_WORK_NARROW] = "narrow",
                                    [LS_WORK_SQUARES] = "squares",
                                    [LS_WORK_UPDATE] = "adamw",
                                    [LS_WORK_PAGES] = "pages"};
_Static_assert(sizeof names / sizeof *names == LS_NWORK_KINDS, "a kind of work without a name");

const char *ls_work_name(ls_work_kind k) { return names[k]; }

bool ls_work_is_softmax(ls_work_kind k) {
    return k == LS_WORK_SOFTMAX || k == LS_WORK_SOFTMAX_AGAIN || k == LS_WORK_SOFTMAX_DX;
}

/* Single numbers: key, offset in ls_machine, unit. */
static const struct {
    const char *key;
    size_t at;
    double unit;
} numbers[] = {
    {"overhead.action_us", offsetof(ls_machine, action_s), 1e-6},
    {"overhead.call_us", offsetof(ls_machine, call_s), 1e-6},
    {"shared.start_us", offsetof(ls_machine, shared_start_s), 1e-6},
    {"shared.sum_byte_ns", offsetof(ls_machine, shared_sum_byte_s), 1e-9},
    {"shared.copy_byte_ns", offsetof(ls_machine, shared_copy_byte_s), 1e-9},
    {"links.latency_us", offsetof(ls_machine, link.latency_s), 1e-6},
    {"links.byte_ns", offsetof(ls_machine, link.byte_s), 1e-9},
    {"links.busy_message_us", offsetof(ls_machine, link.busy_message_s), 1e-6},
    {"links.busy_byte_ns", offsetof(ls_machine, link.busy_byte_s), 1e-9},
    {"links.reduce_ns", offsetof(ls_machine, link.reduce_s), 1e-9},
    {"device.memory_gb", offsetof(ls_machine, device.memory_nbytes), 1e9},
    {"device.product_gflops", offsetof(ls_machine, device.product), 1e9},
    {"device.memory_gb_per_s", offsetof(ls_machine, device.memory), 1e9},
    {"device.to_gb_per_s", offsetof(ls_machine, device.to), 1e9},
    {"device.from_gb_per_s", offsetof(ls_machine, device.from), 1e9},
    {"device.launch_us", offsetof(ls_machine, device.launch_s), 1e-6},
    {"device.product_bf16_gflops", offsetof(ls_machine, device.product_bf16), 1e9},
};
/* A file without a device has none of those from DEVICE on; of one with a device, RATES are above
 * 0, and all but those from OPTIONAL on must be there. */
enum { DEVICE = 10, RATES = 11, RATES_END = 15, OPTIONAL = 16 };
enum { NNUMBERS = sizeof numbers / sizeof *numbers, MAX_CORES = 4096 };

static const char how_made[] = "`lockstep bench machine --save FILE` measures them all";

static double *number_at(ls_machine *m, int i) {
    return (double *)(void *)((char *)m + numbers[i].at);
}

void ls_machine_free(ls_machine *m) {
    for (int k = 0; k < LS_NWORK_KINDS; k++) free(m->speeds[k].points);
    *m = (ls_machine){0};
}

void ls_speeds_make(ls_speeds *t, int naxes, const int n[3], const double *const axis[3]) {
    *t = (ls_speeds){.naxes = naxes, .n = {1, 1, 1}};
    size_t points = 1;
    for (int a = 0; a < naxes; a++) {
        t->n[a] = n[a];
        memcpy(t->axis[a], axis[a], (size_t)n[a] * sizeof(double));
        points *= (size_t)n[a];
    }
    t->points = LS_NEW_ARRAY(ls_speed, points);
}

/* ---- reading ---- */

/* A point of a table, as in the file. */
typedef struct point {
    ls_work_kind kind;
    double at[3];
    ls_speed speed;
    int line;
} point;

typedef struct reader {
    const char *path;
    ls_machine m;
    bool seen[NNUMBERS], version, cores, threads, price, watts, currency;
    point *points;
    int npoints;
} reader;

static int naxes_of(ls_work_kind k) { return k < LS_NPRODUCTS ? 3 : 1; }

static ls_status bad(const reader *r, const ls_yaml_item *item, const char *wanted, ls_error *e) {
    return ls_fail(e, LS_EINVAL, "%s:%d: %.60s is '%.40s'; %s is expected", r->path, item->line,
                   item->key, item->value, wanted);
}

static bool read_real(const char **text, double low, double high, double *x_p) {
    char *end = NULL;
    double x = strtod(*text, &end);
    if (end == *text || !(x >= low && x <= high)) return false;
    *text = end;
    *x_p = x;
    return true;
}

/* Reads "64x128x512", or one number. */
static bool read_sizes(const char *text, int naxes, double at[3]) {
    for (int a = 0; a < naxes; a++) {
        if (a > 0 && *text++ != 'x') return false;
        if (*text < '0' || *text > '9' || !read_real(&text, 1, 1e12, &at[a])) return false;
    }
    return *text == 0;
}

static ls_status read_point(reader *r, const ls_yaml_item *item, ls_work_kind k, ls_error *e) {
    const char *sizes = item->key + strlen(names[k]) + 1, *text = item->value;
    point p = {.kind = k, .line = item->line};
    if (!read_sizes(sizes, naxes_of(k), p.at))
        return ls_fail(e, LS_EINVAL, "%s:%d: '%.60s' is not a size of %s, such as %s", r->path,
                       item->line, sizes, names[k], naxes_of(k) == 3 ? "64x128x512" : "65536");
    static const char wanted[] = "two speeds, alone and while all cores compute, such as '3.1 2.8'";
    if (!read_real(&text, 1e-9, 1e9, &p.speed.alone) || *text != ' ')
        return bad(r, item, wanted, e);
    if (!read_real(&text, 1e-9, 1e9, &p.speed.busy) || *text) return bad(r, item, wanted, e);
    p.speed = (ls_speed){p.speed.alone * 1e9, p.speed.busy * 1e9};
    r->points = ls_grow(r->points, (size_t)r->npoints, sizeof *r->points);
    r->points[r->npoints++] = p;
    return LS_OK;
}

typedef struct limits {
    int64_t low, high;
    const char *wanted; /* in words */
} limits;

static ls_status read_whole(const reader *r, const ls_yaml_item *item, limits allowed, int *x_p,
                            ls_error *e) {
    char *end = NULL;
    long long x = strtoll(item->value, &end, 10);
    if (end == item->value || *end || x < allowed.low || x > allowed.high)
        return bad(r, item, allowed.wanted, e);
    *x_p = (int)x;
    return LS_OK;
}

static ls_status twice(const reader *r, const ls_yaml_item *item, bool *seen, ls_error *e) {
    if (*seen)
        return ls_fail(e, LS_EINVAL, "%s:%d: %.60s occurs twice", r->path, item->line, item->key);
    *seen = true;
    return LS_OK;
}

/* Prices may be missing. *read_p: the item is one. */
static ls_status read_price(reader *r, const ls_yaml_item *item, bool *read_p, ls_error *e) {
    const char *text = item->value;
    ls_machine_prices *p = &r->m.prices;
    bool hour = strcmp(item->key, "cost.worker_hour") == 0;
    *read_p = hour || strcmp(item->key, "cost.watts") == 0;
    if (*read_p) {
        double x = 0;
        LS_TRY(twice(r, item, hour ? &r->price : &r->watts, e));
        if (!read_real(&text, 0, 1e9, &x) || *text)
            return bad(r, item, "a number from 0 to 1e9", e);
        *(hour ? &p->worker_hour : &p->watts) = x;
        return LS_OK;
    }
    if (strcmp(item->key, "cost.currency") != 0) return LS_OK;
    *read_p = true;
    LS_TRY(twice(r, item, &r->currency, e));
    if (strlen(text) >= sizeof p->currency)
        return bad(r, item, "a currency of at most 15 bytes, such as USD", e);
    snprintf(p->currency, sizeof p->currency, "%s", text);
    return LS_OK;
}

static ls_status read_item(reader *r, const ls_yaml_item *item, ls_error *e) {
    bool is_price = false;
    LS_TRY(read_price(r, item, &is_price, e));
    if (is_price) return LS_OK;
    const char *dot = strchr(item->key, '.'), *text = item->value;
    int version = 0;
    if (strcmp(item->key, "machine.version") == 0) {
        LS_TRY(twice(r, item, &r->version, e));
        limits one = {LS_MACHINE_VERSION, LS_MACHINE_VERSION,
                      "version 1 (measure the machine again)"};
        return read_whole(r, item, one, &version, e);
    }
    if (strcmp(item->key, "machine.cores") == 0) {
        LS_TRY(twice(r, item, &r->cores, e));
        limits cores = {1, MAX_CORES, "a number of cores, 1 to 4096"};
        return read_whole(r, item, cores, &r->m.cores, e);
    }
    if (strcmp(item->key, "machine.threads") == 0) {
        LS_TRY(twice(r, item, &r->threads, e));
        limits threads = {1, MAX_CORES, "a worker's number of threads, 1 to 4096"};
        return read_whole(r, item, threads, &r->m.threads, e);
    }
    if (strcmp(item->key, "machine.name") == 0) {
        snprintf(r->m.name, sizeof r->m.name, "%s", item->value);
        return LS_OK;
    }
    if (strcmp(item->key, "device.name") == 0) {
        snprintf(r->m.device.name, sizeof r->m.device.name, "%s", item->value);
        return LS_OK;
    }
    for (int i = 0; i < NNUMBERS; i++) {
        double x = 0;
        if (strcmp(item->key, numbers[i].key) != 0) continue;
        LS_TRY(twice(r, item, &r->seen[i], e));
        bool rate = (i >= RATES && i < RATES_END) || i >= OPTIONAL;
        if (!read_real(&text, rate ? 1e-9 : 0, 1e9, &x) || *text)
            return bad(r, item, rate ? "a number from 1e-9 to 1e9" : "a number from 0 to 1e9", e);
        *number_at(&r->m, i) = x * numbers[i].unit;
        return LS_OK;
    }
    for (int k = 0; dot && k < LS_NWORK_KINDS; k++)
        if (strncmp(item->key, names[k], strlen(names[k])) == 0 &&
            dot == item->key + strlen(names[k]))
            return read_point(r, item, (ls_work_kind)k, e);
    return ls_fail(
        e, LS_EINVAL,
        "%s:%d: '%.60s' is not a key of a machine file; its groups are machine, cost, "
        "overhead, shared, links, device, and one for each kind of work (docs/design/simulator.md)",
        r->path, item->line, item->key);
}

/* Inserts a size into its axis, in order. False: the axis is full. */
static bool add_size(ls_speeds *t, int a, double size) {
    int i = 0;
    while (i < t->n[a] && t->axis[a][i] < size) i++;
    if (i < t->n[a] && t->axis[a][i] == size) return true;
    if (t->n[a] == LS_MACHINE_AXIS) return false;
    for (int j = t->n[a]++; j > i; j--) t->axis[a][j] = t->axis[a][j - 1];
    t->axis[a][i] = size;
    return true;
}

static size_t place_of(const ls_speeds *t, const double at[3]) {
    size_t place = 0;
    for (int a = 0; a < t->naxes; a++) {
        size_t i = 0;
        while (t->axis[a][i] != at[a]) i++;
        place = place * (size_t)t->n[a] + i;
    }
    return place;
}

static ls_status missing_point(const reader *r, const ls_speeds *t, ls_work_kind k, size_t place,
                               ls_error *e) {
    size_t i2 = place % (size_t)t->n[2], i1 = place / (size_t)t->n[2] % (size_t)t->n[1];
    size_t i0 = place / (size_t)t->n[2] / (size_t)t->n[1];
    return ls_fail(e, LS_EINVAL,
                   "%s: %s.%.0fx%.0fx%.0f is missing: the sizes of a product form a grid; %s",
                   r->path, names[k], t->axis[0][i0], t->axis[1][i1], t->axis[2][i2], how_made);
}

/* Files that were written before these kinds existed, or by hand, may lack them. */
static bool is_of_16_bits(ls_work_kind k) {
    return k == LS_WORK_WIDEN || k == LS_WORK_NARROW ||
           (k >= LS_WORK_PRODUCT_BF16 && k < LS_NPRODUCTS);
}

static ls_status fill_table(const reader *r, ls_work_kind k, ls_speeds *t, ls_error *e) {
    t->naxes = naxes_of(k);
    for (int a = t->naxes; a < 3; a++) t->n[a] = 1;
    for (int i = 0; i < r->npoints; i++)
        for (int a = 0; r->points[i].kind == k && a < t->naxes; a++)
            if (!add_size(t, a, r->points[i].at[a]))
                return ls_fail(e, LS_EINVAL, "%s:%d: %s has more than %d sizes along one axis",
                               r->path, r->points[i].line, names[k], LS_MACHINE_AXIS);
    size_t n = (size_t)(t->n[0] * t->n[1] * t->n[2]);
    if (n == 0 && is_of_16_bits(k)) return LS_OK;
    if (n == 0)
        return ls_fail(e, LS_EINVAL, "%s: the speeds of '%s' are missing; %s", r->path, names[k],
                       how_made);
    t->points = LS_NEW_ARRAY(ls_speed, n);
    for (int i = 0; i < r->npoints; i++) {
        const point *p = &r->points[i];
        if (p->kind != k) continue;
        ls_speed *to = &t->points[place_of(t, p->at)];
        if (to->alone > 0)
            return ls_fail(e, LS_EINVAL, "%s:%d: this size of %s occurs twice", r->path, p->line,
                           names[k]);
        *to = p->speed;
    }
    for (size_t i = 0; i < n; i++)
        if (t->points[i].alone <= 0) return missing_point(r, t, k, i, e);
    return LS_OK;
}

static ls_status check(reader *r, ls_error *e) {
    const char *missing = r->version ? r->cores ? NULL : "machine.cores" : "machine.version";
    bool device = *r->m.device.name != 0;
    for (int i = DEVICE; i < NNUMBERS; i++) device = device || r->seen[i];
    for (int i = 0; i < (device ? OPTIONAL : DEVICE) && !missing; i++)
        if (!r->seen[i]) missing = numbers[i].key;
    if (missing)
        return ls_fail(e, LS_EINVAL, "%s: %s is missing; %s", r->path, missing,
                       strncmp(missing, "device.", 7) == 0
                           ? "`lockstep bench machine --device DEVICE --save FILE` measures it"
                           : how_made);
    for (int k = 0; k < LS_NWORK_KINDS; k++)
        LS_TRY(fill_table(r, (ls_work_kind)k, &r->m.speeds[k], e));
    return LS_OK;
}

ls_status ls_machine_read(const char *path, ls_machine *m_p, ls_error *e) {
    ls_yaml y = {0};
    reader r = {.path = path};
    LS_TRY(ls_yaml_read(path, &y, e));
    ls_status s = LS_OK;
    for (size_t i = 0; i < y.nitems && s == LS_OK; i++) s = read_item(&r, &y.items[i], e);
    ls_yaml_free(&y);
    if (s == LS_OK) s = check(&r, e);
    free(r.points);
    if (s == LS_OK)
        *m_p = r.m;
    else
        ls_machine_free(&r.m);
    return s;
}

/* ---- writing ---- */

static void write_table(ls_buf *text, ls_work_kind k, const ls_speeds *t) {
    if (!t->points) return;
    ls_buf_printf(text, "%s:\n", names[k]);
    const ls_speed *p = t->points;
    for (int i = 0; i < t->n[0]; i++)
        for (int j = 0; j < t->n[1]; j++)
            for (int l = 0; l < t->n[2]; l++, p++) {
                ls_buf_printf(text, "  %.0f", t->axis[0][i]);
                if (t->naxes == 3) ls_buf_printf(text, "x%.0fx%.0f", t->axis[1][j], t->axis[2][l]);
                ls_buf_printf(text, ": %.4g %.4g\n", p->alone / 1e9, p->busy / 1e9);
            }
}

static void write_prices(ls_buf *text, const ls_machine_prices *p) {
    if (p->worker_hour <= 0 && p->watts <= 0) return;
    ls_buf_printf(text, "cost: # of a worker\n");
    if (p->worker_hour > 0) ls_buf_printf(text, "  worker_hour: %.6g\n", p->worker_hour);
    if (p->watts > 0) ls_buf_printf(text, "  watts: %.6g\n", p->watts);
    if (*p->currency) ls_buf_printf(text, "  currency: \"%s\"\n", p->currency);
}

ls_status ls_machine_write(const char *path, const ls_machine *m, const char *title, ls_error *e) {
    ls_buf text = {0};
    ls_machine copy = *m; /* number_at() gives a place to write to */
    char group[16] = "";
    ls_buf_printf(&text, "# %s\nmachine:\n  version: %d\n  name: \"%s\"\n  cores: %d\n", title,
                  LS_MACHINE_VERSION, m->name, m->cores);
    if (m->threads) ls_buf_printf(&text, "  threads: %d\n", m->threads);
    write_prices(&text, &m->prices);
    for (int i = 0; i < (m->device.product > 0 ? NNUMBERS : DEVICE); i++) {
        const char *dot = strchr(numbers[i].key, '.');
        if (i >= OPTIONAL && *number_at(&copy, i) <= 0) continue;
        size_t n = (size_t)(dot - numbers[i].key);
        if (strncmp(group, numbers[i].key, n + 1) != 0)
            ls_buf_printf(&text, "%.*s:\n", (int)n, numbers[i].key);
        snprintf(group, sizeof group, "%.*s.", (int)n, numbers[i].key);
        if (i == DEVICE) ls_buf_printf(&text, "  name: \"%s\"\n", m->device.name);
        ls_buf_printf(&text, "  %s: %.6g\n", dot + 1, *number_at(&copy, i) / numbers[i].unit);
    }
    ls_buf_printf(&text,
                  "# Speeds of one core: alone, and with all cores at work. Products, by "
                  "MxNxK, in billions\n# of operations a second; all others, by elements, in "
                  "billions of elements a second.\n");
    for (int k = 0; k < LS_NWORK_KINDS; k++) write_table(&text, (ls_work_kind)k, &m->speeds[k]);
    ls_status s = ls_output_write(path, text.data, text.len, e);
    ls_buf_free(&text);
    return s;
}

/* ---- speeds ---- */

ls_status ls_machine_has(const ls_machine *m, ls_work_kind k, ls_error *e) {
    if (m->speeds[k].points) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "the machine file of '%s' has no speeds of '%s', which a step in 16 bits "
                   "(train.compute, train.reduce_dtype) needs; %s",
                   m->name, names[k], how_made);
}

ls_status ls_machine_device_has_bf16(const ls_machine *m, ls_error *e) {
    if (m->device.product <= 0 || m->device.product_bf16 > 0) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "the machine file of '%s' has no device.product_bf16_gflops, which a step with "
                   "train.compute bf16 on a device needs; `lockstep bench machine --device DEVICE "
                   "--save FILE` measures it",
                   m->name);
}

/* Where x is on an axis: at point *i_p, plus the returned fraction of the way to the next. */
static double find(const ls_speeds *t, int a, double x, int *i_p) {
    int i = 0;
    while (i + 2 < t->n[a] && t->axis[a][i + 1] <= x) i++;
    *i_p = i;
    if (t->n[a] == 1 || x <= t->axis[a][i]) return 0;
    double f = log(x / t->axis[a][i]) / log(t->axis[a][i + 1] / t->axis[a][i]);
    return f < 1 ? f : 1;
}

/* Seconds per unit of work while `busy` threads compute. */
static double unit_seconds(const ls_machine *m, const ls_speed *p, int busy) {
    double alone = 1 / p->alone, all = 1 / p->busy;
    if (busy <= 1 && m->cores > 1) return alone;
    if (busy >= m->cores) return all * busy / m->cores;
    return alone + (all - alone) * (busy - 1) / (m->cores - 1);
}

/* Interpolates the logarithms of the times at the corners around a point. */
static double interpolate(const ls_machine *m, ls_work_kind k, const double at[3], int busy) {
    const ls_speeds *t = &m->speeds[k];
    int i[3] = {0};
    double f[3] = {0}, sum = 0;
    for (int a = 0; a < t->naxes; a++) f[a] = find(t, a, at[a], &i[a]);
    for (int corner = 0; corner < 1 << t->naxes; corner++) {
        double weight = 1;
        size_t place = 0;
        for (int a = 0; a < t->naxes; a++) {
            int up = corner >> a & 1;
            weight *= up ? f[a] : 1 - f[a];
            place = place * (size_t)t->n[a] + (size_t)(i[a] + up);
        }
        if (weight > 0) sum += weight * log(unit_seconds(m, &t->points[place], busy));
    }
    return exp(sum);
}

double ls_machine_product_s(const ls_machine *m, ls_work_kind k, double M, double N, double K,
                            int busy) {
    return M * N * K > 0 ? 2 * M * N * K * interpolate(m, k, (double[]){M, N, K}, busy) : 0;
}

double ls_machine_pass_s(const ls_machine *m, ls_work_kind k, double elements, int busy) {
    return elements > 0 ? elements * interpolate(m, k, (double[]){elements, 0, 0}, busy) : 0;
}
