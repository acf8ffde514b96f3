/* cnn.c - a convolutional network for images of clothes, with a layer of our own.
 *
 *     cc cnn.c -o cnn $(pkg-config --cflags --libs lockstep) -lm
 *     ./cnn check                               # every gradient, and that bits depend on nothing
 *     ./cnn train cnn.yaml -n 2 -o runs/cnn     # any number of workers, to the same bits
 *     ./cnn help config cnn                     # the keys of this program
 */
#include <math.h>

#include <lockstep/program.h>

/* y = x * sigmoid(beta x), with one beta for each channel. */
static void swish_forward(const ls_layer_args *a) {
    const float *x = a->in[0].data, *beta = a->param[0].data;
    int64_t channels = a->param[0].count;
    for (int64_t i = 0; i < a->samples * a->in[0].count; i++)
        a->out[i] = x[i] / (1 + expf(-beta[i % channels] * x[i]));
}

static void swish_backward(const ls_layer_args *a) {
    const float *x = a->in[0].data, *beta = a->param[0].data;
    int64_t channels = a->param[0].count;
    for (int64_t i = 0; i < a->samples * a->in[0].count; i++) {
        float b = beta[i % channels], s = 1 / (1 + expf(-b * x[i])), slope = s * (1 - s);
        a->din[0][i] = a->dout[i] * (s + b * x[i] * slope);
        a->dparam[0][i % channels] += a->dout[i] * x[i] * x[i] * slope;
    }
}

/* Operations of forward: for predictions of a step's time and the share of the processor's peak. */
static const char *swish_sizes(const ls_layer_args *a, ls_layer_sizes *s) {
    s->flops = 5.0 * (double)a->in[0].count;
    return NULL;
}

static const ls_layer_kind swish = {.name = "swish",
                                    .nparams = 1,
                                    .forward = swish_forward,
                                    .backward = swish_backward,
                                    .sizes = swish_sizes};

static void build(ls_model *m, const ls_keys *k) {
    ls_value *x = ls_input(m, "image", LS_U8, LS_DIMS(28, 28, 1));
    ls_value *label = ls_input(m, "label", LS_I32, LS_SCALAR);
    int64_t width = ls_key_int(k, "width");

    x = ls_affine(m, x, 1 / 255.0f, -0.5f);
    x = ls_conv2d(m, x, .name = "stem", .channels = width, .kernel = 3, .stride = 2);
    for (int i = 0; i < ls_key_int(k, "blocks"); i++) {
        ls_scope(m, "block.%d", i);
        ls_value *y = ls_group_norm(m, x, .groups = 4);
        y = ls_own_layer(m, &swish, y, .params = {LS_PARAM("beta", LS_ONES, width)});
        y = ls_conv2d(m, y, .channels = width, .kernel = 3);
        x = ls_add(m, x, y);
        ls_scope_end(m);
    }
    x = ls_linear(m, ls_mean_pool(m, x), .name = "head", .out = 10);
    ls_cross_entropy(m, x, label, .smoothing = 0.1f);
    ls_metric(m, "accuracy", ls_is_top(m, x, label, 1));
}

static const ls_key_spec keys[] = {
    {.name = "width", .type = LS_KEY_INT, .low = 4, .high = 512, .usual = "16", .help = "channels"},
    {.name = "blocks",
     .type = LS_KEY_INT,
     .low = 1,
     .high = 9,
     .usual = "2",
     .help = "residual blocks"},
    {0}};

int main(int argc, char **argv) {
    static const ls_program cnn = {.name = "cnn", .keys = keys, .build = build};
    return ls_program_main(argc, argv, &cnn);
}
