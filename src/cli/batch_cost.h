/* batch_cost.h - what the trainings of `lockstep batch` would take with other numbers of workers: a
 * step by the simulator (perf/forecast.h), and the time, money and energy of all steps by the prices
 * in the machine's file (perf/expense.h). Evaluations and checkpoints are not counted.
 */
#ifndef LS_CLI_BATCH_COST_H
#define LS_CLI_BATCH_COST_H

#include "base/json.h"
#include "config/config.h"

enum { CLI_BATCH_COUNTS = 8 };

typedef struct cli_batch_machine {
    const char *file;             /* NULL: nothing is predicted */
    int counts[CLI_BATCH_COUNTS]; /* [ncounts] workers */
    int ncounts;
} cli_batch_machine;

/* A training: a row of the table. */
typedef struct cli_batch_row {
    int64_t batch;
    double steps;                    /* INFINITY: it does not end */
    double step_s[CLI_BATCH_COUNTS]; /* NAN: not possible */
} cli_batch_row;

typedef struct cli_batch_cost cli_batch_cost;

/* Reads the machine's file. */
ls_status cli_batch_cost_open(const cli_batch_machine *, cli_batch_cost **c_p, ls_error *);
void cli_batch_cost_close(cli_batch_cost *); /* NULL is allowed */

/* Sets batch and step_s of a row: of the config with this batch. Where there are more workers than
 * virtual workers, there are as many of these. */
void cli_batch_cost_predict(const cli_batch_cost *, const ls_config *, int64_t batch,
                            cli_batch_row *);
/* A line for each row and number of workers. */
void cli_batch_cost_print(const cli_batch_cost *, const cli_batch_row *rows, int n);
/* Adds to the row's object: step_s, seconds, money, kwh, each an array over the numbers of workers. */
void cli_batch_cost_json(const cli_batch_cost *, const cli_batch_row *, ls_json *one);

#endif
