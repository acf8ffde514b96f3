/* sampling.h - the options of writing texts that lockstep generate and chat share: they stand one
 * after the other in the tables of both. */
#ifndef LS_CLI_SAMPLING_H
#define LS_CLI_SAMPLING_H

#include "cli/device_option.h"
#include "infer/text_form.h"
#include "infer/text_writer.h"

/* The places of the options of sampling, from the first one on. */
enum {
    CLI_SEED,
    CLI_TEMPERATURE,
    CLI_TOP_K,
    CLI_TOP_P,
    CLI_MIN_P,
    CLI_PENALTY,
    CLI_STOP,
    CLI_SCHEMA,
    CLI_OBJECT,
    CLI_REGEX,
    CLI_SET,
    CLI_DEVICE,
    CLI_SAMPLING
};

/* Rows of a table of options; what the model does by itself has defaults of the command. */
#define CLI_SAMPLING_OPTIONS(temperature, top_p, what_ends)                                        \
    {"seed", 0, "S", "seed of the random choices (default: 1)"},                                   \
        {"temperature", 0, "T",                                                                    \
         "below 1 unlikely tokens are chosen less often; 0: always the likeliest "                 \
         "(default: the model's, else " temperature ")"},                                          \
        {"top-k", 0, "K", "choose among the K likeliest (default: the model's, else all)"},        \
        {"top-p", 0, "P",                                                                          \
         "choose among the likeliest whose probabilities add up to P (default: "                   \
         "the model's, else " top_p ")"},                                                          \
        {"min-p", 0, "P",                                                                          \
         "choose among tokens at least P times as likely as the likeliest (default: "              \
         "the model's, else 0, all)"},                                                             \
        {"repetition-penalty", 0, "X",                                                             \
         "above 1: tokens that were there become less likely (default: the "                       \
         "model's, else 1)"},                                                                      \
        {"stop", 0, "TEXT", what_ends " before TEXT; may be given several times"},                 \
        {"json-schema", 0, "FILE", "the text is JSON by this schema"},                             \
        {"json-object", 0, NULL, "the text is a JSON object"},                                     \
        {"regex", 0, "R", "the text is one that this regular expression matches, all of it"},      \
        {"set", 0, "KEY=VALUE",                                                                    \
         "override a key of the config, e.g. infer.activations or a published model's "            \
         "model.context; repeatable"},                                                             \
        CLI_DEVICE_OPTION

/* Reads them; first: the place of --seed. False: bad usage, which is logged. */
bool cli_sampling_read(const ls_command *, const ls_args *, int first, ls_writing *);
/* The form that is asked for, as ls_text_form_read() reads it. */
ls_status cli_form_read(const ls_args *, int first, ls_text_form *f_p, ls_error *);

#endif
