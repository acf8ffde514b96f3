/* cmd_ckpt.c - lockstep ckpt hash|show|verify */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cli/cli.h"
#include "train/checkpoint.h"

static ls_status show(const char *path, ls_error *e) {
    ls_buf out = {0};
    ls_status s = ls_checkpoint_show(path, &out, e);
    if (s == LS_OK) fwrite(out.data, 1, out.len, stdout);
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
        printf("weights %s\noptimizer %s\n", weights, optimizer);
    else
        printf("%s: good: step %lld, %zu tensors, %zu parameters, %zu bytes\n", path,
               (long long)i.step, i.ntensors, i.count, i.nbytes);
    return LS_OK;
}

static int run(const ls_args *a) {
    const char *verb = a->words[0];
    bool hash = strcmp(verb, "hash") == 0, shows = strcmp(verb, "show") == 0;
    if (!hash && !shows && strcmp(verb, "verify") != 0) {
        ls_log("ckpt: there is no '%s'; use hash, show or verify", verb);
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
    .words = "hash|show|verify CHECKPOINT",
    .min_words = 2,
    .max_words = 2,
    .summary = "look at a checkpoint",
    .about =
        "hash    one hash of the logical weights and one of the optimizer state, whatever the\n"
        "        layout in files: equal hashes mean equal bits\n"
        "show    step and tensors\n"
        "verify  read everything back and compare it with the manifest's hashes\n"
        "\n"
        "CHECKPOINT may be a run's folder: its newest checkpoint.",
    .run = run,
};
