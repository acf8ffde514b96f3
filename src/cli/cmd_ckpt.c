/* cmd_ckpt.c - lockstep ckpt hash|show|verify|export|list|ledger */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/plural.h"
#include "base/print.h"
#include "cli/cli.h"
#include "infer/exported.h"
#include "report/ledger.h"
#include "storage/belongs.h"
#include "storage/checkpoint.h"
#include "storage/unsaved.h"

enum { JSON, EMA, TO };

static ls_status show(const char *path, bool json, ls_error *e) {
    if (json) {
        ls_json *j = NULL;
        LS_TRY(ls_checkpoint_show_json(path, &j, e));
        ls_print_json(j);
        return LS_OK;
    }
    ls_buf out = {0};
    ls_status s = ls_checkpoint_show(path, &out, e);
    if (s == LS_OK) ls_print_text(out.data, out.len);
    ls_buf_free(&out);
    return s;
}

static void print_info(const char *path, const ls_checkpoint_info *i) {
    ls_json *o = ls_json_new_object();
    ls_json_set_path(o, "checkpoint", path);
    ls_json_set_integer(o, "step", i->step);
    ls_json_set_integer(o, "tensors", (int64_t)i->ntensors);
    ls_json_set_integer(o, "parameters", (int64_t)i->count);
    ls_json_set_integer(o, "bytes", (int64_t)i->nbytes);
    ls_json_set_hash(o, "weights", i->weights);
    ls_json_set_hash(o, "optimizer", i->optimizer);
    ls_print_json(o);
}

static ls_status check(const char *path, bool hash, bool json, ls_error *e) {
    ls_checkpoint_info i;
    LS_TRY(ls_checkpoint_verify(path, &i, e));
    if (!hash) LS_TRY(ls_belongs_check_place(path, e));
    char weights[LS_HASH_TEXT], optimizer[LS_HASH_TEXT];
    ls_hash_text(i.weights, weights);
    ls_hash_text(i.optimizer, optimizer);
    if (json)
        print_info(path, &i);
    else if (hash)
        ls_print("weights %s\noptimizer %s\n", weights, optimizer);
    else
        ls_print("%s: good: step %lld, %zu tensors, %zu parameters, %zu bytes\n", path,
                 (long long)i.step, i.ntensors, i.count, i.nbytes);
    return LS_OK;
}

/* ---- list ---- */

static void print_checkpoint(const char *run, int64_t step, bool json) {
    char *path = ls_checkpoint_path(run, step);
    int64_t nbytes = ls_file_folder_nbytes(path);
    if (json) {
        ls_json *o = ls_json_new_object();
        ls_json_set_path(o, "checkpoint", path);
        ls_json_set_integer(o, "step", step);
        ls_json_set_integer(o, "bytes", nbytes);
        ls_print_json(o);
    } else {
        ls_print("%10lld %12.3f  %s\n", (long long)step, (double)nbytes / 1e6, path);
    }
    free(path);
}

/* Prints the run's checkpoints, the newest first. */
static int list(const char *run, bool json) {
    ls_error e = {0};
    int64_t step = INT64_MAX;
    if (ls_file_check_allowed(run, &e) != LS_OK) return cli_fail(&e);
    if (!ls_file_is_dir(run)) {
        ls_log("ckpt: %s: is not a run directory", run);
        return CLI_FAILED;
    }
    for (bool first = true;; first = false) {
        if (ls_checkpoint_below(run, step, &step, &e) != LS_OK) return cli_fail(&e);
        if (first && step < 0 && ls_unsaved_fail(run, &e) != LS_OK) ls_log("%s", e.msg);
        if (step < 0) return 0;
        if (first && !json) ls_print("%10s %12s\n", "step", "MB");
        print_checkpoint(run, step, json);
    }
}

/* ---- ledger ---- */

static void print_ledger(const char *run, const ls_ledger *l) {
    ls_json *o = ls_json_new_object();
    ls_json_set_path(o, "run", run);
    ls_json_set_bool(o, "clean", l->missing == 0);
    ls_json_set_integer(o, "steps", l->steps);
    ls_json_set_integer(o, "missing", l->missing);
    if (l->missing) {
        ls_json_set_integer(o, "gap_from", l->gap_from);
        ls_json_set_integer(o, "gap_to", l->gap_to);
    }
    ls_json_set_integer(o, "min_workers", l->least_workers);
    ls_json_set_integer(o, "max_workers", l->most_workers);
    ls_json_set_integer(o, "view_changes", l->changes);
    ls_json_set_integer(o, "samples", l->nsamples);
    ls_json_set_integer(o, "epochs", l->epochs);
    ls_json_set_integer(o, "rest", l->rest);
    ls_json_set(o, "changed", ls_json_share(l->changed));
    ls_print_json(o);
}

