/* predictions.c - what a network predicts of samples, for scripts/check_onnx.py.
 *
 *     network_predictions RUN
 *         prints the fields that its predictions need: name, type, count, the number of classes (0:
 *         none), whether negative ones stand for none; and the rows of a language model (0: none)
 *     network_predictions RUN N [T] <FIELDS >NUMBERS
 *         FIELDS: these fields, one after the other, each of N samples, in texts of T rows.
 *         NUMBERS: the predictions, one after the other, each of N samples, in f32.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "infer/generate.h"

typedef struct network {
    ls_trained t;
    ls_prediction list[LS_PREDICTIONS];
    int n;
    bool fields[LS_SOURCE_FIELDS];
    int64_t rows; /* of a language model, as it is told */
} network;

static bool open(const char *path, network *w) {
    ls_error e = {0};
    const ls_trained_options o = {.in_f32 = true};
    if (ls_trained_open(path, &o, &w->t, &e) != LS_OK) {
        fprintf(stderr, "network_predictions: %s\n", e.msg);
        return false;
    }
    const ls_model *m = &w->t.model;
    bool *layers = calloc((size_t)m->nlayers, 1);
    w->n = ls_predictions_of(m, w->list);
    ls_predictions_need(m, w->list, w->n, layers, w->fields);
    free(layers);
    return true;
}

static int64_t count_of(const network *w, const ls_field *f) {
    int64_t count = 1;
    for (int k = 0; k < f->ndims; k++) count *= f->dims[k];
    return w->rows ? w->rows : count;
}

static void print_fields(const network *w) {
    const ls_model *m = &w->t.model;
    for (int i = 0; i < m->ninputs; i++)
        if (w->fields[i])
            printf("%s %s %lld %d %d\n", m->inputs[i].name, ls_dtype_name(m->inputs[i].type),
                   (long long)count_of(w, &m->inputs[i]), m->classes[i], m->padded[i]);
    printf("rows %lld\n", (long long)(w->list[0].is_fused ? w->list[0].rows : 0));
}

static bool read_samples(const network *w, size_t n, char *samples) {
    const ls_model *m = &w->t.model;
    for (int i = 0; i < m->ninputs; i++) {
        const ls_field *f = &m->inputs[i];
        size_t nbytes = (size_t)count_of(w, f) * ls_dtype_size(f->type);
        for (size_t k = 0; w->fields[i] && k < n; k++)
            if (fread(samples + k * m->sample_nbytes + f->offset, 1, nbytes, stdin) != nbytes)
                return false;
    }
    return true;
}

/* Writes the first w->rows rows of each output, if that is set; else all. */
static void write_rows(const network *w, int k, size_t n, const float *x) {
    const ls_prediction *p = &w->list[k];
    size_t count = (size_t)ls_prediction_count(p), part = count;
    if (w->rows) part = (size_t)(w->rows * p->width);
    for (size_t i = 0; i < n; i++) fwrite(x + i * count, sizeof *x, part, stdout);
}

static bool predict(network *w, size_t n) {
    ls_error e = {0};
    char *samples = calloc(n, w->t.model.sample_nbytes);
    float *out[LS_PREDICTIONS] = {NULL};
    for (int k = 0; k < w->n; k++)
        out[k] = calloc(n * (size_t)ls_prediction_count(&w->list[k]), sizeof(float));
    bool good = samples && read_samples(w, n, samples);
    const ls_infer_predicted wanted = {w->list, w->n, out};
    good = good && ls_infer_predictions(&w->t.infer, &wanted, (int64_t)n, samples, &e) == LS_OK;
    for (int k = 0; good && k < w->n; k++) write_rows(w, k, n, out[k]);
    for (int k = 0; k < w->n; k++) free(out[k]);
    free(samples);
    return good && fflush(stdout) == 0;
}

int main(int argc, char **argv) {
    network w = {.n = 0};
    bool good = true;
    if (argc < 2 || argc > 4) {
        fprintf(stderr, "usage: network_predictions RUN [N [T]] <FIELDS >NUMBERS\n");
        return 2;
    }
    if (!open(argv[1], &w)) return 1;
    if (argc == 4) w.rows = atol(argv[3]);
    if (argc == 2)
        print_fields(&w);
    else
        good = predict(&w, (size_t)atol(argv[2]));
    ls_trained_close(&w.t);
    return good ? 0 : 1;
}
