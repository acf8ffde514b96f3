/* export_adapters.c - see export_adapters.h. */
#include "cli/export_adapters.h"

#include "base/json.h"
#include "base/print.h"
#include "cli/cli.h"
#include "storage/adapter_gguf.h"

ls_status cli_export_adapters(const cli_adapters *a, ls_error *e) {
    ls_peft_written w;
    LS_TRY((a->gguf ? ls_adapter_gguf_export : ls_peft_export)(a->from, a->ema, a->to, &w, e));
    if (!a->json) {
        ls_print("%s: adapters of %zu numbers in %zu tensors%s\n", a->to, w.count, w.ntensors,
                 a->gguf ? ", for the base model; --merge writes a whole one" : "");
        return LS_OK;
    }
    ls_json *o = ls_json_new_object();
    ls_json_set(o, "path", ls_json_new_path(a->to));
    ls_json_set_text(o, "form", a->gguf ? "gguf adapter" : "peft");
    ls_json_set_integer(o, "tensors", (int64_t)w.ntensors);
    ls_json_set_integer(o, "parameters", (int64_t)w.count);
    ls_print_json(o);
    ls_json_free(o);
    return LS_OK;
}
