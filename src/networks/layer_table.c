/* layer_table.c - see layer_table.h. */
#include "networks/layer_table.h"

#include <string.h>

#define INT(type, member, low, high)                                                               \
    { #member, LS_OPTION_INT, offsetof(type, member), low, high }
#define REAL(type, member, low, high)                                                              \
    { #member, LS_OPTION_REAL, offsetof(type, member), low, high }

enum { MOST = 1 << 30 };

static ls_value *add_flatten(ls_model *m, ls_value *x, const void *o) {
    (void)o;
    return (ls_flatten)(m, x);
}

static ls_value *add_linear(ls_model *m, ls_value *x, const void *o) {
    return (ls_linear)(m, x, *(const ls_linear_options *)o);
}

static ls_value *add_gelu(ls_model *m, ls_value *x, const void *o) {
    (void)o;
    return (ls_gelu)(m, x);
}

typedef struct affine_options {
    const char *name;
    float scale, shift;
} affine_options;

static ls_value *add_affine(ls_model *m, ls_value *x, const void *options) {
    const affine_options *o = options;
    return (ls_affine)(m, x, o->scale == 0 ? 1 : o->scale, o->shift);
}

static void add_cross_entropy(ls_model *m, ls_value *x, ls_value *target, const void *o) {
    (ls_cross_entropy)(m, x, target, *(const ls_loss_options *)o);
}

static const ls_layer_entry entries[] = {
    {{"affine",
      NULL,
      {REAL(affine_options, scale, -1e30, 1e30), REAL(affine_options, shift, -1e30, 1e30)}},
     add_affine},
    {{"flatten", NULL, {{0}}}, add_flatten},
    {{"gelu", NULL, {{0}}}, add_gelu},
    {{"linear", "out", {INT(ls_linear_options, out, 1, MOST)}}, add_linear},
};
enum { NENTRIES = sizeof entries / sizeof *entries };

static const ls_loss_entry losses[] = {
    {{"cross_entropy", NULL, {{0}}}, true, add_cross_entropy},
};
enum { NLOSSES = sizeof losses / sizeof *losses };

const ls_layer_entry *ls_layer_entry_find(const char *kind) {
    for (int i = 0; i < NENTRIES; i++)
        if (strcmp(entries[i].options.kind, kind) == 0) return &entries[i];
    return NULL;
}

const ls_loss_entry *ls_loss_entry_find(const char *kind) {
    for (int i = 0; i < NLOSSES; i++)
        if (strcmp(losses[i].options.kind, kind) == 0) return &losses[i];
    return NULL;
}

const char *ls_layer_entry_name(int i) { return i < NENTRIES ? entries[i].options.kind : NULL; }

const char *ls_loss_entry_name(int i) { return i < NLOSSES ? losses[i].options.kind : NULL; }
