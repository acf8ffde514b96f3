/* usual.h - the usual networks: from an input to a prediction. */
#ifndef LS_NETWORKS_USUAL_H
#define LS_NETWORKS_USUAL_H

#include "config/config.h"
#include "model/builder.h"

/* x: the input, an image but for the MLP; the result has `out` numbers, of a layer "head". */
ls_value *ls_mlp_build(const ls_config *, ls_model *, ls_value *x, int64_t out);
ls_value *ls_cnn_build(const ls_config *, ls_model *, ls_value *x, int64_t out);
ls_value *ls_vit_build(const ls_config *, ls_model *, ls_value *x, int64_t out);
ls_value *ls_resnet_build(const ls_config *, ls_model *, ls_value *x, int64_t out);

/* The norm that model.norm asks for. */
ls_value *ls_norm_add(const ls_config *, ls_model *, ls_value *x, bool relu);

/* The numbers of a list in a config, one a line; where it is empty, the usual ones [nusual]. At
 * most LS_MOST_WIDTHS. -1: it is no list of whole numbers from 1 to 65536; the model has failed. */
enum { LS_MOST_WIDTHS = 64 };
int ls_widths_read(ls_model *, const char *key, const char *text, const int64_t *usual, int nusual,
                   int64_t widths[LS_MOST_WIDTHS]);

#endif
