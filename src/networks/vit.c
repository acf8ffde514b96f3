/* vit.c - kind vit: patches of the image as tokens with learned positions, transformer blocks that
 * begin with their norms, the mean of all tokens. Dosovitskiy et al., "An image is worth 16x16
 * words", ICLR 2021; the mean in place of a class token: Beyer, Zhai & Kolesnikov, "Better plain
 * ViT baselines for ImageNet-1k", 2022. */
#include "networks/usual.h"

static ls_value *add_dropout(const ls_config *c, ls_model *m, ls_value *x) {
    if (c->model.dropout == 0) return x;
    return (ls_dropout)(m, x, (ls_dropout_options){.rate = (float)c->model.dropout});
}

static ls_value *add_linear(ls_model *m, ls_value *x, const char *name, int64_t out) {
    return (ls_linear)(m, x, (ls_linear_options){.name = name, .out = out});
}

static ls_value *add_block(const ls_config *c, ls_model *m, ls_value *x) {
    int64_t width = c->model.width;
    ls_value *y = (ls_layer_norm)(m, x, (ls_layer_norm_options){.name = "norm_1"});
    y = add_linear(m, y, "qkv", 3 * width);
    y = (ls_attention)(m, y, (ls_attention_options){.heads = c->model.heads});
    x = (ls_add)(m, x, add_dropout(c, m, add_linear(m, y, "projection", width)));
    y = (ls_layer_norm)(m, x, (ls_layer_norm_options){.name = "norm_2"});
    y = (ls_gelu)(m, add_linear(m, y, "fc1", 4 * width));
    return (ls_add)(m, x, add_dropout(c, m, add_linear(m, y, "fc2", width)));
}

ls_value *ls_vit_build(const ls_config *c, ls_model *m, ls_value *x, int64_t out) {
    x = (ls_patches)(m, x, c->model.patch);
    x = add_linear(m, x, "patch", c->model.width);
    if (!ls_build_is_good(m)) return ls_build_failed(m);
    x = (ls_add)(m, x, (ls_learned)(m, x->dims, (ls_learned_options){.name = "positions"}));
    for (int i = 0; i < (int)c->model.layers; i++) {
        (ls_scope)(m, "block.%d", i);
        x = add_block(c, m, x);
        ls_scope_end(m);
    }
    x = (ls_layer_norm)(m, x, (ls_layer_norm_options){.name = "norm"});
    return add_linear(m, (ls_mean)(m, x, 0), "head", out);
}
