/* run_table.c - ls_run_status_print(): the lines of several runs, in columns (run_status.h). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/columns.h"
#include "base/escape.h"
#include "report/evaluation.h"
#include "report/run_status.h"

enum { RUN, STATE, PROCESS, STEP, LOSS, VAL, RATE, MFU, LEFT, WORKERS, MEMORY, NOTE, NCOLUMNS };
static const struct {
    const char *name;
    bool right; /* aligned */
} columns[NCOLUMNS] = {
    [RUN] = {"run", false},        [STATE] = {"state", false},  [PROCESS] = {"process", false},
    [STEP] = {"step", true},       [LOSS] = {"loss", true},     [VAL] = {"val", true},
    [RATE] = {"rate", true},       [MFU] = {"mfu", true},       [LEFT] = {"left", true},
    [WORKERS] = {"workers", true}, [MEMORY] = {"memory", true}, [NOTE] = {"", false}};

static void put_loss(double x, ls_buf *out) {
    char text[LS_LOSS_TEXT];
    if (isfinite(x)) ls_buf_printf(out, "%s", ls_loss_text(x, text));
}

static void put_left(double seconds, ls_buf *out) {
    if (!isfinite(seconds) || seconds > 1e9) return;
    long s = (long)(seconds + 0.5);
    if (s < 3600)
        ls_buf_printf(out, "%ld:%02ld", s / 60, s % 60);
    else if (s < 48L * 3600)
        ls_buf_printf(out, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    else
        ls_buf_printf(out, "%ld d %ld h", s / 86400, s / 3600 % 24);
}

static void put_memory(int64_t nbytes, ls_buf *out) {
    if (nbytes < 0) return;
    if (nbytes < 1000000000)
        ls_buf_printf(out, "%.0f MB", (double)nbytes / 1e6);
    else
        ls_buf_printf(out, "%.2f GB", (double)nbytes / 1e9);
}

static void put_step(const ls_run_status *s, ls_buf *out) {
    ls_buf_printf(out, "%lld", (long long)s->step);
    if (s->steps >= 0) ls_buf_printf(out, "/%lld", (long long)s->steps);
}

/* The text of one cell; names in it are escaped. */
static void put_cell(const ls_run_status *s, int column, ls_buf *out) {
    bool runs = s->state == LS_RUN_RUNNING;
    if (column == RUN) ls_buf_put(out, "%s", s->run);
    if (column == STATE) ls_buf_printf(out, "%s", ls_run_state_name(s->state));
    if (column == PROCESS && s->pid && (runs || s->state == LS_RUN_UNKNOWN))
        ls_buf_put(out, "%s:%d", s->host, s->pid);
    if (column == STEP) put_step(s, out);
    if (column == LOSS) put_loss(s->loss, out);
    if (column == VAL) put_loss(s->val_loss, out);
    if (column == RATE && isfinite(s->rate)) ls_buf_put(out, "%.0f %s/s", s->rate, s->unit);
    if (column == MFU && isfinite(s->mfu)) ls_buf_printf(out, "%.1f%%", 100 * s->mfu);
    if (column == LEFT) put_left(s->left_s, out);
    if (column == WORKERS && s->workers >= 0) ls_buf_printf(out, "%lld", (long long)s->workers);
    if (column == MEMORY) put_memory(s->nbytes, out);
    if (column == NOTE && s->note) ls_buf_put(out, "%s", s->note);
}

/* Columns that a text takes on a terminal. */
static int width_of(const char *text, size_t n) {
    int width = 0;
    while (ls_columns_cut(text, n, width) < n) width++;
    return width;
}

typedef struct cell {
    ls_buf text;
    int width;
} cell;

static cell cell_of(const ls_run_status *s, int column) {
    cell c = {0};
    if (s)
        put_cell(s, column, &c.text);
    else
        ls_buf_printf(&c.text, "%s", columns[column].name);
    c.width = c.text.len ? width_of(c.text.data, c.text.len) : 0;
    return c;
}

static void put_row(cell *row, const int *widths, ls_buf *out) {
    size_t end = out->len;
    for (int k = 0; k < NCOLUMNS; k++) {
        int pad = widths[k] - row[k].width;
        if (!widths[k]) continue;
        if (k) ls_buf_printf(out, "  ");
        if (columns[k].right) ls_buf_printf(out, "%*s", pad, "");
        if (row[k].text.len) ls_buf_append(out, row[k].text.data, row[k].text.len);
        if (row[k].text.len) end = out->len;
        if (!columns[k].right) ls_buf_printf(out, "%*s", pad, "");
    }
    out->len = end; /* no spaces at its end */
    ls_buf_printf(out, "\n");
}

void ls_run_status_print(const ls_run_status *list, size_t n, ls_buf *out) {
    cell *cells = LS_NEW_ARRAY(cell, (n + 1) * NCOLUMNS);
    int widths[NCOLUMNS] = {0};
    for (size_t i = n + 1; i-- > 0;) /* the names of columns last: a column may be empty */
        for (int k = 0; k < NCOLUMNS; k++) {
            cell *c = &cells[i * NCOLUMNS + (size_t)k];
            *c = cell_of(i ? &list[i - 1] : NULL, k);
            if (c->width > widths[k] && (i || widths[k])) widths[k] = c->width;
        }
    for (size_t i = 0; i <= n; i++) put_row(cells + i * NCOLUMNS, widths, out);
    for (size_t i = 0; i < (n + 1) * NCOLUMNS; i++) ls_buf_free(&cells[i].text);
    free(cells);
}
