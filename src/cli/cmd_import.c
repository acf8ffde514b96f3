/* cmd_import.c - lockstep import MODEL -o DIR */
#include <string.h>

#include "base/json.h"
#include "base/print.h"
#include "base/wrap.h"
#include "cli/cli.h"
#include "weights/blocks.h"
#include "weights/import.h"

enum { OUTPUT, TYPE, JSON };
enum { INDENT = 11 };

static void print(const char *path, const ls_imported *i) {
    char hash[LS_HASH_TEXT];
    ls_buf b = {0}, text = {0};
    ls_hash_text(i->written.hash, hash);
    ls_architecture_describe(&i->written.arch, &text);
    ls_buf_printf(&b, "model      ");
    ls_buf_wrap(&b, text.data, INDENT, INDENT);
    ls_buf_printf(&b, "weights    %lld parameters: %s, %.3f MB\n",
                  (long long)ls_architecture_count(&i->written.arch), i->written.types,
                  (double)i->written.nbytes / 1e6);
    ls_buf_printf(&b, "hash       %s\n", hash);
    ls_buf_printf(&b, "tokenizer  %s, %u tokens; %s\n", i->kind, i->ntokens,
                  i->has_template ? "a chat template" : "no chat template");
    ls_print_text(b.data, b.len);
    ls_print("%s\n", path);
    ls_buf_free(&text);
    ls_buf_free(&b);
}

static void print_json(const char *path, const ls_imported *i) {
    ls_json *o = ls_json_new_object();
    ls_json_set_path(o, "path", path);
    ls_json_set_text(o, "family", ls_family_name(i->written.arch.family));
    ls_json_set_integer(o, "parameters", ls_architecture_count(&i->written.arch));
    ls_json_set_integer(o, "bytes", (int64_t)i->written.nbytes);
    ls_json_set_hash(o, "hash", i->written.hash);
    ls_json_set_integer(o, "tokens", i->ntokens);
    ls_json_set_bool(o, "template", i->has_template);
    ls_print_json(o);
}

static bool type_of(const char *word, ls_block_type *t_p) {
    *t_p = LS_NBLOCK_TYPES;
    if (!word || strcmp(word, "as-stored") == 0) return true;
    return ls_block_named(word, t_p) && ls_block_of(*t_p)->pack;
}

static void fail_type(const char *word, ls_error *e) {
    ls_buf types = {0};
    ls_block_put_writable(&types);
    ls_fail(e, LS_EINVAL, "--type %s: is not one of as-stored, %s", word, types.data);
    ls_buf_free(&types);
}

static int run(const ls_args *a) {
    const char *to = cli_value(a, OUTPUT), *word = cli_value(a, TYPE);
    ls_block_type type = LS_NBLOCK_TYPES;
    ls_imported i = {0};
    ls_error e = {0};
    if (!to)
        ls_fail(&e, LS_EINVAL, "-o DIR is missing: the new directory, such as models/NAME");
    else if (!type_of(word, &type))
        fail_type(word, &e);
    if (e.code != LS_OK) {
        cli_fail(&e);
        return CLI_USAGE;
    }
    if (ls_model_import(a->words[0], to, type, &i, &e) != LS_OK) return cli_fail(&e);
    (cli_given(a, JSON) ? print_json : print)(to, &i);
    ls_imported_free(&i);
    return 0;
}

const ls_command cmd_import = {
    .name = "import",
    .words = "FILE|DIR",
    .min_words = 1,
    .max_words = 1,
    .summary = "make a directory of a published language model",
    .about =
        "Reads a published language model, a GGUF file or a directory of Hugging Face's form, "
        "checks\n"
        "all of it, and writes it as a directory that generate, eval and model.from take. It has\n"
        "the weights, config.json, the tokenizer, and the chat template if there is one.\n"
        "\n"
        "The hash is that of the weights' values: it does not depend on the form of the files.\n"
        "docs/reference/weights.md describes what is supported.",
    .options =
        {[OUTPUT] = {"output", 'o', "DIR", "the new directory, such as models/NAME"},
         [TYPE] = {"type", 0, "TYPE",
                   "as-stored (default), f32, f16, bf16, q8_0, q5_1, q5_0, q4_1 or q4_0: the "
                   "type of the weights"},
         [JSON] = {"json", 0, NULL, "for programs: one JSON object (docs/reference/json.md)"}},
    .run = run,
};
