/* layer_table.h - the layers and losses that a config can name, with their options. */
#ifndef LS_NETWORKS_LAYER_TABLE_H
#define LS_NETWORKS_LAYER_TABLE_H

#include "networks/options.h"

typedef struct ls_layer_entry {
    ls_option_list options;
    /* options: the struct of the layer's call. */
    ls_value *(*add)(ls_model *, ls_value *x, const void *options);
} ls_layer_entry;

typedef struct ls_loss_entry {
    ls_option_list options;
    bool of_classes; /* the target is a class, an LS_I32; else numbers, as many as predicted */
    void (*add)(ls_model *, ls_value *x, ls_value *target, const void *options);
} ls_loss_entry;

/* NULL: there is none. */
const ls_layer_entry *ls_layer_entry_find(const char *kind);
const ls_loss_entry *ls_loss_entry_find(const char *kind);
/* The name of entry i, for lists of them; NULL behind the last one. */
const char *ls_layer_entry_name(int i);
const char *ls_loss_entry_name(int i);

#endif
