/* predict.c - what a trained network says of one sample, given as numbers.
 *
 *     cc predict.c -o predict $(pkg-config --cflags --libs lockstep)
 *     ./predict runs/flowers                      # what it reads and predicts
 *     ./predict runs/flowers 5.1 3.5 1.4 0.2      # the numbers of its fields, in their order
 *
 * Threads may share the predictor: ls_predict() may be called by any of them at the same time.
 */
#include <stdio.h>
#include <stdlib.h>

#include <lockstep/infer.h>

static int fail(const ls_error *e) {
    fprintf(stderr, "predict: %s\n", e->msg);
    return 1;
}

static void describe(const ls_predictor *p) {
    for (int i = 0; i < ls_predictor_ninputs(p); i++) {
        ls_predictor_input f = ls_predictor_get_input(p, i);
        printf("reads     %s: %lld %s\n", f.name, (long long)f.count, ls_dtype_name(f.type));
    }
    for (int k = 0; k < ls_predictor_noutputs(p); k++) {
        ls_predictor_output o = ls_predictor_get_output(p, k);
        printf("predicts  %s: %lld numbers\n", o.name, (long long)o.count);
    }
}

/* Reads n numbers of a field from the words; returns how many words it took, 0: too few. */
static int64_t read_field(const ls_predictor_input *f, char **words, int64_t nwords, void *to) {
    if (nwords < f->count) return 0;
    for (int64_t i = 0; i < f->count; i++) {
        double x = atof(words[i]);
        if (f->type == LS_F32)
            ((float *)to)[i] = (float)x;
        else if (f->type == LS_I32)
            ((int32_t *)to)[i] = (int32_t)x;
        else
            ((unsigned char *)to)[i] = (unsigned char)x;
    }
    return f->count;
}

static void print(const ls_predictor_output *o, const float *x) {
    for (int64_t i = 0; i < o->count; i++) {
        if (o->kind == LS_CLASSES && i % o->width < o->nclasses)
            printf("%s %-20s %.4f\n", o->name, o->classes[i % o->width], (double)x[i]);
        else
            printf("%s %-20lld %.4f\n", o->name, (long long)i, (double)x[i]);
    }
}

enum { MOST = 64 }; /* fields, and outputs */

/* 0, or an exit code. */
static int read_fields(const ls_predictor *p, char **words, int64_t nwords, void **numbers) {
    for (int i = 0; i < ls_predictor_ninputs(p); i++) {
        ls_predictor_input f = ls_predictor_get_input(p, i);
        numbers[i] = calloc((size_t)f.nbytes, 1);
        int64_t n = numbers[i] ? read_field(&f, words, nwords, numbers[i]) : 0;
        if (n == 0) {
            fprintf(stderr, "predict: %lld numbers of '%s' are missing\n", (long long)f.count,
                    f.name);
            return 2;
        }
        words += n, nwords -= n;
    }
    return 0;
}

static int predict(ls_predictor *p, char **words, int64_t nwords) {
    void *numbers[MOST] = {0};
    const void *fields[MOST];
    float *out[MOST] = {0};
    int nin = ls_predictor_ninputs(p), nout = ls_predictor_noutputs(p);
    ls_error e;
    if (nin > MOST || nout > MOST) {
        fprintf(stderr, "predict: %d fields and %d outputs; at most %d\n", nin, nout, MOST);
        return 2;
    }
    int code = read_fields(p, words, nwords, numbers);
    for (int i = 0; i < nin; i++) fields[i] = numbers[i];
    for (int k = 0; k < nout; k++)
        out[k] = (float *)malloc((size_t)ls_predictor_get_output(p, k).count * sizeof(float));
    if (code == 0 && ls_predict(p, 1, fields, out, &e) != LS_OK) code = fail(&e);
    for (int k = 0; k < nout && code == 0; k++) {
        ls_predictor_output o = ls_predictor_get_output(p, k);
        print(&o, out[k]);
    }
    for (int i = 0; i < nin; i++) free(numbers[i]);
    for (int k = 0; k < nout; k++) free(out[k]);
    return code;
}

int main(int argc, char **argv) {
    ls_predictor *p;
    ls_error e;
    if (argc < 2) {
        fprintf(stderr, "usage: predict RUN [NUMBER...]\n");
        return 2;
    }
    if (ls_predictor_open(argv[1], NULL, &p, &e) != LS_OK) return fail(&e);
    if (argc == 2) describe(p);
    int code = argc == 2 ? 0 : predict(p, argv + 2, argc - 2);
    ls_predictor_close(p);
    return code;
}
