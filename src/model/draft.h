/* draft.h - what is known of a model while it is being built by calls (builder.h). */
#ifndef LS_MODEL_DRAFT_H
#define LS_MODEL_DRAFT_H

#include "lockstep/model.h"
#include "model/model.h"

enum { LS_DRAFT_DEPTH = 8 };

/* A pattern of ls_freeze(), and where it was called. */
typedef struct ls_frozen_pattern {
    char *text, file[64];
    int line;
} ls_frozen_pattern;

struct ls_draft {
    ls_value **values; /* [nvalues] */
    int nvalues;
    ls_constants *constants; /* [nconstants] */
    int nconstants;
    int *names; /* [nplaces] a hash table of the first nnames layers' names: 1 + the layer; 0:
                 * free */
    int nnames, nplaces;
    char scope[LS_NAME]; /* the open scopes: "block.1", or "" */
    size_t begins[LS_DRAFT_DEPTH];
    int depth;
    ls_frozen_pattern *frozen; /* [nfrozen] */
    int nfrozen;
    char file[64]; /* of the latest call; "": not known */
    int line;
    char what[2 * LS_NAME]; /* the layer that is being added: "conv2d 'block.1.conv2d'"; "": none */
    ls_status status;
    ls_error error;
    ls_value *failed;
    ls_value *(*as_numbers)(ls_model *, const ls_value *field); /* adds a layer */
};

#endif
