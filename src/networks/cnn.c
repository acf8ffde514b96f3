/* cnn.c - kind cnn: stages of two convolutions of 3x3, each with a norm and ReLU, and a pooling
 * that halves the image; then the mean over all pixels. */
#include "networks/usual.h"

static ls_value *add_conv(const ls_config *c, ls_model *m, ls_value *x, int64_t channels) {
    x = (ls_conv2d)(m, x, (ls_conv2d_options){.channels = channels, .kernel = 3, .no_bias = true});
    return ls_norm_add(c, m, x, true);
}

ls_value *ls_cnn_build(const ls_config *c, ls_model *m, ls_value *x, int64_t out) {
    static const int64_t usual[] = {32, 64};
    int64_t channels[LS_MOST_WIDTHS];
    int n = ls_widths_read(m, "model.channels", c->model.channels, usual, 2, channels);
    for (int i = 0; i < n; i++) {
        (ls_scope)(m, "stage.%d", i);
        x = add_conv(c, m, add_conv(c, m, x, channels[i]), channels[i]);
        if (i + 1 < n) x = (ls_max_pool)(m, x, (ls_pool_options){.kernel = 2});
        ls_scope_end(m);
    }
    x = (ls_mean_pool)(m, x);
    if (c->model.dropout > 0)
        x = (ls_dropout)(m, x, (ls_dropout_options){.rate = (float)c->model.dropout});
    return (ls_linear)(m, x, (ls_linear_options){.name = "head", .out = out});
}
