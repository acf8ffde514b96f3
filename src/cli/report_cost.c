/* report_cost.c - see report_cost.h. */
#include "cli/report_cost.h"

#include <string.h>

#include "base/escape.h"
#include "base/print.h"
#include "perf/expense.h"

typedef struct sum {
    ls_expense_used used;
    ls_expense cost;
} sum;

static void put_row(ls_buf *out, const sum *x, const char *name, const ls_machine_prices *p) {
    ls_buf_printf(out, "%10lld %12.1f  ", (long long)x->used.steps, x->used.seconds);
    ls_expense_print(p, &x->cost, out);
    ls_buf_printf(out, "  ");
    ls_buf_escape(out, LS_ESCAPE_LINE, name, strlen(name));
    ls_buf_printf(out, "\n");
}

static void print_json(const sum *x, const char *run, const ls_machine_prices *p) {
    ls_json *o = ls_expense_json(p, &x->cost);
    ls_json_set(o, "run", ls_json_new_path(run));
    ls_json_set_integer(o, "steps", x->used.steps);
    ls_json_set_number(o, "seconds", x->used.seconds);
    ls_print_json(o);
    ls_json_free(o);
}

ls_status cli_cost_print(const char *const *runs, int n, const char *machine, bool json,
                         ls_error *e) {
    ls_machine m = {0};
    ls_buf out = {0};
    sum all = {0};
    ls_status s = ls_machine_read(machine, &m, e);
    if (s == LS_OK && m.prices.worker_hour <= 0 && m.prices.watts <= 0)
        s = ls_fail(e, LS_EINVAL,
                    "%s: has neither cost.worker_hour nor cost.watts; `lockstep bench machine "
                    "--price P --watts W --save FILE` writes them, or add them by hand",
                    machine);
    ls_buf_printf(&out, "%10s %12s  used\n", "steps", "seconds");
    for (int i = 0; i < n && s == LS_OK; i++) {
        sum x;
        s = ls_expense_read(runs[i], &x.used, e);
        if (s != LS_OK) break;
        x.cost = ls_expense_of(&m.prices, x.used.worker_seconds);
        all.used.steps += x.used.steps;
        all.used.seconds += x.used.seconds;
        all.used.worker_seconds += x.used.worker_seconds;
        put_row(&out, &x, runs[i], &m.prices);
        if (json) print_json(&x, runs[i], &m.prices);
    }
    all.cost = ls_expense_of(&m.prices, all.used.worker_seconds);
    if (n > 1) put_row(&out, &all, "all", &m.prices);
    if (s == LS_OK && !json) ls_print_text(out.data, out.len);
    ls_buf_free(&out);
    ls_machine_free(&m);
    return s;
}
