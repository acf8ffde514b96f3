/* main.c - the program `lockstep`: its commands. */
#include "cli/cli.h"

int main(int argc, char **argv) {
    static const ls_command *const commands[] = {
        &cmd_train,   &cmd_eval,   &cmd_predict, &cmd_generate, &cmd_chat,   &cmd_serve,
        &cmd_plan,    &cmd_bench,  &cmd_run,     &cmd_ckpt,     &cmd_scale,  &cmd_data,
        &cmd_weights, &cmd_tokens, &cmd_import,  &cmd_export,   &cmd_check,  &cmd_replay,
        &cmd_compare, &cmd_report, &cmd_batch,   &cmd_tune,     &cmd_status, &cmd_watch,
        &cmd_help,    NULL};
    return cli_main(argc, argv, commands);
}
