/* example.h - tf.train.Example messages, the records of TFRecord files. */
#ifndef LS_SOURCE_FORMATS_EXAMPLE_H
#define LS_SOURCE_FORMATS_EXAMPLE_H

#include <stdbool.h>

#include "base/mem.h"

typedef enum ls_example_kind {
    LS_EXAMPLE_EMPTY, /* no values of any kind */
    LS_EXAMPLE_BYTES,
    LS_EXAMPLE_FLOATS,
    LS_EXAMPLE_INTEGERS
} ls_example_kind;

/* One feature; pointers are valid until ls_example_free(). */
typedef struct ls_example_feature {
    const char *name;
    ls_example_kind kind;
    size_t n;                /* values */
    const float *floats;     /* [n] } by kind */
    const int64_t *integers; /* [n] } */
    const void *bytes;       /* the message's own list: ls_example_bytes() */
} ls_example_feature;

typedef struct ls_example {
    void *message;
    ls_example_feature *features; /* [n] sorted by name, each name once */
    size_t n;
} ls_example;

/* False: data [nbytes] are no such message. Any thread. */
bool ls_example_parse(const uint8_t *data, size_t nbytes, ls_example *x_p);
void ls_example_free(ls_example *);
/* The feature of this name; NULL: there is none. */
const ls_example_feature *ls_example_find(const ls_example *, const char *name);

/* Value i < n of a feature of bytes. */
const uint8_t *ls_example_bytes(const ls_example_feature *, size_t i, size_t *nbytes_p);

#endif
