/* export_peft.c - see export_peft.h. */
#include "cli/export_peft.h"

#include "base/json.h"
#include "base/print.h"
#include "cli/cli.h"
#include "storage/peft.h"

ls_status cli_export_peft(const char *from, bool ema, const char *to, bool json, ls_error *e) {
    ls_peft_written w;
    LS_TRY(ls_peft_export(from, ema, to, &w, e));
    if (!json) {
        ls_print("%s: adapters of %zu numbers in %zu tensors\n", to, w.count, w.ntensors);
        return LS_OK;
    }
    ls_json *o = ls_json_new_object();
    ls_json_set(o, "path", ls_json_new_path(to));
    ls_json_set_text(o, "form", "peft");
    ls_json_set_integer(o, "tensors", (int64_t)w.ntensors);
    ls_json_set_integer(o, "parameters", (int64_t)w.count);
    ls_print_json(o);
    ls_json_free(o);
    return LS_OK;
}
