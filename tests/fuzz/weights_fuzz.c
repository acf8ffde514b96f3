/* weights_fuzz.c - what files say of a model. The first byte chooses: a config.json (0), the index
 * of two files of tensors (1), or a GGUF file (2). What is accepted can be written and read again,
 * and its weights can be read. */
#include "fuzz.h"
#include "weights/config_json.h"
#include "weights/weights.h"

static void read_config(const char *text, size_t nbytes) {
    ls_json *o = NULL;
    ls_architecture a, again;
    ls_error e = {0};
    if (ls_json_parse(text, nbytes, "config.json", &o, &e) != LS_OK) return;
    ls_status s = ls_config_json_read(o, "config.json", &a, &e);
    ls_json_free(o);
    FUZZ_CHECK(s == LS_OK || e.msg[0]);
    if (s != LS_OK) return;
    FUZZ_CHECK(ls_name_count(&a) > 0 && ls_architecture_count(&a) > 0);
    o = ls_config_json_new(&a, "float32");
    s = ls_config_json_read(o, "config.json", &again, &e);
    ls_json_free(o);
    FUZZ_CHECK(s == LS_OK);
    char *difference = ls_architecture_difference(&a, &again);
    FUZZ_CHECK(!difference);
    FUZZ_CHECK(a.neos == again.neos && a.bos == again.bos && a.pad == again.pad);
}

/* A directory with files "a" of tensors a and b, and "c" of tensor c. */
static const char *folder(void) {
    static char path[] = "/tmp/lockstep-fuzz-XXXXXX";
    static int made = 0;
    static const float data[2];
    ls_tensor t[2] = {{.name = "a", .ndims = 1, .dims = {1}, .count = 1, .data = data},
                      {.name = "b", .ndims = 1, .dims = {1}, .count = 1, .data = data}};
    if (made) return path;
    made = 1;
    FUZZ_CHECK(mkdtemp(path));
    char *name = ls_format("%s/a", path);
    FUZZ_CHECK(ls_safetensors_write(name, t, 2, NULL) == LS_OK);
    name[strlen(name) - 1] = 'c';
    t[0].name[0] = 'c';
    FUZZ_CHECK(ls_safetensors_write(name, t, 1, NULL) == LS_OK);
    free(name);
    return path;
}

static void read_index(const uint8_t *data, size_t nbytes) {
    ls_shards s = {0};
    ls_error e = {0};
    char *path = ls_format("%s/" LS_SHARDS_INDEX, folder());
    FILE *f = fopen(path, "wb");
    FUZZ_CHECK(f && fwrite(data, 1, nbytes, f) == nbytes && fclose(f) == 0);
    if (ls_shards_open(folder(), &s, &e) == LS_OK)
        FUZZ_CHECK(s.n > 0 && ls_shards_find(&s, s.tensors[0]->name));
    else
        FUZZ_CHECK(e.msg[0]);
    ls_shards_close(&s);
    free(path);
}

static void read_gguf(const uint8_t *data, size_t nbytes) {
    ls_weights w = {0};
    ls_error e = {0};
    if (ls_weights_open(fuzz_file(data, nbytes), &w, &e) != LS_OK) {
        FUZZ_CHECK(e.msg[0]);
        return;
    }
    for (size_t i = 0; i < w.n; i++) {
        const ls_name *id = &w.list[i].id;
        int64_t width = id->ndims > 1 ? id->dims[1] : 1, rows = id->dims[0];
        float *out = LS_NEW_ARRAY(float, (size_t)(rows * width));
        FUZZ_CHECK(ls_weights_rows(&w, &w.list[i], 0, rows, out, &e) == LS_OK);
        free(out);
    }
    ls_weights_close(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
    if (nbytes == 0) return 0;
    if (data[0] == 0) read_config((const char *)data + 1, nbytes - 1);
    if (data[0] == 1) read_index(data + 1, nbytes - 1);
    if (data[0] == 2) read_gguf(data + 1, nbytes - 1);
    return 0;
}
