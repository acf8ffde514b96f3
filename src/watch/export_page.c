/* export_page.c - see export_page.h. */
#include "watch/export_page.h"

#include <math.h>
#include <string.h>

#include "watch/page_text.h"
#include "watch/window.h"

/* Loads nothing, from nowhere. */
static const char policy[] =
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; "
    "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n";

static void put(ls_buf *out, const char *from, const char *end) {
    ls_buf_append(out, from, (size_t)(end - from));
}

/* JSON inside a script element: no text in it may look like the element's end. */
static void put_escaped(ls_buf *out, const ls_buf *json) {
    for (size_t i = 0; i < json->len; i++) {
        if (json->data[i] == '<')
            ls_buf_printf(out, "\\u003c");
        else
            ls_buf_append(out, json->data + i, 1);
    }
}

static void put_runs(const ls_watcher *w, int columns, ls_buf *out) {
    ls_buf json = {0};
    ls_watcher_write(w, &json);
    json.len--; /* its closing bracket */
    ls_buf_printf(&json, ",\"windows\":[");
    const ls_window q = {.x = LS_X_STEP, .from = NAN, .to = NAN, .columns = columns};
    for (int i = 0; i < w->nruns; i++) {
        if (i) ls_buf_printf(&json, ",");
        ls_window_write(&w->runs[i]->lines, &q, &json);
    }
    ls_buf_printf(&json, "]}");
    put_escaped(out, &json);
    ls_buf_free(&json);
}

void ls_export_page(const ls_watcher *w, int columns, ls_buf *out) {
    static const char style[] = "<link rel=\"stylesheet\" href=\"page.css\">\n";
    static const char script[] = "<script src=\"page.js\" defer></script>\n", body[] = "</body>";
    const ls_page_file *f = ls_page_files, *css = &f[LS_PAGE_CSS], *js = &f[LS_PAGE_JS];
    const char *at = f[LS_PAGE_HTML].text, *style_at = strstr(at, style);
    const char *script_at = strstr(at, script), *body_at = strstr(at, body);
    put(out, at, style_at);
    ls_buf_printf(out, "%s<style>\n", policy);
    put(out, css->text, css->end);
    ls_buf_printf(out, "</style>\n");
    put(out, script_at + sizeof script - 1, body_at);
    ls_buf_printf(out, "<script type=\"application/json\" id=\"export\">");
    put_runs(w, columns, out);
    ls_buf_printf(out, "</script>\n<script>\n");
    put(out, js->text, js->end);
    ls_buf_printf(out, "</script>\n");
    put(out, body_at, f[LS_PAGE_HTML].end);
}
