/* admission.c - see admission.h. */
#include "net/tcp/admission.h"

#include <stdio.h>
#include <string.h>

static const char MODE[] = "sync.mode "; /* without it, other settings mean other things */

typedef struct line {
    const char *at;
    int n; /* without its end; 0: there is none */
} line;

static line line_at(const char *text) { return (line){text, (int)strcspn(text, "\n")}; }

static const char *next(const char *text) {
    size_t n = strcspn(text, "\n");
    return text + n + (text[n] != 0);
}

static bool is_same(line a, line b) { return a.n == b.n && strncmp(a.at, b.at, (size_t)a.n) == 0; }

/* The line that begins with `name`, which ends with a space. */
static line find(const char *text, const char *name) {
    for (; *text; text = next(text))
        if (strncmp(text, name, strlen(name)) == 0) return line_at(text);
    return (line){text, 0};
}

/* Keys of the config have a dot in their names; what is known of the run has none. */
static bool is_of_run(line a) {
    const char *space = memchr(a.at, ' ', (size_t)a.n);
    return space && !memchr(a.at, '.', (size_t)(space - a.at));
}

/* The first lines that differ; *a_p without characters: none do. What one host does not know of the
 * run yet is no difference. */
static void find_difference(const char *own, const char *theirs, line *a_p, line *b_p) {
    *a_p = find(own, MODE);
    *b_p = find(theirs, MODE);
    if (!is_same(*a_p, *b_p)) return;
    for (;; own = next(own), theirs = next(theirs)) {
        *a_p = line_at(own);
        *b_p = line_at(theirs);
        bool one_knows = (!a_p->n && is_of_run(*b_p)) || (!b_p->n && is_of_run(*a_p));
        if (one_knows) *a_p = *b_p = (line){own, 0};
        if (!is_same(*a_p, *b_p) || !a_p->n) return;
    }
}

static ls_status fail_setting(line a, line b, const char *us, const char *them, ls_error *e) {
    int name = a.n ? (int)strcspn(a.at, " \n") + 1 : 0;
    bool same_name = b.n >= name && strncmp(a.at, b.at, (size_t)name) == 0;
    int skip = same_name ? name : 0;
    if (!b.n || is_of_run(b)) /* the end of their settings: another version */
        return ls_fail(e, LS_EINVAL, "%s has %.*s, %s has no such setting; these must match", us,
                       a.n < 80 ? a.n : 80, a.at, them);
    return ls_fail(e, LS_EINVAL, "%s has %.*s, %s has %.*s; these must match", us,
                   a.n < 80 ? a.n : 80, a.at, them, b.n - skip < 60 ? b.n - skip : 60, b.at + skip);
}

ls_status ls_admission_compare(const char *own, const char *theirs, const char *us,
                               const char *them, ls_error *e) {
    line a, b;
    find_difference(own, theirs, &a, &b);
    if (is_same(a, b)) return LS_OK;
    if (!is_of_run(a)) return fail_setting(a, b, us, them, e);
    return ls_fail(e, LS_EINVAL,
                   "%s has another %.*s than %s (-o); all hosts need the same run directory, on a "
                   "shared file system",
                   us, (int)strcspn(a.at, " "), a.at, them);
}

ls_status ls_admission_check_size(const ls_admission *g, ls_error *e) {
    size_t n = strlen(g->settings);
    if (n <= LS_SETTINGS_NBYTES) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "the config has %zu characters that must match on all hosts; at most %d can be "
                   "compared",
                   n, LS_SETTINGS_NBYTES);
}

static ls_status add_identity(const ls_admission *g, bool joins, ls_buf *out, ls_error *e) {
    return g->identity ? g->identity(g->arg, joins, out, e) : LS_OK;
}

void ls_admission_write(const ls_admission *g, ls_buf *out) {
    ls_error none;
    ls_buf_printf(out, "%s", g->settings);
    size_t n = out->len;
    if (add_identity(g, false, out, &none) == LS_OK) return;
    out->len = n; /* it is not known */
    out->data[n] = 0;
}

static bool knows_run(const char *text) {
    while (*text && !is_of_run(line_at(text))) text = next(text);
    return *text != 0;
}

ls_status ls_admission_answer(const ls_admission *g, const char *theirs, ls_buf *out, ls_error *e) {
    static const char US[] = "this host", THEM[] = "the leading host";
    LS_TRY(ls_admission_compare(g->settings, theirs, US, THEM, e));
    ls_buf_printf(out, "%s", g->settings);
    if (!knows_run(theirs)) return LS_OK;
    LS_TRY(add_identity(g, true, out, e));
    return ls_admission_compare(out->data, theirs, US, THEM, e);
}

ls_status ls_admission_check(const ls_admission *g, const char *name, const char *theirs,
                             ls_error *e) {
    char them[128];
    ls_buf own = {0};
    snprintf(them, sizeof them, "the host at %.80s", name);
    ls_admission_write(g, &own);
    ls_status s = ls_admission_compare(own.data, theirs, "this host", them, e);
    ls_buf_free(&own);
    return s;
}
