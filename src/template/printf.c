/* printf.c - text % values, as Python has it: %s %r %d %i %u %o %x %X %e %E %f %F %g %G %c %%. */
#include <math.h>
#include <string.h>

#include "template/characters.h"
#include "template/methods.h"

typedef struct printf_reader {
    ls_rendering *r;
    const char *s, *end;
    const ls_datum *values; /* the value, or a tuple of them */
    size_t used;
    ls_buf *out;
} printf_reader;

static ls_status next_value(printf_reader *p, ls_datum *x_p) {
    bool tuple = p->values->kind == LS_DATUM_TUPLE;
    if (p->used >= (tuple ? p->values->n : 1))
        return ls_render_fail(p->r, "the format takes more values than there are");
    *x_p = tuple ? p->values->items[p->used] : *p->values;
    p->used++;
    return LS_OK;
}

/* (name): the value of a key. */
static ls_status named_value(printf_reader *p, ls_datum *x_p) {
    const char *close = memchr(p->s, ')', (size_t)(p->end - p->s));
    if (!close || p->values->kind != LS_DATUM_DICT)
        return ls_render_fail(p->r, "%%(name) takes a dict");
    ls_datum key = ls_datum_text(p->s + 1, (size_t)(close - p->s - 1));
    size_t place;
    LS_TRY(ls_dict_find(p->r, p->values, &key, &place));
    if (!place)
        return ls_render_fail(p->r, "the dict has no \"%.*s\"", key.n < 60 ? (int)key.n : 60,
                              key.text);
    *x_p = p->values->items[place];
    p->s = close + 1;
    return LS_OK;
}

/* A number, or * for the next value; -1: there is none. */
static ls_status read_number(printf_reader *p, int64_t *v_p) {
    *v_p = -1;
    if (p->s < p->end && *p->s == '*') return ls_render_fail(p->r, "%%* is not supported");
    for (; p->s < p->end && *p->s >= '0' && *p->s <= '9'; p->s++) {
        *v_p = (*v_p < 0 ? 0 : *v_p) * 10 + (*p->s - '0');
        if (*v_p > LS_TEMPLATE_OUTPUT) return ls_datum_fits(p->r, (size_t)*v_p);
    }
    return LS_OK;
}

static ls_status write_integer(printf_reader *p, const ls_datum *x, ls_format_spec *spec) {
    int64_t v;
    if (!ls_datum_is_number(x) || (x->kind == LS_DATUM_REAL && !strchr("diu", spec->type)))
        return ls_render_fail(p->r, "%%%c takes a number, not %s", spec->type,
                              ls_datum_kind_name(x));
    if (x->kind == LS_DATUM_REAL) {
        if (!(x->real > -9e18 && x->real < 9e18))
            return ls_render_fail(p->r, "the number is too large");
        v = (int64_t)x->real;
    } else {
        v = ls_datum_integer_of(x);
    }
    if (strchr("iu", spec->type)) spec->type = 'd';
    if (spec->precision >= 0) return ls_render_fail(p->r, "%%.d is not supported");
    return ls_format_integer(p->r, v, spec, p->out);
}

static ls_status write_text(printf_reader *p, const ls_datum *x, ls_format_spec *spec) {
    ls_datum text = *x;
    char type = spec->type;
    ls_buf repr = {0};
    spec->type = 0;
    spec->sign = 0;
    spec->alternate = spec->zero = false;
    if (!spec->align) spec->align = '>';
    if (type == 'r')
        LS_TRY(ls_datum_take(p->r, ls_datum_print_repr(p->r, x, &repr), &repr, &text));
    else if (type == 's')
        LS_TRY(ls_datum_str(p->r, x, &text));
    else if (x->kind != LS_DATUM_TEXT || ls_characters(x->text, x->n) != 1)
        return ls_render_fail(p->r, "%%c takes one character");
    return ls_format_text(p->r, &text, spec, p->out);
}

/* What is behind a %. */
static ls_status write_field(printf_reader *p) {
    ls_format_spec spec = {.width = -1, .precision = -1};
    ls_datum x = ls_datum_none();
    bool named = p->s < p->end && *p->s == '(';
    if (named) LS_TRY(named_value(p, &x));
    for (; p->s < p->end && *p->s && strchr("#0- +", *p->s); p->s++) {
        if (*p->s == '#') spec.alternate = true;
        if (*p->s == '0') spec.zero = true;
        if (*p->s == '-') spec.align = '<';
        if (*p->s == '+' || (*p->s == ' ' && !spec.sign)) spec.sign = *p->s;
    }
    LS_TRY(read_number(p, &spec.width));
    if (p->s < p->end && *p->s == '.') {
        p->s++;
        LS_TRY(read_number(p, &spec.precision));
        if (spec.precision < 0) spec.precision = 0;
    }
    while (p->s < p->end && *p->s && strchr("hlL", *p->s)) p->s++;
    if (p->s == p->end) return ls_render_fail(p->r, "the format ends behind %%");
    spec.type = *p->s++;
    if (spec.type == '%') {
        if (p->s[-2] != '%') return ls_render_fail(p->r, "%%%% has no flags here");
        ls_buf_append(p->out, "%", 1);
        return LS_OK;
    }
    if (!strchr("srcdiuoxXeEfFgG", spec.type) || !spec.type)
        return ls_render_fail(p->r, "this format is not supported: \"%%%c\"",
                              spec.type >= ' ' && spec.type < 127 ? spec.type : '?');
    if (!named) LS_TRY(next_value(p, &x));
    if (spec.align == '<') spec.zero = false;
    if (strchr("src", spec.type)) return write_text(p, &x, &spec);
    if (strchr("diuoxX", spec.type)) return write_integer(p, &x, &spec);
    if (!ls_datum_is_number(&x))
        return ls_render_fail(p->r, "%%%c takes a number, not %s", spec.type,
                              ls_datum_kind_name(&x));
    return ls_format_real(p->r, ls_datum_number(&x), &spec, p->out);
}

static ls_status write_all(printf_reader *p) {
    while (p->s < p->end) {
        const char *at = memchr(p->s, '%', (size_t)(p->end - p->s)), *end = at ? at : p->end;
        ls_buf_append(p->out, p->s, (size_t)(end - p->s));
        p->s = at ? at + 1 : p->end;
        LS_TRY(ls_render_count(p->r, 1));
        LS_TRY(ls_datum_fits(p->r, p->out->len));
        if (at) LS_TRY(write_field(p));
    }
    /* A value that could be a mapping need not be used. */
    const ls_datum *v = p->values;
    bool mapping = v->kind == LS_DATUM_DICT || v->kind == LS_DATUM_LIST ||
                   v->kind == LS_DATUM_RANGE || v->kind == LS_DATUM_UNDEFINED;
    size_t n = v->kind == LS_DATUM_TUPLE ? v->n : 1;
    if (p->used < n && !mapping) return ls_render_fail(p->r, "the format does not take all values");
    return LS_OK;
}

ls_status ls_text_printf(ls_rendering *r, const ls_datum *text, const ls_datum *values,
                         ls_datum *x_p) {
    ls_buf out = {0};
    if (text->safe) return ls_render_fail(r, "%% is not supported with a text marked as safe");
    printf_reader p = {
        .r = r, .s = text->text, .end = text->text + text->n, .values = values, .out = &out};
    return ls_datum_take(r, write_all(&p), &out, x_p);
}
