/* usual.c - what the usual networks share: norms, lists of widths. */
#include "networks/usual.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "networks/layer_options.h"

ls_value *ls_norm_add(const ls_config *c, ls_model *m, ls_value *x, bool relu) {
    if (c->model.norm == LS_NORM_BATCH)
        return (ls_batch_norm)(m, x, (ls_batch_norm_options){.relu = relu});
    return (ls_group_norm)(m, x, (ls_group_norm_options){.relu = relu});
}

int ls_widths_read(ls_model *m, const char *key, const char *text, const int64_t *usual, int nusual,
                   int64_t widths[LS_MOST_WIDTHS]) {
    int n = 0;
    bool good = true;
    for (int i = 0; !*text && i < nusual; i++) widths[n++] = usual[i];
    char *all = ls_strdup(text), *rest = *text ? all : NULL;
    for (char *one; good && (one = strsep(&rest, "\n"));) {
        good = n < LS_MOST_WIDTHS && ls_option_whole(one, &widths[n]) && widths[n] >= 1 &&
               widths[n] <= 65536;
        n++;
    }
    free(all);
    if (!good)
        ls_build_fail(m, "%s: a list of 1 to %d whole numbers from 1 to 65536 is expected", key,
                      LS_MOST_WIDTHS);
    return good ? n : -1;
}
