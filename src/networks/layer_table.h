/* layer_table.h - the layers that a config can name, with their options. */
#ifndef LS_NETWORKS_LAYER_TABLE_H
#define LS_NETWORKS_LAYER_TABLE_H

#include "networks/layer_options.h"
#include "source/source.h"

typedef enum ls_layer_reads {
    LS_READS_ONE,  /* value: that of the layer before, or of option `of` */
    LS_READS_TWO,  /* those of option `of` */
    LS_READS_MANY, /* at least two, those of option `of` */
    LS_READS_NONE
} ls_layer_reads;

/* Values that an entry reads, as many as a sample has fields; NULL behind the last one. */
enum { LS_SEVERAL = LS_SOURCE_FIELDS };
typedef struct ls_several {
    ls_value *of[LS_SEVERAL];
} ls_several;

/* One after the other along a dimension, also if they are more than a layer reads: then it is
 * layers of LS_MAX_VALUES each. */
ls_value *ls_several_concat(ls_model *, int dim, const ls_several *);

typedef struct ls_layer_entry {
    ls_option_list options;
    /* options: the struct of the layer's call. */
    ls_value *(*add)(ls_model *, const ls_several *x, const void *options);
    ls_layer_reads reads;
    bool takes_bytes; /* those of an image, which it scales itself; else it gets numbers from -1 to
                       * 1 */
    bool takes_ids;   /* whole numbers, an i32 field */
} ls_layer_entry;

/* NULL: there is none. */
const ls_layer_entry *ls_layer_entry_find(const char *kind);
/* The name of entry i, for lists of them; NULL behind the last one. */
const char *ls_layer_entry_name(int i);

#endif
