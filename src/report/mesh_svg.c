/* mesh_svg.c - see mesh_svg.h. */
#include "report/mesh_svg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/output.h"
#include "base/plural.h"
#include "model/tensor_part.h"
#include "report/svg.h"
#include "share/mesh.h"

enum { BOX = 260, GAP = 8, BETWEEN = 28, LINE = 16, MARGIN = 20, TOP = 64, ROWS = 8 };
static const int colours[] = {0xdbe7f3, 0xfbe5d0, 0xdcefdf, 0xeee0ec};
enum { NCOLOURS = sizeof colours / sizeof *colours };

typedef struct picture {
    const ls_plan *p;
    ls_buf svg;
    int rows;   /* that are drawn */
    int height; /* of a box */
} picture;

static void put(picture *d, double x, double y, const char *text, int color) {
    ls_svg_put_text(&(ls_svg_text){.x = x, .y = y, .text = text, .color = color}, &d->svg);
}

/* A line of a box. */
static void put_line(picture *d, double x, double y, const char *text, int color) {
    char *fitting = ls_svg_fit(text, 12, BOX - 16);
    put(d, x + 8, y, fitting, color);
    free(fitting);
}

enum { SHORT = 17 }; /* letters of a layer's name, two of which fit into a box */

/* "layers.0.mlp" of "model.layers.0.mlp.slice.1.chunk.2": of which part it is, a worker's other
 * lines say. */
static void name_layer(const char *name, char text[4 * SHORT]) {
    if (strncmp(name, "model.", 6) == 0) name += 6;
    const char *slice = strstr(name, ".slice."), *chunk = strstr(name, ".chunk.");
    const char *end = slice && (!chunk || slice < chunk) ? slice : chunk;
    int n = (int)(end ? (size_t)(end - name) : strlen(name));
    snprintf(text, 4 * SHORT, n > SHORT ? "%.*s…" : "%.*s", n > SHORT ? SHORT - 1 : n, name);
}

/* "h.0.attn to h.5.mlp": the first and the last layer. */
static void name_stage(const ls_plan *p, int stage, char *text, size_t size) {
    const ls_share *sh = &p->share;
    char from[4 * SHORT], to[4 * SHORT];
    int first = 0, end = 0;
    ls_share_stage_layers(sh, stage, &first, &end);
    name_layer(sh->model->layers[first].name, from);
    name_layer(sh->model->layers[end - 1].name, to);
    bool one = strcmp(from, to) == 0;
    snprintf(text, size, one ? "%s" : "%s to %s", from, to);
}

/* "slices 0 to 1 of 3". */
static void name_parts(const char *what, int first, int end, int n, char *text, size_t size) {
    if (end - first == 1)
        snprintf(text, size, "%s %d of %d", what, first, n);
    else
        snprintf(text, size, "%ss %d to %d of %d", what, first, end - 1, n);
}

static void name_slices(const ls_plan *p, int worker, char *text, size_t size) {
    const ls_share *sh = &p->share;
    int first = sh->workers[worker].first_slice, end = sh->workers[worker].end_slice;
    name_parts("slice", first, end, sh->model->nslices, text, size);
}

static void name_chunks(const ls_plan *p, int worker, char *text, size_t size) {
    const ls_share *sh = &p->share;
    int first = sh->workers[worker].first_chunk, end = sh->workers[worker].end_chunk;
    name_parts(sh->model->together > 1 ? "part" : "chunk", first, end, sh->nchunks, text, size);
}

/* Appends "; experts 0 to 3" where there are any. */
static void add_experts(const ls_plan *p, int worker, char *text, size_t size) {
    char experts[LS_PLAN_EXPERTS];
    int64_t n = ls_plan_experts_of(p, worker, experts, sizeof experts);
    size_t used = strlen(text);
    if (n) snprintf(text + used, size - used, "; expert%s %s", ls_plural((int)n), experts);
}

