/* weights_fuzz.c - what files say of a model. The first byte chooses: a config.json (0), the index
 * of two files of tensors (1), or a GGUF file (2). What is accepted can be written and read again,
 * and its weights can be read. */
#include "fuzz.h"
#include "weights/config_json.h"
#include "weights/gguf_model.h"
#include "weights/weights.h"
#include "weights/write_model.h"

static ls_status zeros(const void *arg, const ls_name *n, int64_t first, int64_t end, float *x,
                       ls_error *e) {
    (void)arg;
    (void)e;
    memset(x, 0, (size_t)((end - first) * (n->ndims > 1 ? n->dims[1] : 1)) * sizeof *x);
    return LS_OK;
}

/* A small model as a GGUF file, and again: the same, or GGUF can't say it. A window becomes a
 * context of its length, where GGUF has no key for it, and a factor of 1 is none. */
static void write_gguf(const ls_architecture *a) {
    static char path[] = "/tmp/lockstep-fuzz-gguf-XXXXXX";
    static int made = -1;
    ls_architecture want = *a;
    ls_model_source s = {.arch = a, .rows = zeros};
    ls_gguf_writer writer = {0};
    ls_weights w = {0};
    ls_error e = {0};
    if (ls_architecture_count(a) > 1 << 14 || a->layers > 40) return;
    if (made < 0) made = mkstemp(path);
    FUZZ_CHECK(made >= 0);
    unlink(path);
    ls_status status = ls_write_gguf(&s, path, LS_BLOCK_F32, &writer, &e);
    ls_gguf_writer_free(&writer);
    FUZZ_CHECK(status == LS_OK || e.msg[0]);
    if (status != LS_OK) return;
    status = ls_weights_open(path, &w, &e);
    if (status != LS_OK) fprintf(stderr, "%s\n", e.msg);
    FUZZ_CHECK(status == LS_OK);
    want.context = ls_architecture_positions(a);
    bool says = a->gemma || a->family == LS_FAMILY_PHI3; /* which window there is */
    if (!says && a->window && a->window < a->context) want.context = a->window;
    if (!says) want.window = 0;
    if (a->rope.type == LS_ROPE_LONGROPE)
        want.rope.factor = (double)a->context / (double)a->rope.original_context;
    bool divides = a->rope.type == LS_ROPE_LINEAR || a->rope.type == LS_ROPE_LLAMA3;
    if (divides && (float)a->rope.factor == 1)
        want.rope = (ls_rotation){.type = LS_ROPE_DEFAULT, .base = a->rope.base};
    char *difference = ls_architecture_difference(&want, &w.arch);
    if (difference) fprintf(stderr, "%s\n", difference);
    FUZZ_CHECK(!difference);
    ls_weights_close(&w);
}

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
    write_gguf(&a);
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
