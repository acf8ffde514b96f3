/* example.c - the one file that reads messages of protobuf-c; protoc generates the parser from
 * example.proto. */
#include "source/formats/example.h"

#include <stdlib.h>
#include <string.h>

#include "example.pb-c.h"

static int by_name(const void *a, const void *b) {
    const ls_example_feature *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static ls_example_feature feature_of(const LsProto__FeatureEntry *entry) {
    ls_example_feature f = {.name = entry->key ? entry->key : ""};
    const LsProto__Feature *value = entry->value;
    if (!value) return f;
    switch (value->kind_case) {
    case LS_PROTO__FEATURE__KIND_BYTES_LIST:
        f.kind = LS_EXAMPLE_BYTES;
        f.n = value->bytes_list->n_value;
        f.bytes = value->bytes_list->value;
        break;
    case LS_PROTO__FEATURE__KIND_FLOAT_LIST:
        f.kind = LS_EXAMPLE_FLOATS;
        f.n = value->float_list->n_value;
        f.floats = value->float_list->value;
        break;
    case LS_PROTO__FEATURE__KIND_INT64_LIST:
        f.kind = LS_EXAMPLE_INTEGERS;
        f.n = value->int64_list->n_value;
        f.integers = value->int64_list->value;
        break;
    default: break;
    }
    if (f.n == 0) f.kind = LS_EXAMPLE_EMPTY;
    return f;
}

bool ls_example_parse(const uint8_t *data, size_t nbytes, ls_example *x_p) {
    LsProto__Example *message = ls_proto__example__unpack(NULL, nbytes, data);
    if (!message) return false;
    ls_example x = {.message = message};
    x.n = message->features ? message->features->n_feature : 0;
    x.features = LS_NEW_ARRAY(ls_example_feature, x.n);
    for (size_t i = 0; i < x.n; i++) x.features[i] = feature_of(message->features->feature[i]);
    qsort(x.features, x.n, sizeof *x.features, by_name);
    bool repeated = false;
    for (size_t i = 1; i < x.n; i++)
        repeated = repeated || by_name(&x.features[i - 1], &x.features[i]) == 0;
    if (repeated) {
        ls_example_free(&x);
        return false;
    }
    *x_p = x;
    return true;
}

const ls_example_feature *ls_example_find(const ls_example *x, const char *name) {
    const ls_example_feature wanted = {.name = name};
    return x->n ? bsearch(&wanted, x->features, x->n, sizeof *x->features, by_name) : NULL;
}

void ls_example_free(ls_example *x) {
    if (x->message) ls_proto__example__free_unpacked(x->message, NULL);
    free(x->features);
    *x = (ls_example){0};
}

const uint8_t *ls_example_bytes(const ls_example_feature *f, size_t i, size_t *nbytes_p) {
    const ProtobufCBinaryData *list = f->bytes;
    *nbytes_p = list[i].len;
    return list[i].data;
}
