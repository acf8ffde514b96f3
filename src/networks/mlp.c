/* mlp.c - kind mlp: layers of neurons, each linear and a ReLU, with dropout. */
#include "networks/usual.h"

ls_value *ls_mlp_build(const ls_config *c, ls_model *m, ls_value *x, int64_t out) {
    static const int64_t usual[] = {256};
    int64_t widths[LS_MOST_WIDTHS];
    int n = ls_widths_read(m, "model.hidden", c->model.hidden, usual, 1, widths);
    x = (ls_flatten)(m, x);
    for (int i = 0; i < n; i++) {
        (ls_scope)(m, "hidden.%d", i);
        x = (ls_relu)(m, (ls_linear)(m, x, (ls_linear_options){.out = widths[i]}));
        if (c->model.dropout > 0)
            x = (ls_dropout)(m, x, (ls_dropout_options){.rate = (float)c->model.dropout});
        ls_scope_end(m);
    }
    return (ls_linear)(m, x, (ls_linear_options){.name = "head", .out = out});
}
