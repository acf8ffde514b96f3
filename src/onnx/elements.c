/* elements.c - layers that compute each number by itself, or each row. */
#include "onnx/kinds.h"

/* ---- one tensor ---- */

typedef const char *element_fn(ls_onnx_writer *, const char *x);

/* Writes an operator on each element of the layer's input, in the layout that the input has. */
static void write_each(ls_onnx_writer *w, const ls_layer *l, element_fn *fn) {
    ls_onnx_shape dims = ls_onnx_output_dims(l);
    if (ls_onnx_has_planes(w, l, 0, dims))
        ls_onnx_set_planes(w, l, fn(w, ls_onnx_read_planes(w, l, 0, dims)));
    else
        ls_onnx_set(w, l, fn(w, ls_onnx_read(w, l, 0, dims)), dims);
}

static const char *relu(ls_onnx_writer *w, const char *x) { return LS_ONNX_ADD(w->g, "Relu", x); }
static const char *sigmoid(ls_onnx_writer *w, const char *x) {
    return LS_ONNX_ADD(w->g, "Sigmoid", x);
}
static const char *hyperbolic(ls_onnx_writer *w, const char *x) {
    return LS_ONNX_ADD(w->g, "Tanh", x);
}
static const char *same(ls_onnx_writer *w, const char *x) {
    (void)w;
    return x;
}

const char *ls_onnx_silu(ls_onnx_writer *w, const char *x) {
    return LS_ONNX_ADD(w->g, "Mul", x, sigmoid(w, x));
}

/* x / (1 + e^-(a x + b x^3)), which is the approximation with tanh: a = 2 sqrt(2 / pi), b =
 * 0.044715 a. */
const char *ls_onnx_gelu(ls_onnx_writer *w, const char *x) {
    ls_onnx_graph *g = w->g;
    const char *a = ls_onnx_number(g, 1.5957691216f), *b = ls_onnx_number(g, 0.0713548162726f);
    const char *t = LS_ONNX_ADD(g, "Mul", LS_ONNX_ADD(g, "Mul", x, x), b);
    t = LS_ONNX_ADD(g, "Mul", LS_ONNX_ADD(g, "Add", t, a), x);
    return LS_ONNX_ADD(g, "Mul", x, sigmoid(w, t));
}

void ls_onnx_write_gelu(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    (void)f;
    write_each(w, l, ls_onnx_gelu);
}
void ls_onnx_write_relu(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    (void)f;
    write_each(w, l, relu);
}
void ls_onnx_write_sigmoid(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    (void)f;
    write_each(w, l, sigmoid);
}
void ls_onnx_write_tanh(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    (void)f;
    write_each(w, l, hyperbolic);
}
void ls_onnx_write_silu(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    (void)f;
    write_each(w, l, ls_onnx_silu);
}
/* Outside of training it is the value itself. */
void ls_onnx_write_dropout(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    (void)f;
    write_each(w, l, same);
}

void ls_onnx_write_softmax(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    ls_onnx_shape dims = ls_onnx_output_dims(l);
    (void)f;
    const char *y = LS_ONNX_ADD(w->g, "Softmax", ls_onnx_read(w, l, 0, dims));
    ls_onnx_set_int(w->g, "axis", -1);
    ls_onnx_set(w, l, y, dims);
}

/* ---- several of one shape ---- */

/* The sum or product of all inputs, in the layout that one of them has. A fork has one input. */
static const char *join(ls_onnx_writer *w, const ls_layer *l, const char *op, bool *planes_p) {
    ls_onnx_shape dims = ls_onnx_output_dims(l);
    const char *y = NULL;
    bool planes = false;
    for (int k = 0; k < l->ninputs; k++) planes = planes || ls_onnx_has_planes(w, l, k, dims);
    for (int k = 0; k < l->ninputs; k++) {
        const char *x = planes ? ls_onnx_read_planes(w, l, k, dims) : ls_onnx_read(w, l, k, dims);
        y = y ? LS_ONNX_ADD(w->g, op, y, x) : x;
    }
    *planes_p = planes;
    return y;
}

static void set_joined(ls_onnx_writer *w, const ls_layer *l, const char *y, bool planes) {
    if (planes)
        ls_onnx_set_planes(w, l, y);
    else
        ls_onnx_set(w, l, y, ls_onnx_output_dims(l));
}

void ls_onnx_write_add(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    bool planes = false;
    (void)f;
    const char *y = join(w, l, "Add", &planes);
    set_joined(w, l, y, planes);
}

void ls_onnx_write_add_relu(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    bool planes = false;
    (void)f;
    const char *y = join(w, l, "Add", &planes);
    set_joined(w, l, relu(w, y), planes);
}

void ls_onnx_write_multiply(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    bool planes = false;
    (void)f;
    const char *y = join(w, l, "Mul", &planes);
    set_joined(w, l, y, planes);
}

