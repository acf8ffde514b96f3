/* tojson.c - values as JSON, as Python's json.dumps() writes it. */
#include <math.h>
#include <string.h>

#include "template/characters.h"
#include "template/methods.h"

/* A character as \uXXXX; one above U+FFFF as two. */
static void escape(uint32_t p, ls_buf *out) {
    if (p < 0x10000) {
        ls_buf_printf(out, "\\u%04x", p);
        return;
    }
    p -= 0x10000;
    ls_buf_printf(out, "\\u%04x\\u%04x", 0xd800 + (p >> 10), 0xdc00 + (p & 0x3ff));
}

static void write_text(const ls_datum *x, bool ascii, ls_buf *out) {
    static const char plain[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    ls_buf_append(out, "\"", 1);
    for (size_t i = 0, k; i < x->n; i += k) {
        uint32_t p = 0;
        k = ls_character(x->text + i, x->n - i, &p);
        const char *known = p && p < 128 ? strchr(plain, (char)p) : NULL;
        if (known)
            ls_buf_printf(out, "\\%c", letters[known - plain]);
        else if (p < 32 || (ascii && p > 126))
            escape(p, out);
        else
            ls_buf_append(out, x->text + i, k);
    }
    ls_buf_append(out, "\"", 1);
}

static void write_real(double x, ls_buf *out) {
    if (isfinite(x))
        ls_real_print(x, out);
    else
        ls_buf_printf(out, "%s", isnan(x) ? "NaN" : x < 0 ? "-Infinity" : "Infinity");
}

static ls_status write_value(ls_rendering *r, const ls_datum *x, const ls_json_style *style,
                             int level, ls_buf *out);

/* A dict's key is a text, whatever it is. */
static ls_status write_key(ls_rendering *r, const ls_datum *key, const ls_json_style *style,
                           ls_buf *out) {
    if (key->kind == LS_DATUM_TEXT) {
        write_text(key, style->ascii, out);
    } else {
        ls_buf_append(out, "\"", 1);
        LS_TRY(write_value(r, key, style, 0, out));
        ls_buf_append(out, "\"", 1);
    }
    ls_buf_printf(out, "%s", style->colon);
    return LS_OK;
}

static ls_status new_line(ls_rendering *r, const ls_json_style *style, int level, ls_buf *out) {
    if (!style->indent) return LS_OK;
    ls_buf_append(out, "\n", 1);
    LS_TRY(ls_datum_fits(r, out->len + (size_t)level * strlen(style->indent)));
    for (int i = 0; i < level; i++) ls_buf_printf(out, "%s", style->indent);
    return LS_OK;
}

static ls_status write_items(ls_rendering *r, const ls_datum *x, const ls_json_style *style,
                             int level, ls_buf *out) {
    bool dict = x->kind == LS_DATUM_DICT;
    ls_datum sorted = *x;
    LS_TRY(ls_render_enter(r));
    if (dict && style->sorted) LS_TRY(ls_dict_by_key(r, x, &sorted));
    ls_buf_append(out, dict ? "{" : "[", 1);
    for (size_t i = 0; i < x->n; i++) {
        if (i) ls_buf_printf(out, "%s", style->comma);
        LS_TRY(new_line(r, style, level + 1, out));
        if (dict) LS_TRY(write_key(r, &sorted.items[2 * i], style, out));
        LS_TRY(write_value(r, &sorted.items[dict ? 2 * i + 1 : i], style, level + 1, out));
    }
    if (x->n) LS_TRY(new_line(r, style, level, out));
    ls_buf_append(out, dict ? "}" : "]", 1);
    r->depth--;
    return LS_OK;
}

static ls_status write_value(ls_rendering *r, const ls_datum *x, const ls_json_style *style,
                             int level, ls_buf *out) {
    LS_TRY(ls_render_count(r, 1));
    LS_TRY(ls_datum_fits(r, out->len));
    switch (x->kind) {
    case LS_DATUM_NONE: ls_buf_printf(out, "null"); return LS_OK;
    case LS_DATUM_BOOL: ls_buf_printf(out, x->truth ? "true" : "false"); return LS_OK;
    case LS_DATUM_INTEGER: ls_buf_printf(out, "%lld", (long long)x->integer); return LS_OK;
    case LS_DATUM_REAL: write_real(x->real, out); return LS_OK;
    case LS_DATUM_TEXT: write_text(x, style->ascii, out); return LS_OK;
    case LS_DATUM_LIST:
    case LS_DATUM_TUPLE:
    case LS_DATUM_DICT: return write_items(r, x, style, level, out);
    default: return ls_render_fail(r, "%s can't be written as JSON", ls_datum_kind_name(x));
    }
}

/* ---- the filter ---- */

/* indent: a text, or that many blanks. */
static ls_status read_indent(ls_rendering *r, const ls_datum *x, const char **indent_p) {
    static const char blanks[] = "                "; /* 16 */
    ls_datum text;
    if (x->kind == LS_DATUM_TEXT) {
        LS_TRY(ls_datum_copy_text(r, x->text, x->n, &text));
        *indent_p = text.text;
        return LS_OK;
    }
    int64_t n = ls_datum_is_integer(x) ? ls_datum_integer_of(x) : -1;
    if (n < 0 || n >= (int64_t)sizeof blanks)
        return ls_render_fail(r, "tojson indents by 0 to 16, or by a text");
    *indent_p = blanks + sizeof blanks - 1 - n;
    return LS_OK;
}

static ls_status read_separators(ls_rendering *r, const ls_datum *x, ls_json_style *style) {
    ls_datum list, comma, colon;
    LS_TRY(ls_datum_items(r, x, &list));
    if (list.n != 2 || list.items[0].kind != LS_DATUM_TEXT || list.items[1].kind != LS_DATUM_TEXT)
        return ls_render_fail(r, "the separators of tojson are two texts");
    LS_TRY(ls_datum_copy_text(r, list.items[0].text, list.items[0].n, &comma));
    LS_TRY(ls_datum_copy_text(r, list.items[1].text, list.items[1].n, &colon));
    style->comma = comma.text;
    style->colon = colon.text;
    return LS_OK;
}

ls_status ls_filter_tojson(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                           ls_datum *y_p) {
    ls_json_style style = {
        .ascii = ls_argument_is_true(a, 0), .colon = ": ", .sorted = ls_argument_is_true(a, 3)};
    const ls_datum *indent = a->given[1], *separators = a->given[2];
    if (indent && indent->kind != LS_DATUM_NONE) LS_TRY(read_indent(r, indent, &style.indent));
    style.comma = style.indent ? "," : ", ";
    if (separators && separators->kind != LS_DATUM_NONE)
        LS_TRY(read_separators(r, separators, &style));
    ls_buf out = {0};
    return ls_datum_take(r, write_value(r, x, &style, 0, &out), &out, y_p);
}
