/* format.c - numbers and texts in fields, as Python's format() writes them.
 *
 * Source: Python's "Format Specification Mini-Language". Refused: what is rare and hard to get
 * right, as zeros together with groups. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "template/characters.h"
#include "template/methods.h"

enum { MOST_DIGITS = 100 }; /* of a precision */

void ls_text_fill(const ls_datum *fill, int64_t n, ls_buf *out) {
    char many[256];
    size_t most = sizeof many / fill->n;
    for (size_t i = 0; i < most; i++) memcpy(many + i * fill->n, fill->text, fill->n);
    for (size_t k; n > 0; n -= (int64_t)k) {
        k = (size_t)n < most ? (size_t)n : most;
        ls_buf_append(out, many, k * fill->n);
    }
}

static ls_status append_fill(ls_rendering *r, const ls_format_spec *spec, int64_t n, ls_buf *out) {
    static const ls_datum blank = {.kind = LS_DATUM_TEXT, .n = 1, .text = " "};
    static const ls_datum zero = {.kind = LS_DATUM_TEXT, .n = 1, .text = "0"};
    const ls_datum *fill = spec->fill.n ? &spec->fill : spec->zero ? &zero : &blank;
    if (n > LS_TEMPLATE_OUTPUT) return ls_datum_fits(r, LS_TEMPLATE_OUTPUT + (size_t)1);
    LS_TRY(ls_datum_fits(r, out->len + (size_t)n * fill->n));
    LS_TRY(ls_render_count(r, (size_t)n / 16));
    ls_text_fill(fill, n, out);
    return LS_OK;
}

/* Pads a sign or prefix and the text behind it to the width of the spec. */
static ls_status pad(ls_rendering *r, const ls_format_spec *spec, char align, const char *head,
                     const ls_datum *text, ls_buf *out) {
    size_t nhead = strlen(head);
    int64_t have = (int64_t)(nhead + ls_characters(text->text, text->n));
    int64_t more = spec->width > have ? spec->width - have : 0;
    int64_t left = align == '>' || align == '=' ? more : align == '^' ? more / 2 : 0;
    if (align != '=') LS_TRY(append_fill(r, spec, left, out));
    ls_buf_append(out, head, nhead);
    if (align == '=') LS_TRY(append_fill(r, spec, left, out));
    ls_buf_append(out, text->text, text->n);
    return append_fill(r, spec, more - left, out);
}

ls_status ls_format_text(ls_rendering *r, const ls_datum *text, const ls_format_spec *spec,
                         ls_buf *out) {
    ls_datum cut = *text;
    if ((spec->type && spec->type != 's') || spec->sign || spec->alternate || spec->group ||
        spec->align == '=')
        return ls_render_fail(r, "this format is not possible with text");
    if (spec->precision >= 0)
        cut.n = ls_characters_bytes(text->text, text->n, (size_t)spec->precision);
    return pad(r, spec, spec->align ? spec->align : '<', "", &cut, out);
}

/* Writes digits with a separator between each `size` of them. */
static void group_digits(const char *digits, size_t n, char by, size_t size, ls_buf *out) {
    for (size_t i = 0; i < n; i++) {
        if (i && by && (n - i) % size == 0) ls_buf_append(out, &by, 1);
        ls_buf_append(out, digits + i, 1);
    }
}

/* A number's digits with sign and prefix. */
static ls_status finish_number(ls_rendering *r, const ls_format_spec *spec, bool minus,
                               const char *prefix, const ls_buf *digits, ls_buf *out) {
    char head[8];
    const char *sign = minus ? "-" : spec->sign == '+' ? "+" : spec->sign == ' ' ? " " : "";
    snprintf(head, sizeof head, "%s%s", sign, prefix);
    ls_datum text = ls_datum_text(digits->data, digits->len);
    if (spec->zero && spec->group)
        return ls_render_fail(r, "a format with zeros and with separators is not supported");
    return pad(r, spec, spec->align ? spec->align : spec->zero ? '=' : '>', head, &text, out);
}

