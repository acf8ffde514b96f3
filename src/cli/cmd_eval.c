/* cmd_eval.c - lockstep eval */
#include <stdlib.h>

#include "cli/device_option.h"
#include "cli/eval_print.h"

enum { DATA, LABELS, CHAT, BEFORE, REFERENCE, OUTPUT, EMA, SET, DEVICE, JSON };
enum { MOST_MODELS = 16 };

static int run(const ls_args *a) {
    const ls_evaluated_request q = {.models = a->words,
                                    .nmodels = a->nwords,
                                    .data = cli_value(a, DATA),
                                    .labels = cli_value(a, LABELS),
                                    .chat = cli_value(a, CHAT),
                                    .reference = cli_value(a, REFERENCE),
                                    .output = cli_value(a, OUTPUT),
                                    .sets = a->options[SET].values,
                                    .nsets = a->options[SET].n,
                                    .before = cli_given(a, BEFORE),
                                    .ema = cli_given(a, EMA),
                                    .device = cli_device(a, DEVICE)};
    ls_evaluated *results = LS_NEW_ARRAY(ls_evaluated, MOST_MODELS + 1);
    ls_error e = {0};
    int n = 0;
    ls_status s = ls_evaluate_models(&q, results, &n, &e);
    if (s == LS_OK)
        (cli_given(a, JSON) ? cli_evaluated_print_json : cli_evaluated_print)(results, n);
    for (int i = 0; i <= MOST_MODELS; i++) ls_evaluated_free(&results[i]);
    free(results);
    return s == LS_OK ? 0 : cli_fail(&e);
}

const ls_command cmd_eval = {
    .name = "eval",
    .words = "RUN|MODEL...",
    .min_words = 1,
    .max_words = MOST_MODELS,
    .summary = "measure a trained model's loss and metrics",
    .about =
        "Prints the loss and the metrics of the run's newest checkpoint, or of the given one\n"
        "(RUN/checkpoints/best), on the validation part of the run's data, or on other data with\n"
        "--data: a text, or labelled samples of files. For classes it also prints precision,\n"
        "recall and F1 of each. With --output DIR the confusion matrix and the worst mistakes are\n"
        "drawn. For a text, the loss of a bigram model of the run's tokens is printed, too.\n"
        "\n"
        "Several models are measured on the same data, and printed as a table; --before adds the\n"
        "model that the run began with.\n"
        "\n"
        "MODEL is a published model, a GGUF file or a directory (docs/guide/pretrained.md); it\n"
        "needs --data or --chat. Its context is 4096 tokens, or what it allows, or --set\n"
        "model.context=N; with --before that of the run. Samples of conversations are no longer\n"
        "than the longest of them.",
    .options =
        {[DATA] = {"data", 0, "FILE",
                   "evaluate on these data instead of the run's: a UTF-8 text, or files of samples "
                   "with labels, of the form that the run was trained on"},
         [LABELS] = {"labels", 0, "FILE", "labels of --data, where the format has them apart"},
         [CHAT] = {"chat", 0, "FILE",
                   "evaluate on these conversations, of a model with a chat template "
                   "(docs/reference/conversations.md), or on pairs of a chosen and a rejected "
                   "answer"},
         [BEFORE] = {"before", 0, NULL,
                     "also the model that the run began with (train.from, model.from)"},
         [REFERENCE] = {"reference", 0, "RUN|MODEL",
                        "what a loss of pairs compares with (default: the model that the "
                        "run began with)"},
         [OUTPUT] = {"output", 'o', "DIR",
                     "write the confusion matrix and the worst mistakes of images "
                     "(SVG, CSV) to this directory"},
         [EMA] = {"ema", 0, NULL, "use the average of the weights (optim.ema)"},
         [SET] = {"set", 0, "KEY=VALUE",
                  "override a key of the run's config, e.g. data.path or model.metrics; "
                  "repeatable"},
         [DEVICE] = CLI_DEVICE_OPTION,
         [JSON] = {"json", 0, NULL,
                   "for programs: a JSON object a model (docs/reference/json.md)"}},
    .run = run,
};