void ls_onnx_write_gelu_gate(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    ls_onnx_shape dims = ls_onnx_output_dims(l);
    (void)f;
    const char *gate = ls_onnx_gelu(w, ls_onnx_read(w, l, 0, dims));
    ls_onnx_set(w, l, LS_ONNX_ADD(w->g, "Mul", gate, ls_onnx_read(w, l, 1, dims)), dims);
}

void ls_onnx_write_silu_gate(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    ls_onnx_shape dims = ls_onnx_output_dims(l);
    (void)f;
    const char *gate = ls_onnx_silu(w, ls_onnx_read(w, l, 0, dims));
    ls_onnx_set(w, l, LS_ONNX_ADD(w->g, "Mul", gate, ls_onnx_read(w, l, 1, dims)), dims);
}

/* ---- scale x + shift ---- */

static const char *vector(ls_onnx_writer *w, const char *what, int64_t n, const float *x) {
    return n == 1 ? ls_onnx_number(w->g, *x) : ls_onnx_vector(w->g, what, n, x);
}

static bool are_all(const float *x, int64_t n, float value) {
    for (int64_t i = 0; i < n; i++)
        if (x[i] < value || x[i] > value) return false;
    return true;
}

static const char *transform(ls_onnx_writer *w, const char *x, const ls_facts *f) {
    if (!are_all(f->scale, f->nscales, 1))
        x = LS_ONNX_ADD(w->g, "Mul", x, vector(w, "scale", f->nscales, f->scale));
    if (!are_all(f->shift, f->nscales, 0))
        x = LS_ONNX_ADD(w->g, "Add", x, vector(w, "shift", f->nscales, f->shift));
    return x;
}

/* A field as numbers; of one number [N] it becomes [N, 1]. */
static const char *field_numbers(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    const char *x = ls_onnx_field(w, l, 0);
    if (f->type != LS_F32) {
        x = LS_ONNX_ADD(w->g, "Cast", x);
        ls_onnx_set_int(w->g, "to", 1);
    }
    return l->y_dims[0] ? x : ls_onnx_reshape(w, x, (ls_onnx_shape){2, {-1, 1}});
}

void ls_onnx_write_input(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    ls_onnx_set(w, l, transform(w, field_numbers(w, l, f), f), ls_onnx_output_dims(l));
}

void ls_onnx_write_standardize(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    const char *x = field_numbers(w, l, f);
    x = LS_ONNX_ADD(w->g, "Sub", x, vector(w, "mean", f->nscales, f->shift));
    x = LS_ONNX_ADD(w->g, "Mul", x, vector(w, "scale", f->nscales, f->scale));
    ls_onnx_set(w, l, x, ls_onnx_output_dims(l));
}

void ls_onnx_write_affine(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    ls_onnx_shape dims = ls_onnx_output_dims(l);
    ls_onnx_set(w, l, transform(w, ls_onnx_read(w, l, 0, dims), f), dims);
}

void ls_onnx_write_normalize(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    if (f->is_field)
        ls_onnx_write_input(w, l, f);
    else
        ls_onnx_write_affine(w, l, f);
}

/* ---- parameters that are added or multiplied ---- */

void ls_onnx_write_scale(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    ls_onnx_shape dims = ls_onnx_output_dims(l);
    (void)f;
    const char *x = ls_onnx_read(w, l, 0, dims);
    ls_onnx_set(w, l, LS_ONNX_ADD(w->g, "Mul", x, ls_onnx_param(w, l, 0)), dims);
}

/* Repeats x for each sample, of which there are as many as in the graph's first input. */
static const char *repeat(ls_onnx_writer *w, const char *x, ls_onnx_shape dims) {
    const char **count = ls_onnx_share(w, "samples"), *field = NULL;
    const int64_t first = 0;
    int64_t ones[LS_ONNX_DIMS];
    if (!*count) {
        for (int k = 0; !field && k < w->m->ninputs; k++) field = w->fields[k];
        const char *shape = LS_ONNX_ADD(w->g, "Shape", field);
        *count = LS_ONNX_ADD(w->g, "Gather", shape, ls_onnx_integers(w->g, 1, &first));
    }
    for (int i = 0; i < dims.n; i++) ones[i] = 1;
    const char *shape = LS_ONNX_ADD(w->g, "Concat", *count, ls_onnx_integers(w->g, dims.n, ones));
    ls_onnx_set_int(w->g, "axis", 0);
    return LS_ONNX_ADD(w->g, "Expand", ls_onnx_expand(w, x, 1, &first), shape);
}

void ls_onnx_write_learned(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    const ls_param *p = &w->m->params[l->params[0]];
    ls_onnx_shape dims = ls_onnx_shape_of(p->dims);
    (void)f;
    ls_onnx_set(w, l, repeat(w, ls_onnx_param(w, l, 0), dims), dims);
}

void ls_onnx_write_positions(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    ls_onnx_shape dims = ls_onnx_output_dims(l);
    const char *weight = ls_onnx_slice(w, ls_onnx_param(w, l, 0), 0, f->first, f->first + l->T);
    ls_onnx_set(w, l, LS_ONNX_ADD(w->g, "Add", ls_onnx_read(w, l, 0, dims), weight), dims);
}
