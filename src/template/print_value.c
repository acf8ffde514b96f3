/* print_value.c - values as text, as Python writes them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/unicode.h"
#include "template/characters.h"
#include "template/value.h"

/* The shortest digits that give the number back. */
void ls_real_print(double x, ls_buf *out) {
    char s[40];
    if (isnan(x) || isinf(x)) {
        ls_buf_printf(out, "%s", isnan(x) ? "nan" : x < 0 ? "-inf" : "inf");
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(s, sizeof s, "%.*e", digits - 1, x);
        if (!(strtod(s, NULL) < x) && !(strtod(s, NULL) > x)) break;
    }
    char *e = strchr(s, 'e');
    int exponent = atoi(e + 1), digits = 0;
    if (exponent < -4 || exponent >= 16) {
        *e = 0;
        ls_buf_printf(out, "%se%c%02d", s, exponent < 0 ? '-' : '+', abs(exponent));
        return;
    }
    for (const char *d = s; d < e; d++) digits += *d >= '0' && *d <= '9';
    int places = digits - 1 - exponent;
    ls_buf_printf(out, "%.*f", places > 0 ? places : 1, x);
}

/* ---- Python ---- */

static void print_quoted(const ls_datum *x, ls_buf *out) {
    if (x->safe) ls_buf_printf(out, "Markup(");
    bool single = x->n && memchr(x->text, '\'', x->n), twice = x->n && memchr(x->text, '"', x->n);
    char quote = single && !twice ? '"' : '\'';
    ls_buf_append(out, &quote, 1);
    for (size_t i = 0, k; i < x->n; i += k) {
        uint32_t p = 0;
        k = ls_character(x->text + i, x->n - i, &p);
        if (p == '\\' || p == (uint32_t)quote)
            ls_buf_printf(out, "\\%c", (char)p);
        else if (p == '\n' || p == '\r' || p == '\t')
            ls_buf_printf(out, "\\%c", p == '\n' ? 'n' : p == '\r' ? 'r' : 't');
        else if (!ls_unicode_is_printable(p))
            ls_buf_printf(out, p < 0x100 ? "\\x%02x" : p < 0x10000 ? "\\u%04x" : "\\U%08x", p);
        else
            ls_buf_append(out, x->text + i, k);
    }
    ls_buf_append(out, &quote, 1);
    if (x->safe) ls_buf_printf(out, ")");
}

ls_status ls_datum_print_repr(ls_rendering *r, const ls_datum *x, ls_buf *out) {
    if (x->kind == LS_DATUM_TEXT)
        print_quoted(x, out);
    else if (x->kind == LS_DATUM_UNDEFINED)
        ls_buf_printf(out, "Undefined");
    else
        return ls_datum_print(r, x, out);
    return LS_OK;
}

static ls_status print_items(ls_rendering *r, const ls_datum *x, ls_buf *out) {
    bool dict = x->kind == LS_DATUM_DICT, tuple = x->kind == LS_DATUM_TUPLE;
    LS_TRY(ls_render_enter(r));
    ls_buf_append(out, dict ? "{" : tuple ? "(" : "[", 1);
    for (size_t i = 0; i < x->n; i++) {
        if (i) ls_buf_append(out, ", ", 2);
        LS_TRY(ls_datum_print_repr(r, &x->items[dict ? 2 * i : i], out));
        if (!dict) continue;
        ls_buf_append(out, ": ", 2);
        LS_TRY(ls_datum_print_repr(r, &x->items[2 * i + 1], out));
    }
    if (tuple && x->n == 1) ls_buf_append(out, ",", 1);
    ls_buf_append(out, dict ? "}" : tuple ? ")" : "]", 1);
    r->depth--;
    return LS_OK;
}

ls_status ls_datum_fits(ls_rendering *r, size_t nbytes) {
    if (nbytes > LS_TEMPLATE_OUTPUT)
        return ls_render_fail(r, "the text exceeds %d MB", LS_TEMPLATE_OUTPUT >> 20);
    return LS_OK;
}

static ls_status check_output(ls_rendering *r, const ls_buf *out) {
    LS_TRY(ls_render_count(r, 1));
    return ls_datum_fits(r, out->len);
}

ls_status ls_datum_print(ls_rendering *r, const ls_datum *x, ls_buf *out) {
    LS_TRY(check_output(r, out));
    switch (x->kind) {
    case LS_DATUM_UNDEFINED: return LS_OK;
    case LS_DATUM_NONE: ls_buf_printf(out, "None"); return LS_OK;
    case LS_DATUM_BOOL: ls_buf_printf(out, x->truth ? "True" : "False"); return LS_OK;
    case LS_DATUM_INTEGER: ls_buf_printf(out, "%lld", (long long)x->integer); return LS_OK;
    case LS_DATUM_REAL: ls_real_print(x->real, out); return LS_OK;
    case LS_DATUM_TEXT: ls_buf_append(out, x->text, x->n); return LS_OK;
    case LS_DATUM_LIST:
    case LS_DATUM_TUPLE:
    case LS_DATUM_DICT: return print_items(r, x, out);
    default: return ls_render_fail(r, "%s can't be printed", ls_datum_kind_name(x));
    }
}

ls_status ls_datum_take(ls_rendering *r, ls_status s, ls_buf *out, ls_datum *text_p) {
    if (s == LS_OK) s = ls_datum_copy_text(r, out->data, out->len, text_p);
    ls_buf_free(out);
    return s;
}

ls_status ls_datum_str(ls_rendering *r, const ls_datum *x, ls_datum *text_p) {
    ls_buf out = {0};
    if (x->kind == LS_DATUM_TEXT) {
        *text_p = *x;
        return LS_OK;
    }
    return ls_datum_take(r, ls_datum_print(r, x, &out), &out, text_p);
}
