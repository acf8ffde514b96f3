/* report.c - see report.h. */
#include "train/report.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/columns.h"
#include "base/file.h"
#include "base/print.h"
#include "train/curve.h"
#include "train/metrics.h"

enum { ROWS = 20, COLUMNS = 80, MOST_COLUMNS = 120 };

static int terminal_columns(void) {
    int n = ls_columns_of(STDOUT_FILENO, COLUMNS);
    return n < MOST_COLUMNS ? n : MOST_COLUMNS;
}

static ls_status write_svg(const char *run, const ls_curve *c, ls_error *e) {
    char *path = ls_format("%s/loss.svg", run);
    ls_buf svg = {0};
    ls_curve_svg(c, &svg);
    ls_status s = ls_file_replace(path, svg.data, svg.len, e);
    ls_buf_free(&svg);
    free(path);
    return s;
}

ls_status ls_report_curve(const char *run, double bigram, ls_error *e) {
    ls_history h;
    LS_TRY(ls_history_read(run, &h, e));
    ls_curve c = {.title = "loss, nats a token",
                  .train = {h.train.steps, h.train.values, h.train.n},
                  .val = {h.val.steps, h.val.values, h.val.n},
                  .level = bigram,
                  .level_label = "bigram model"};
    ls_status s = write_svg(run, &c, e);
    if (s == LS_OK) {
        ls_buf text = {0};
        ls_curve_print(&c, terminal_columns(), ROWS, &text);
        ls_print_text(text.data, text.len);
        ls_buf_free(&text);
    }
    ls_history_free(&h);
    return s;
}
