/* trials_svg.c - see trials_svg.h. */
#include "report/trials_svg.h"

#include "base/file.h"

static const char *const styles[] = {[LS_TRIAL_GREY] = "stroke=\"#c3c9d0\" stroke-width=\"1.2\"",
                                     [LS_TRIAL_GOING] = "stroke=\"#7fb0d6\" stroke-width=\"1.4\"",
                                     [LS_TRIAL_BEST] = "stroke=\"#cb6e17\" stroke-width=\"2.4\""};
static const char *const names[] = {[LS_TRIAL_GREY] = "stopped or replaced",
                                    [LS_TRIAL_GOING] = "trained on",
                                    [LS_TRIAL_BEST] = "best"};

static void draw_curves(const ls_trials_picture *p, const ls_plot *plot, ls_trial_look look,
                        ls_buf *out) {
    for (int i = 0; i < p->n; i++)
        if (p->curves[i].look == look && p->curves[i].series.n > 0)
            ls_plot_svg_series(out, plot, &p->curves[i].series, styles[look]);
}

static void draw_keys(ls_buf *out) {
    double x = LS_PLOT_LEFT;
    for (int look = LS_TRIAL_BEST; look >= LS_TRIAL_GREY; look--)
        x = ls_plot_svg_key(out, x, styles[look], names[look]);
}

static void draw(const ls_trials_picture *p, ls_buf *out) {
    ls_plot plot;
    ls_plot_open(&plot);
    for (int i = 0; i < p->n; i++)
        if (p->curves[i].fits) ls_plot_widen(&plot, &p->curves[i].series);
    ls_plot_close(&plot, 8, 7);
    ls_plot_svg_begin(&plot, LS_PLOT_HEIGHT, p->title, "step", out);
    draw_keys(out);
    ls_buf_printf(out,
                  "<clipPath id=\"frame\"><rect x=\"%d\" y=\"%d\" width=\"%d\" "
                  "height=\"%d\"/></clipPath>\n<g clip-path=\"url(#frame)\">\n",
                  LS_PLOT_LEFT, LS_PLOT_TOP, LS_PLOT_RIGHT - LS_PLOT_LEFT,
                  LS_PLOT_BOTTOM - LS_PLOT_TOP);
    for (int look = LS_TRIAL_GREY; look <= LS_TRIAL_BEST; look++)
        draw_curves(p, &plot, (ls_trial_look)look, out);
    ls_buf_printf(out, "</g>\n</svg>\n");
}

ls_status ls_trials_svg_write(const char *path, const ls_trials_picture *p, ls_error *e) {
    ls_buf svg = {0};
    draw(p, &svg);
    ls_status s = ls_file_replace(path, svg.data, svg.len, e);
    ls_buf_free(&svg);
    return s;
}
