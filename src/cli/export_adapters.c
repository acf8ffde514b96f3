/* export_adapters.c - see export_adapters.h. */
#include "cli/export_adapters.h"

#include <stdlib.h>

#include "base/file.h"
#include "base/json.h"
#include "base/print.h"
#include "cli/cli.h"
#include "storage/adapter_gguf.h"

/* ---- can others load the base? ---- */

static bool has_file(const char *dir, const char *name) {
    char *path = ls_format("%s/%s", dir, name);
    bool has = ls_file_exists(path);
    free(path);
    return has;
}

static bool has_weights(const char *dir) {
    return has_file(dir, "model.safetensors") || has_file(dir, "model.safetensors.index.json") ||
           has_file(dir, "pytorch_model.bin") || has_file(dir, "pytorch_model.bin.index.json");
}

static bool has_gguf_alone(const char *dir) {
    return has_file(dir, "config.json") && has_file(dir, "model.gguf") && !has_weights(dir);
}

/* Why transformers can't load this base; free() it. NULL: it can, or it is a name that is known
 * elsewhere. */
static char *problem_of(const char *base, bool is_given) {
    if (!ls_file_exists(base))
        return is_given ? NULL : ls_format("it is no longer there; give the base with --base");
    if (!ls_file_is_dir(base) || has_gguf_alone(base))
        return ls_format("it has its weights as GGUF; `lockstep import %s -o DIR --type f16` makes "
                         "a directory that transformers loads, for --base DIR",
                         base);
    if (has_file(base, "config.yaml") && !has_file(base, "config.json"))
        return ls_format("it is a run of Lockstep; `lockstep export %s --to safetensors -o DIR` "
                         "makes a directory that transformers loads, for --base DIR",
                         base);
    if (!has_file(base, "config.json")) return ls_format("it has no config.json");
    return has_weights(base) ? NULL : ls_format("it has no model.safetensors");
}

static void print_base(const cli_adapters *a, const char *base) {
    char *problem = base ? problem_of(base, a->base != NULL) : NULL;
    if (!base)
        ls_print("base_model_name_or_path: none, since the run began with no model; --base NAME "
                 "gives it\n");
    else if (problem)
        ls_print("base_model_name_or_path: %s: transformers can't load that: %s\n", base, problem);
    else if (a->base)
        ls_print("base_model_name_or_path: %s\n", base);
    else
        ls_print("base_model_name_or_path: %s, a path of this machine; --base NAME writes another "
                 "one\n",
                 base);
    free(problem);
}

static void set_base(ls_json *o, const cli_adapters *a, const char *base) {
    char *problem = base ? problem_of(base, a->base != NULL) : NULL;
    ls_json_set(o, "base", base ? ls_json_new_path(base) : ls_json_new_null());
    ls_json_set(o, "base_problem", problem ? ls_json_new_text(problem) : ls_json_new_null());
    free(problem);
}

/* ---- the export ---- */

static void print(const cli_adapters *a, const ls_peft_written *w) {
    ls_print("%s: adapters of %zu numbers in %zu tensors%s\n", a->to, w->count, w->ntensors,
             a->gguf ? ", for the base model; --merge writes a whole one" : "");
    if (!a->gguf) print_base(a, w->base);
}

static void print_json(const cli_adapters *a, const ls_peft_written *w) {
    ls_json *o = ls_json_new_object();
    ls_json_set(o, "path", ls_json_new_path(a->to));
    ls_json_set_text(o, "form", a->gguf ? "gguf adapter" : "peft");
    ls_json_set_integer(o, "tensors", (int64_t)w->ntensors);
    ls_json_set_integer(o, "parameters", (int64_t)w->count);
    if (!a->gguf) set_base(o, a, w->base);
    ls_print_json(o);
    ls_json_free(o);
}

ls_status cli_export_adapters(const cli_adapters *a, ls_error *e) {
    ls_peft_written w = {0};
    LS_TRY(a->gguf ? ls_adapter_gguf_export(a->from, a->ema, a->to, &w, e)
                   : ls_peft_export(a->from, a->ema, a->base, a->to, &w, e));
    if (a->json)
        print_json(a, &w);
    else
        print(a, &w);
    free(w.base);
    return LS_OK;
}
