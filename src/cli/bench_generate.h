/* bench_generate.h - lockstep bench generate: measures how fast a model generates tokens on this
 * machine, and compares that with the speed at which memory delivers its weights.
 */
#ifndef LS_CLI_BENCH_GENERATE_H
#define LS_CLI_BENCH_GENERATE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct cli_bench_generate {
    const char *config; /* the file, or a published model */
    const char *const *set;
    int nset; /* keys of the config, as KEY=VALUE */
    int64_t nprompt, ntokens;
    bool json;
} cli_bench_generate;

/* Prints the numbers; returns the exit code. */
int cli_bench_generate_run(const cli_bench_generate *);

#endif
