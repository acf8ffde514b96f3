/* resnet.c - kind resnet: a convolution, stages of residual blocks, the mean over all pixels. Each
 * stage but the first one halves the image. With 3 blocks and channels [16, 32, 64] it is
 * ResNet-20, with group norm unless model.norm is batch. He, Zhang, Ren & Sun, "Deep residual
 * learning for image recognition", CVPR 2016.
 */
#include "networks/usual.h"

static ls_value *add_conv(const ls_config *c, ls_model *m, ls_value *x, ls_conv2d_options o,
                          bool relu) {
    o.no_bias = true;
    return ls_norm_add(c, m, (ls_conv2d)(m, x, o), relu);
}

/* Two convolutions of 3x3 beside a shortcut, which is a convolution of 1x1 where the shape
 * changes. */
static ls_value *add_block(const ls_config *c, ls_model *m, ls_value *x, int64_t channels,
                           int64_t stride, bool reshapes) {
    ls_value *y = add_conv(
        c, m, x, (ls_conv2d_options){.channels = channels, .kernel = 3, .stride = stride}, true);
    y = add_conv(c, m, y, (ls_conv2d_options){.channels = channels, .kernel = 3}, false);
    if (reshapes)
        x = add_conv(c, m, x,
                     (ls_conv2d_options){
                         .name = "shortcut", .channels = channels, .kernel = 1, .stride = stride},
                     false);
    return (ls_add_relu)(m, x, y);
}

ls_value *ls_resnet_build(const ls_config *c, ls_model *m, ls_value *x, int64_t out) {
    static const int64_t usual[] = {16, 32, 64};
    int64_t channels[LS_MOST_WIDTHS];
    int n = ls_widths_read(m, "model.channels", c->model.channels, usual, 3, channels);
    if (n < 1) return ls_build_failed(m);
    (ls_scope)(m, "stem");
    x = add_conv(c, m, x, (ls_conv2d_options){.channels = channels[0], .kernel = 3}, true);
    ls_scope_end(m);
    for (int s = 0; s < n; s++)
        for (int b = 0; b < (int)c->model.blocks; b++) {
            bool first = b == 0 && s > 0;
            (ls_scope)(m, "stage.%d.%d", s, b);
            x = add_block(c, m, x, channels[s], first ? 2 : 1, first);
            ls_scope_end(m);
        }
    return (ls_linear)(m, (ls_mean_pool)(m, x), (ls_linear_options){.name = "head", .out = out});
}
