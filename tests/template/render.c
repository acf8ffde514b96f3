/* render.c - renders templates for scripts/check_templates.py.
 *
 * For each line of standard input, {"template": "...", "globals": {...}}, it writes a line: a JSON
 * text with what the template prints, or {"error": "..."}. The date is 26 July 2024. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "template/template.h"

static ls_status render(const char *line, size_t n, ls_buf *out, ls_error *e) {
    static const struct tm date = {
        .tm_year = 124, .tm_mon = 6, .tm_mday = 26, .tm_wday = 5, .tm_yday = 207};
    ls_json *j = NULL;
    ls_template *t = NULL;
    LS_TRY(ls_json_parse(line, n, "line", &j, e));
    const char *text = ls_json_text(ls_json_get(j, "template"));
    ls_status s = ls_template_parse(text ? text : "", text ? strlen(text) : 0, "x", &t, e);
    if (s == LS_OK) s = ls_template_render(t, ls_json_get(j, "globals"), &date, out, e);
    ls_template_free(t);
    ls_json_free(j);
    return s;
}

int main(void) {
    char *line = NULL;
    size_t room = 0;
    for (ssize_t n; (n = getline(&line, &room, stdin)) > 0;) {
        ls_buf out = {0}, json = {0};
        ls_error e = {0};
        bool failed = render(line, (size_t)n, &out, &e) != LS_OK;
        ls_json *j = failed ? ls_json_new_object() : ls_json_new_text(out.data ? out.data : "");
        if (failed) ls_json_set_text(j, "error", e.msg);
        ls_json_write(j, 0, &json);
        puts(json.data);
        fflush(stdout);
        ls_json_free(j);
        ls_buf_free(&out);
        ls_buf_free(&json);
    }
    free(line);
    return 0;
}