/* Logs that the existing lines are correct but some lines are missing. */
static int not_clean(const char *run, const ls_ledger *l) {
    ls_print(
        "%s: not clean: %lld of %lld steps have no lines in metrics.jsonl, the first gap is %lld "
        "to %lld: the lines were lost, and training went on\n",
        run, (long long)l->missing, (long long)l->steps, (long long)l->gap_from,
        (long long)l->gap_to);
    return CLI_FAILED;
}

static void print_clean(const char *run, const ls_ledger *l) {
    ls_print("%s: clean: %lld step%s by ", run, (long long)l->steps, ls_plural(l->steps));
    if (l->least_workers != l->most_workers) ls_print("%lld to ", (long long)l->least_workers);
    ls_print("%lld worker%s, %lld change%s of view\n", (long long)l->most_workers,
             ls_plural(l->most_workers), (long long)l->changes, ls_plural(l->changes));
    ls_print_wrapped(
        "each of %lld samples was used exactly once in each of %lld complete epoch%s; %lld "
        "of the next, none twice",
        (long long)l->nsamples, (long long)l->epochs, ls_plural(l->epochs), (long long)l->rest);
}

static void print_changed(const ls_ledger *l) {
    for (size_t i = 0; i < ls_json_count(l->changed); i++) {
        ls_buf text = {0};
        ls_ledger_put_changed(ls_json_at(l->changed, i), &text);
        ls_print("%s\n", text.data);
        ls_buf_free(&text);
    }
}

static int ledger(const char *run, bool json) {
    ls_error e = {0};
    ls_ledger l;
    if (ls_ledger_check(run, &l, &e) != LS_OK) return cli_fail(&e);
    int code = l.missing ? CLI_FAILED : 0;
    if (json)
        print_ledger(run, &l);
    else if (l.missing)
        code = not_clean(run, &l);
    else
        print_clean(run, &l);
    if (!json) print_changed(&l);
    ls_ledger_free(&l);
    return code;
}

static ls_status write_ids(const char *checkpoint, const char *to, bool json, ls_error *e) {
    char *ids = NULL;
    LS_TRY(ls_export_ids(checkpoint, to, &ids, e));
    if (ids && !json) ls_print("%s: which id is which row\n", ids);
    free(ids);
    return LS_OK;
}

static int run(const ls_args *a) {
    const char *verb = a->words[0];
    bool json = cli_given(a, JSON);
    if (strcmp(verb, "ledger") == 0) return ledger(a->words[1], json);
    if (strcmp(verb, "list") == 0) return list(a->words[1], json);
    bool hash = strcmp(verb, "hash") == 0, shows = strcmp(verb, "show") == 0;
    bool exports = strcmp(verb, "export") == 0;
    if (!hash && !shows && !exports && strcmp(verb, "verify") != 0) {
        ls_log("ckpt: there is no '%s'; use hash, show, verify, export, list or ledger", verb);
        return CLI_USAGE;
    }
    if (exports != cli_given(a, TO) || (cli_given(a, EMA) && !exports)) {
        ls_log("ckpt: %s", exports ? "export needs --to FILE" : "--to and --ema belong to export");
        return CLI_USAGE;
    }
    ls_error e = {0};
    char *path = NULL;
    ls_status s = ls_checkpoint_resolve(a->words[1], &path, &e);
    if (s == LS_OK && exports)
        s = ls_checkpoint_export(path, cli_given(a, EMA), cli_value(a, TO), &e);
    if (s == LS_OK && exports)
        s = write_ids(path, cli_value(a, TO), json, &e);
    else if (s == LS_OK)
        s = shows ? show(path, json, &e) : check(path, hash, json, &e);
    free(path);
    return s == LS_OK ? 0 : cli_fail(&e);
}

const ls_command cmd_ckpt = {
    .name = "ckpt",
    .words = "hash|show|verify|export|list|ledger CHECKPOINT",
    .min_words = 2,
    .max_words = 2,
    .summary = "inspect a checkpoint",
    .about =
        "hash    one hash of the logical weights and one of the optimizer state, whatever the\n"
        "        layout in files: equal hashes mean equal bits\n"
        "show    step and tensors\n"
        "verify  read everything back and compare it with the hashes of the manifest, and its "
        "config\n"
        "        and records of data with those of the run in whose directory it is\n"
        "export  write the weights, or with --ema their average, to a safetensors file\n"
        "\n"
        "CHECKPOINT may be a run directory: its newest checkpoint is used.\n"
        "\n"
        "list    (of a run directory) its checkpoints, the newest first\n"
        "ledger  (of a run directory) prove from its log that every step was made once, with the\n"
        "        samples it should have, and that each epoch used every sample exactly once;\n"
        "        exit code 1 and the line's number if that is not so, or if lines are missing",
    .options = {[JSON] = {"json", 0, NULL,
                          "for programs: one JSON object per line (docs/reference/json.md)"},
                [TO] = {"to", 'o', "FILE", "export: the file to create"},
                [EMA] = {"ema", 0, NULL, "export: the average of the weights (optim.ema)"}},
    .run = run,
};
