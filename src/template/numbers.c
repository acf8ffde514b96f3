/* numbers.c - filters of numbers: abs, float, int, round. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "template/methods.h"

typedef const ls_template_arguments arguments;

enum { MOST_TEXT = 400 }; /* bytes of a number's text */

/* The text of a number without white space around it and underscores between its digits, followed
 * by a 0. False: it is none. Fails if it is too long, or has digits of other scripts. */
static ls_status number_text(ls_rendering *r, const ls_datum *x, char text[MOST_TEXT], bool *is_p) {
    ls_datum s;
    size_t n = 0;
    LS_TRY(ls_text_strip(r, x, NULL, LS_STRIP_LEFT | LS_STRIP_RIGHT, &s));
    *is_p = s.n > 0;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.text[i];
        if (c & (char)0x80 || n + 1 == MOST_TEXT)
            return ls_render_fail(r, "whether this text is a number is not decided");
        bool between = i && i + 1 < s.n && strchr("0123456789", s.text[i - 1]) && s.text[i + 1] &&
                       strchr("0123456789", s.text[i + 1]);
        if (c == '_' && between) continue;
        if (!strchr("0123456789+-.eEinfatyINFATY", c) || !c) *is_p = false;
        text[n++] = c;
    }
    text[n] = 0;
    return LS_OK;
}

/* float(x); false: Python would raise ValueError or TypeError. */
static ls_status to_real(ls_rendering *r, const ls_datum *x, double *v_p, bool *is_p) {
    char text[MOST_TEXT], *end;
    *is_p = ls_datum_is_number(x);
    if (*is_p) *v_p = ls_datum_number(x);
    if (x->kind == LS_DATUM_UNDEFINED)
        return ls_render_fail(r, "\"%.*s\" is not defined", (int)x->n, x->text);
    if (x->kind != LS_DATUM_TEXT) return LS_OK;
    LS_TRY(number_text(r, x, text, is_p));
    if (!*is_p) return LS_OK;
    *v_p = strtod(text, &end);
    *is_p = end != text && !*end;
    return LS_OK;
}

/* A text of digits with a sign; false: it is none. */
static bool is_whole(const char *s) {
    s += *s == '+' || *s == '-';
    return *s && strspn(s, "0123456789") == strlen(s);
}

static ls_status to_integer(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    char text[MOST_TEXT];
    bool is = false;
    double v = 0;
    *y_p = a->given[0] ? *a->given[0] : ls_datum_integer(0);
    if (a->given[1] && !(ls_datum_is_integer(a->given[1]) && a->given[1]->integer == 10))
        return ls_render_fail(r, "int reads numbers of base 10 only");
    if (ls_datum_is_integer(x)) {
        *y_p = ls_datum_integer(ls_datum_integer_of(x));
        return LS_OK;
    }
    if (x->kind == LS_DATUM_TEXT) LS_TRY(number_text(r, x, text, &is));
    if (is && is_whole(text)) {
        if (strlen(text) > 18) return ls_render_fail(r, "the number is too large");
        *y_p = ls_datum_integer(strtoll(text, NULL, 10));
        return LS_OK;
    }
    LS_TRY(to_real(r, x, &v, &is));
    if (!is || isnan(v)) return LS_OK;
    if (isinf(v) && x->kind == LS_DATUM_TEXT) return LS_OK;
    if (!(v > -9e18 && v < 9e18)) return ls_render_fail(r, "the number is too large");
    *y_p = ls_datum_integer((int64_t)v);
    return LS_OK;
}

static ls_status real_of(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    double v = 0;
    bool is;
    LS_TRY(to_real(r, x, &v, &is));
    *y_p = is            ? (ls_datum){.kind = LS_DATUM_REAL, .real = v}
           : a->given[0] ? *a->given[0]
                         : (ls_datum){.kind = LS_DATUM_REAL, .real = 0};
    return LS_OK;
}

static ls_status absolute(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    (void)a;
    if (x->kind == LS_DATUM_REAL) {
        *y_p = (ls_datum){.kind = LS_DATUM_REAL, .real = fabs(x->real)};
        return LS_OK;
    }
    return ls_datum_sign(r, ls_datum_is_integer(x) && ls_datum_integer_of(x) < 0, x, y_p);
}

/* Rounds x to `places` decimals, halves to even: the C library writes and reads numbers exactly. */
static ls_status round_real(ls_rendering *r, double x, int64_t places, ls_datum *y_p) {
    char text[400];
    if (places < 0 || places > 22)
        return ls_render_fail(r, "round to %lld decimals is not supported", (long long)places);
    snprintf(text, sizeof text, "%.*f", (int)places, x);
    *y_p = (ls_datum){.kind = LS_DATUM_REAL, .real = isfinite(x) ? strtod(text, NULL) : x};
    return LS_OK;
}

static ls_status round_number(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    const ls_datum *method = a->given[1];
    int64_t places;
    LS_TRY(ls_argument_integer(r, a, 0, 0, &places));
    bool up = method && ls_datum_is_text(method, "ceil");
    bool down = method && ls_datum_is_text(method, "floor");
    if (method && !up && !down && !ls_datum_is_text(method, "common"))
        return ls_render_fail(r, "round is \"common\", \"ceil\" or \"floor\"");
    if (!ls_datum_is_number(x))
        return ls_render_fail(r, "%s can't be rounded", ls_datum_kind_name(x));
    if (!up && !down) {
        if (x->kind == LS_DATUM_REAL) return round_real(r, x->real, places, y_p);
        if (places < 0) return ls_render_fail(r, "round to tens is not supported");
        *y_p = ls_datum_integer(ls_datum_integer_of(x));
        return LS_OK;
    }
    double scale = 1, v = ls_datum_number(x);
    if (places < 0 || places > 15)
        return ls_render_fail(r, "round to %lld decimals is not supported", (long long)places);
    for (int64_t i = 0; i < places; i++) scale *= 10;
    v = up ? ceil(v * scale) : floor(v * scale);
    if (!(fabs(v) < 9e15)) return ls_render_fail(r, "the number is too large to be rounded");
    *y_p = (ls_datum){.kind = LS_DATUM_REAL, .real = (v + 0.0) / scale};
    return LS_OK;
}

const ls_template_entry ls_number_filters[] = {{"abs", absolute, ""},
                                               {"float", real_of, "| default"},
                                               {"int", to_integer, "| default base"},
                                               {"round", round_number, "| precision method"},
                                               {NULL, NULL, NULL}};