ls_status ls_format_integer(ls_rendering *r, int64_t v, const ls_format_spec *spec, ls_buf *out) {
    char type = spec->type ? spec->type : 'd', text[72], *end = text + sizeof text, *s = end;
    const char *prefix = "";
    unsigned base = type == 'b' ? 2 : type == 'o' ? 8 : type == 'x' || type == 'X' ? 16 : 10;
    uint64_t rest = v < 0 ? -(uint64_t)v : (uint64_t)v;
    if (strchr("eEfFgG%", type)) return ls_format_real(r, (double)v, spec, out);
    if (!strchr("bdoxXn", type) || spec->precision >= 0)
        return ls_render_fail(r, "this format is not possible with an integer");
    if (spec->group == ',' && base != 10) return ls_render_fail(r, "this format has no commas");
    do {
        *--s = (type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef")[rest % base];
    } while ((rest /= base) > 0);
    if (spec->alternate)
        prefix = type == 'b'   ? "0b"
                 : type == 'o' ? "0o"
                 : type == 'x' ? "0x"
                 : type == 'X' ? "0X"
                               : "";
    ls_buf digits = {0};
    group_digits(s, (size_t)(end - s), spec->group, base == 10 ? 3 : 4, &digits);
    ls_status status = finish_number(r, spec, v < 0, prefix, &digits, out);
    ls_buf_free(&digits);
    return status;
}

/* The digits of x, which is not negative, before separators. */
static ls_status real_digits(ls_rendering *r, double x, const ls_format_spec *spec, ls_buf *out) {
    char type = spec->type, form[12];
    int precision = spec->precision < 0 ? 6 : (int)spec->precision;
    if (!isfinite(x)) {
        bool upper = type && strchr("EFG", type);
        ls_buf_printf(out, "%s", isnan(x) ? (upper ? "NAN" : "nan") : upper ? "INF" : "inf");
    } else if (!type && spec->precision < 0) {
        ls_real_print(x, out);
    } else if (!type || spec->precision > MOST_DIGITS || type == 'n') {
        return ls_render_fail(r, "this format of a number is not supported");
    } else {
        snprintf(form, sizeof form, "%%%s.*%c", spec->alternate ? "#" : "",
                 type == '%' ? 'f' : type);
        char text[512];
        snprintf(text, sizeof text, form, precision, type == '%' ? x * 100 : x);
        ls_buf_printf(out, "%s%s", text, type == '%' ? "%" : "");
    }
    return LS_OK;
}

ls_status ls_format_real(ls_rendering *r, double x, const ls_format_spec *spec, ls_buf *out) {
    ls_buf plain = {0}, digits = {0};
    if (spec->type && !strchr("eEfFgG%n", spec->type))
        return ls_render_fail(r, "this format is not possible with a number");
    ls_status s = real_digits(r, fabs(x), spec, &plain);
    if (s == LS_OK) {
        size_t whole = strspn(plain.data, "0123456789");
        group_digits(plain.data, whole, spec->group, 3, &digits);
        ls_buf_append(&digits, plain.data + whole, plain.len - whole);
        s = finish_number(r, spec, signbit(x) && !isnan(x), "", &digits, out);
    }
    ls_buf_free(&plain);
    ls_buf_free(&digits);
    return s;
}

/* ---- text.format() ---- */

typedef struct format_reader {
    ls_rendering *r;
    const char *s, *end;
    const ls_template_arguments *a;
    int64_t next; /* argument of {}; -1: fields have numbers */
    ls_buf *out;
} format_reader;

static int64_t read_number(const char **s_p, const char *end) {
    int64_t v = -1;
    for (; *s_p < end && **s_p >= '0' && **s_p <= '9'; (*s_p)++)
        if ((v = (v < 0 ? 0 : v) * 10 + (**s_p - '0')) > LS_TEMPLATE_OUTPUT)
            v = LS_TEMPLATE_OUTPUT + 1;
    return v;
}

static bool take(const char **s_p, const char *end, char c) {
    bool is = *s_p < end && **s_p == c;
    *s_p += is;
    return is;
}

static ls_status read_spec(format_reader *f, const char *s, const char *end, ls_format_spec *spec) {
    *spec = (ls_format_spec){.width = -1, .precision = -1};
    uint32_t point;
    size_t k = s < end ? ls_character(s, (size_t)(end - s), &point) : 0;
    if (k && s + k < end && strchr("<>=^", s[k])) {
        spec->fill = ls_datum_text(s, k);
        s += k;
    }
    if (s < end && *s && strchr("<>=^", *s)) spec->align = *s++;
    if (s < end && *s && strchr("+- ", *s)) spec->sign = *s++;
    spec->alternate = take(&s, end, '#');
    spec->zero = take(&s, end, '0');
    spec->width = read_number(&s, end);
    if (s < end && (*s == ',' || *s == '_')) spec->group = *s++;
    if (take(&s, end, '.') && (spec->precision = read_number(&s, end)) < 0) s = end + 1;
    if (s < end) spec->type = *s++;
    if (s != end)
        return ls_render_fail(f->r, "this format is not supported: \"%.*s\"",
                              (int)(end - s > 0 && end - s < 60 ? end - s : 0), s);
    return LS_OK;
}

/* The value of a field's name: its first part, then members and items. */
static ls_status read_field(format_reader *f, const char *s, const char *end, ls_datum *x_p) {
    size_t n = 0;
    while (s + n < end && s[n] != '.' && s[n] != '[') n++;
    const char *digits = s;
    int64_t i = read_number(&digits, s + n);
    const ls_datum *x = NULL;
    ls_datum name;
    if (digits == s + n) { /* a number, or nothing */
        if (n ? f->next > 0 : f->next < 0)
            return ls_render_fail(f->r, "fields of a format all have numbers, or none has one");
        if (!n) i = f->next++;
        if (n) f->next = -1;
        x = i < f->a->n ? &f->a->list[i] : NULL;
    } else {
        LS_TRY(ls_datum_copy_text(f->r, s, n, &name));
        x = ls_argument_keyword(f->a, name.text);
    }
    if (!x)
        return ls_render_fail(f->r, "the format has no argument \"%.*s\"", n < 60 ? (int)n : 60, s);
    *x_p = *x;
    for (s += n; s < end;) {
        bool member = *s++ == '.';
        for (n = 0; s + n < end && (member ? s[n] != '.' && s[n] != '[' : s[n] != ']');) n++;
        if (!n || (!member && s + n == end))
            return ls_render_fail(f->r, "a field of the format has no name");
        digits = s;
        ls_datum key = ls_datum_integer(read_number(&digits, s + n));
        if (member || digits != s + n) LS_TRY(ls_datum_copy_text(f->r, s, n, &key));
        ls_datum from = *x_p;
        LS_TRY(member ? ls_datum_member(f->r, &from, key.text, x_p)
                      : ls_datum_item(f->r, &from, &key, x_p));
        s += n + !member;
        if (!member && s < end && *s != '.' && *s != '[')
            return ls_render_fail(f->r, "only . or [ may follow ] in a field of the format");
    }
    return LS_OK;
}

static ls_status write_field(format_reader *f, const ls_datum *x, char conversion,
                             const char *spec_text, const char *end) {
    ls_format_spec spec;
    ls_datum text = *x;
    if (conversion == 's') LS_TRY(ls_datum_str(f->r, x, &text));
    if (conversion == 'r') {
        ls_buf repr = {0};
        LS_TRY(ls_datum_take(f->r, ls_datum_print_repr(f->r, x, &repr), &repr, &text));
    }
    if (spec_text == end) return ls_datum_print(f->r, &text, f->out);
    LS_TRY(read_spec(f, spec_text, end, &spec));
    if (text.kind == LS_DATUM_TEXT) return ls_format_text(f->r, &text, &spec, f->out);
    if (ls_datum_is_integer(&text))
        return ls_format_integer(f->r, ls_datum_integer_of(&text), &spec, f->out);
    if (text.kind == LS_DATUM_REAL) return ls_format_real(f->r, text.real, &spec, f->out);
    return ls_render_fail(f->r, "%s has no such format", ls_datum_kind_name(x));
}

/* A field behind its {. */
static ls_status format_field(format_reader *f) {
    const char *begin = f->s, *close = memchr(begin, '}', (size_t)(f->end - begin)), *name = begin;
    if (!close || memchr(begin, '{', (size_t)(close - begin)))
        return ls_render_fail(f->r, "a field of the format has no end, or fields inside it");
    while (name < close && *name != '!' && *name != ':') {
        const char *end = *name == '[' ? memchr(name, ']', (size_t)(close - name)) : NULL;
        name = end ? end : name + 1;
    }
    const char *spec = name;
    char conversion = 0;
    if (spec < close && *spec == '!') {
        conversion = spec + 1 < close ? spec[1] : 0;
        spec += 2;
        if ((conversion != 's' && conversion != 'r') || (spec < close && *spec != ':'))
            return ls_render_fail(f->r, "behind ! of a format stands s or r");
    }
    if (spec < close) spec++;
    ls_datum x;
    LS_TRY(read_field(f, begin, name, &x));
    f->s = close + 1;
    return write_field(f, &x, conversion, spec, close);
}

static ls_status format_all(format_reader *f) {
    while (f->s < f->end) {
        char c = *f->s++;
        bool twice = f->s < f->end && *f->s == c;
        LS_TRY(ls_datum_fits(f->r, f->out->len));
        if (c != '{' && c != '}') {
            ls_buf_append(f->out, &c, 1);
        } else if (twice) {
            ls_buf_append(f->out, f->s++, 1);
        } else if (c == '}') {
            return ls_render_fail(f->r, "a } of the format has no {");
        } else {
            LS_TRY(ls_render_count(f->r, 1));
            LS_TRY(format_field(f));
        }
    }
    return LS_OK;
}

ls_status ls_text_format(ls_rendering *r, const ls_datum *text, const ls_template_arguments *a,
                         ls_datum *x_p) {
    ls_buf out = {0};
    format_reader f = {.r = r, .s = text->text, .end = text->text + text->n, .a = a, .out = &out};
    LS_TRY(ls_render_count(r, text->n / 16));
    return ls_datum_take(r, format_all(&f), &out, x_p);
}
