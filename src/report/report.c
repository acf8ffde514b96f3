/* report.c - see report.h. */
#include "report/report.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/columns.h"
#include "base/file.h"
#include "base/log.h"
#include "base/print.h"
#include "report/curve.h"
#include "report/metrics.h"

enum { ROWS = 20, COLUMNS = 80, MOST_COLUMNS = 120, SHARE = 100 };

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

static ls_curve curve_of(const ls_run_history *h) {
    return (ls_curve){.title = h->has_tokens ? "loss, nats a token" : "loss",
                      .train = {h->train.steps, h->train.values, h->train.n},
                      .val = {h->val.steps, h->val.values, h->val.n}};
}

static ls_status draw(const char *run, ls_error *e) {
    ls_run_history h;
    LS_TRY(ls_history_read(run, &h, e));
    ls_curve c = curve_of(&h);
    ls_status s = write_svg(run, &c, e);
    ls_history_free(&h);
    return s;
}

/* A step's line takes 10 us (measured with 1,107,500 of them on a busy core). */
static bool is_short(const char *run, double seconds) {
    enum { NS_A_BYTE = 70 };
    char *path = ls_format("%s/metrics.jsonl", run);
    struct stat st;
    bool known = stat(path, &st) == 0;
    free(path);
    return known && (double)st.st_size * NS_A_BYTE < seconds * 1e9;
}

void ls_report_picture(ls_picture *p, const char *run, bool last) {
    int64_t now = ls_clock_ns();
    ls_error e;
    if (!last && p->drawn_ns && now - p->drawn_ns < SHARE * p->took_ns) return;
    if (!is_short(run, last ? 5 : 1)) return;
    bool failed = draw(run, &e) != LS_OK;
    if (failed && !p->failed) ls_log("%s", e.msg);
    p->failed = failed;
    p->drawn_ns = ls_clock_ns();
    p->took_ns = p->drawn_ns - now;
}

ls_status ls_report_curve(const char *run, double bigram, ls_error *e) {
    ls_run_history h;
    LS_TRY(ls_history_read(run, &h, e));
    ls_curve c = curve_of(&h);
    c.level = bigram;
    if (bigram > 0) c.level_label = "bigram model";
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
