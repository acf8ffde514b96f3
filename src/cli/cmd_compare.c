/* cmd_compare.c - lockstep compare */
#include <unistd.h>

#include "base/columns.h"
#include "base/log.h"
#include "base/print.h"
#include "cli/cli.h"
#include "report/compare.h"

enum { METRIC, SVG, JSON };
enum { COLUMNS = 80, MOST_COLUMNS = 120, ROWS = 20 };

static void show(const ls_comparison *c, const ls_curves *curves) {
    ls_buf text = {0};
    int columns = ls_columns_of(STDOUT_FILENO, COLUMNS);
    ls_curves_print(curves, columns < MOST_COLUMNS ? columns : MOST_COLUMNS, ROWS, &text);
    ls_buf_printf(&text, "\n");
    ls_compare_print(c, &text);
    ls_print_text(text.data, text.len);
    ls_buf_free(&text);
}

static void print_json(const ls_comparison *c) {
    ls_json *o = ls_compare_json(c);
    ls_print_json(o);
}

static int run(const ls_args *a) {
    ls_error e = {0};
    ls_comparison c;
    ls_curve_line lines[LS_CURVES_MOST];
    if (a->nwords < 2) {
        ls_log("compare: two runs or more are compared, and %s given; see 'lockstep help compare'",
               a->nwords ? "only one is" : "none is");
        return CLI_USAGE;
    }
    const char *metric = cli_given(a, METRIC) ? cli_value(a, METRIC) : "loss";
    if (ls_compare_runs(a->words, a->nwords, metric, &c, &e) != LS_OK) return cli_fail(&e);
    const ls_curves curves = ls_compare_curves(&c, lines);
    bool parted = false;
    for (int i = 1; i < c.n; i++)
        parted = parted || (ls_compare_must_match(&c.runs[i]) && ls_compare_parted(&c.runs[i]));
    ls_status s = cli_given(a, SVG) ? ls_curves_svg_write(cli_value(a, SVG), &curves, &e) : LS_OK;
    if (s == LS_OK && cli_given(a, JSON))
        print_json(&c);
    else if (s == LS_OK)
        show(&c, &curves);
    ls_compare_free(&c);
    return s != LS_OK ? cli_fail(&e) : parted ? CLI_FAILED : 0;
}

const ls_command cmd_compare = {
    .name = "compare",
    .words = "RUN RUN...",
    .min_words = 0, /* run() says how many it needs */
    .max_words = LS_CURVES_MOST,
    .summary = "compare runs: configs, curves, and where their bits parted",
    .about =
        "Draws the runs' curves over each other, and prints the keys in which their configs\n"
        "differ. If no key differs that affects the bits, and the data are the same, runs must\n"
        "have the same bits as the first one: the first step whose loss or norm of the gradient\n"
        "differs is printed, and of the first checkpoints that differ the first tensor and\n"
        "element. Exit code 1 if such runs have parted. Nothing in the runs is changed.",
    .options = {[METRIC] = {"metric", 0, "NAME",
                            "what is drawn: a number in metrics.jsonl, e.g. val_loss (loss)"},
                [SVG] = {"svg", 0, "FILE", "write the curves to a picture, too"},
                [JSON] = {"json", 0, NULL,
                          "for programs: one JSON object (docs/reference/json.md)"}},
    .run = run,
};
