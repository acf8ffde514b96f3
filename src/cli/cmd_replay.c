/* cmd_replay.c - lockstep replay */
#include <stdlib.h>

#include "base/json.h"
#include "base/print.h"
#include "cli/cli.h"
#include "train/check_replay.h"

enum { STEP, JSON };

static void print_json(const ls_replay *r) {
    ls_json *o = ls_json_new_object();
    ls_json_set_path(o, "checkpoint", r->checkpoint);
    ls_json_set_integer(o, "step", r->steps);
    ls_json_set_hash(o, "weights", r->weights);
    ls_json_set_hash(o, "optimizer", r->optimizer);
    ls_json_set_bool(o, "same", ls_replay_is_same(r));
    ls_print_json(o);
}

static int run(const ls_args *a) {
    ls_error e = {0};
    ls_replay r;
    int64_t step = 0;
    if (!cli_integer(&cmd_replay, a, STEP, 1, INT64_MAX, &step)) return CLI_USAGE;
    if (ls_replay_run(a->words[0], step, &r, &e) != LS_OK) return cli_fail(&e);
    char weights[LS_HASH_TEXT], optimizer[LS_HASH_TEXT];
    ls_hash_text(r.weights, weights);
    ls_hash_text(r.optimizer, optimizer);
    bool same = ls_replay_is_same(&r);
    if (cli_given(a, JSON))
        print_json(&r);
    else
        ls_print("weights %s\noptimizer %s\n%s: %s after %lld steps by one worker\n", weights,
                 optimizer, r.checkpoint, same ? "the same bits" : "OTHER BITS",
                 (long long)r.steps);
    free(r.checkpoint);
    return same ? 0 : CLI_FAILED;
}

const ls_command cmd_replay = {
    .name = "replay",
    .words = "RUN",
    .min_words = 1,
    .max_words = 1,
    .summary = "make an asynchronous run's weights again",
    .about =
        "Repeats a run with sync.mode async from its beginning, with one worker, and compares\n"
        "the result with the newest checkpoint: the hashes of `lockstep ckpt hash`. The run's\n"
        "log, RUN/applications.jsonl, says with which versions of the parameters each gradient\n"
        "was computed, and in which order gradients were applied. Exit code 1 if the bits\n"
        "differ. Nothing in RUN is changed.",
    .options = {[STEP] = {"step", 0, "N", "compare with the checkpoint of this step"},
                [JSON] = {"json", 0, NULL,
                          "for programs: one JSON object (docs/reference/json.md)"}},
    .run = run,
};