static void put_worker(picture *d, int cell, int place, double x, double y) {
    const ls_plan *p = d->p;
    const ls_share *sh = &p->share;
    const ls_pipe_schedule s = {.kind = sh->config->schedule, .workers = sh->pipe};
    int worker = ls_share_worker(sh, cell, place), pipe = cell / sh->beside;
    char text[2 * LS_NAME + LS_PLAN_EXPERTS];
    snprintf(text, sizeof text, "worker %d", worker);
    ls_svg_put_box(&(ls_svg_box){.x = x,
                                 .y = y,
                                 .width = BOX,
                                 .height = d->height,
                                 .fill = colours[pipe % NCOLOURS],
                                 .line = LS_GREY,
                                 .title = text},
                   &d->svg);
    put_line(d, x, y += LINE, text, LS_INK);
    for (int i = 0; i < sh->stages_each; i++) {
        int stage = ls_pipe_stage(&s, pipe, i);
        name_stage(p, stage, text, sizeof text);
        put_line(d, x, y += LINE, text, LS_INK);
    }
    if (sh->tensor > 1) {
        name_slices(p, worker, text, sizeof text);
        if (sh->context == 1) add_experts(p, worker, text, sizeof text);
        put_line(d, x, y += LINE, text, LS_INK);
    }
    if (sh->context > 1) {
        name_chunks(p, worker, text, sizeof text);
        add_experts(p, worker, text, sizeof text);
        put_line(d, x, y += LINE, text, LS_INK);
    }
    snprintf(text, sizeof text, "%.3g M parameters",
             (double)ls_plan_worker_params(p, worker) / 1e6);
    put_line(d, x, y += LINE, text, LS_GREY);
    int shards = sh->nshards;
    if (sh->shards_moments && shards > 1) {
        snprintf(text, sizeof text, "shard %d of %d (zero %d)",
                 sh->workers[worker].holder_place % shards, shards, sh->config->zero);
        put_line(d, x, y += LINE, text, LS_GREY);
    }
}

static void write_title(const ls_plan *p, char text[160]) {
    const ls_share *sh = &p->share;
    int at = snprintf(text, 160, "%d worker%s: data %d, pipe %d, tensor %d", sh->nworkers,
                      ls_plural(sh->nworkers), sh->data, sh->pipe, sh->tensor);
    if (sh->context > 1)
        snprintf(text + at, 160 - (size_t)at, ", %s %d", ls_share_context_title(sh->model),
                 sh->context);
}

static void put_all(picture *d) {
    const ls_plan *p = d->p;
    const ls_share *sh = &p->share;
    int data = sh->data;
    char text[160];
    write_title(p, text);
    ls_svg_put_text(
        &(ls_svg_text){
            .x = MARGIN, .y = MARGIN + 10, .text = text, .color = LS_INK, .is_title = true},
        &d->svg);
    put(d, MARGIN, MARGIN + 30, "columns: stages of the pipeline; rows: parts of the batch",
        LS_GREY);
    for (int cell = 0; cell < sh->ncells; cell++) {
        int pipe = cell / sh->beside;
        double x = MARGIN + cell * (BOX + GAP) + pipe * (BETWEEN - GAP);
        for (int i = 0; i < d->rows; i++) put_worker(d, cell, i, x, TOP + i * (d->height + GAP));
    }
    if (d->rows == data) return;
    snprintf(text, sizeof text, "and %d more rows, whose workers have the same layers",
             data - d->rows);
    put(d, MARGIN, TOP + d->rows * (d->height + GAP) + LINE, text, LS_GREY);
}

ls_status ls_mesh_svg(const ls_plan *p, const char *path, ls_error *e) {
    const ls_share *sh = &p->share;
    picture d = {.p = p};
    int data = sh->data, pipe = sh->pipe, cells = sh->ncells;
    d.rows = data < ROWS ? data : ROWS;
    d.height = LINE * (4 + sh->stages_each + (sh->tensor > 1) + (sh->context > 1));
    int width = 2 * MARGIN + cells * (BOX + GAP) + (pipe - 1) * (BETWEEN - GAP);
    char title[160];
    write_title(p, title);
    int least = 2 * MARGIN + (int)ls_svg_width(title, 16); /* bold */
    if (least < 480) least = 480;
    ls_svg_begin(width < least ? least : width, TOP + d.rows * (d.height + GAP) + 2 * LINE + MARGIN,
                 &d.svg);
    put_all(&d);
    ls_buf_printf(&d.svg, "</svg>\n");
    ls_status s = ls_output_write(path, d.svg.data, d.svg.len, e);
    ls_buf_free(&d.svg);
    return s;
}
