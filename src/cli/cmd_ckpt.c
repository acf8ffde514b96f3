/* cmd_ckpt.c - lockstep ckpt hash|show|verify|ledger */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/plural.h"
#include "base/print.h"
#include "cli/cli.h"
#include "train/checkpoint.h"
#include "train/ledger.h"

static ls_status show(const char *path, ls_error *e) {
    ls_buf out = {0};
    ls_status s = ls_checkpoint_show(path, &out, e);
    if (s == LS_OK) ls_print_text(out.data, out.len);
    ls_buf_free(&out);
    return s;
}

static ls_status check(const char *path, bool hash, ls_error *e) {
    ls_checkpoint_info i;
    LS_TRY(ls_checkpoint_verify(path, &i, e));
    char weights[LS_HASH_TEXT], optimizer[LS_HASH_TEXT];
    ls_hash_text(i.weights, weights);
    ls_hash_text(i.optimizer, optimizer);
    if (hash)
        ls_print("weights %s\noptimizer %s\n", weights, optimizer);
    else
        ls_print("%s: good: step %lld, %zu tensors, %zu parameters, %zu bytes\n", path,
                 (long long)i.step, i.ntensors, i.count, i.nbytes);
    return LS_OK;
}

/* What is there is as it should be; but some of it is not there. */
static int not_clean(const char *run, const ls_ledger *l) {
    ls_print(
        "%s: not clean: %lld of %lld steps have no lines in metrics.jsonl, the first of them %lld "
        "to %lld: they were lost, and the run went on\n",
        run, (long long)l->missing, (long long)l->steps, (long long)l->gap_from,
        (long long)l->gap_to);
    return CLI_FAILED;
}

static int ledger(const char *run) {
    ls_error e = {0};
    ls_ledger l;
    if (ls_ledger_check(run, &l, &e) != LS_OK) return cli_fail(&e);
    if (l.missing) return not_clean(run, &l);
    ls_print("%s: clean: %lld step%s by %lld to %lld worker%s, %lld change%s of view\n", run,
             (long long)l.steps, ls_plural(l.steps), (long long)l.least_workers,
             (long long)l.most_workers, ls_plural(l.most_workers), (long long)l.changes,
             ls_plural(l.changes));
    ls_print("each of %lld samples was used exactly once in each of %lld complete epoch%s; %lld "
             "of the next, none twice\n",
             (long long)l.nsamples, (long long)l.epochs, ls_plural(l.epochs), (long long)l.rest);
    return 0;
}

static int run(const ls_args *a) {
    const char *verb = a->words[0];
    if (strcmp(verb, "ledger") == 0) return ledger(a->words[1]);
    bool hash = strcmp(verb, "hash") == 0, shows = strcmp(verb, "show") == 0;
    if (!hash && !shows && strcmp(verb, "verify") != 0) {
        ls_log("ckpt: there is no '%s'; use hash, show, verify or ledger", verb);
        return CLI_USAGE;
    }
    ls_error e = {0};
    char *path = NULL;
    ls_status s = ls_checkpoint_resolve(a->words[1], &path, &e);
    if (s == LS_OK) s = shows ? show(path, &e) : check(path, hash, &e);
    free(path);
    return s == LS_OK ? 0 : cli_fail(&e);
}

const ls_command cmd_ckpt = {
    .name = "ckpt",
    .words = "hash|show|verify|ledger CHECKPOINT",
    .min_words = 2,
    .max_words = 2,
    .summary = "look at a checkpoint",
    .about =
        "hash    one hash of the logical weights and one of the optimizer state, whatever the\n"
        "        layout in files: equal hashes mean equal bits\n"
        "show    step and tensors\n"
        "verify  read everything back and compare it with the manifest's hashes\n"
        "\n"
        "CHECKPOINT may be a run's folder: its newest checkpoint.\n"
        "\n"
        "ledger  (of a run's folder) proves from its log that every step was done once, with the\n"
        "        samples it should have, and that each epoch used every sample exactly once;\n"
        "        exit code 1 and the line's number where it is not so, or lines are missing",
    .run = run,
};
