/* calculate.c - operators of values: + - * / // % ** ~ and signs. */
#include <math.h>
#include <string.h>

#include "template/methods.h"

/* The bytes of a text, or the items of a list. */
static const void *contents_of(const ls_datum *x) {
    return x->kind == LS_DATUM_TEXT ? (const void *)x->text : (const void *)x->items;
}

static void take_contents(ls_datum *y, const void *contents) {
    if (y->kind == LS_DATUM_TEXT)
        y->text = contents;
    else
        y->items = contents;
}

static ls_status join(ls_rendering *r, const ls_datum *a, const ls_datum *b, ls_datum *y_p) {
    size_t size = a->kind == LS_DATUM_TEXT ? 1 : sizeof(ls_datum);
    void *room;
    LS_TRY(ls_render_alloc(r, (a->n + b->n + 1) * size, &room));
    if (a->n) memcpy(room, contents_of(a), a->n * size);
    if (b->n) memcpy((char *)room + a->n * size, contents_of(b), b->n * size);
    *y_p = *a;
    y_p->n = a->n + b->n;
    take_contents(y_p, room);
    return LS_OK;
}

/* Joins two texts. If one is marked as safe, the other one is escaped. */
static ls_status add_texts(ls_rendering *r, const ls_datum *a, const ls_datum *b, ls_datum *y_p) {
    ls_datum x = *a, y = *b;
    bool safe = a->safe || b->safe;
    if (safe && !x.safe) LS_TRY(ls_text_escape(r, &x, &x));
    if (safe && !y.safe) LS_TRY(ls_text_escape(r, &y, &y));
    LS_TRY(join(r, &x, &y, y_p));
    y_p->safe = safe;
    return LS_OK;
}

/* A text, list or tuple several times. */
static ls_status repeat(ls_rendering *r, const ls_datum *x, int64_t times, ls_datum *y_p) {
    size_t n = times > 0 ? (size_t)times : 0, size = x->kind == LS_DATUM_TEXT ? 1 : sizeof *x;
    void *room;
    if (x->n && n > LS_TEMPLATE_OUTPUT / x->n)
        return ls_render_fail(r, "a repeated text exceeds %d MB", LS_TEMPLATE_OUTPUT >> 20);
    LS_TRY(ls_render_alloc(r, (n * x->n + 1) * size, &room));
    LS_TRY(ls_render_count(r, x->n ? n : 0));
    for (size_t i = 0; x->n && i < n; i++)
        memcpy((char *)room + i * x->n * size, contents_of(x), x->n * size);
    *y_p = *x;
    y_p->n = n * x->n;
    take_contents(y_p, room);
    return LS_OK;
}

/* a % b with the sign of b, as Python computes it. */
static double rest_of(double a, double b) {
    double rest = fmod(a, b);
    if (!(rest < 0) && !(rest > 0)) return copysign(0, b);
    return (rest < 0) != (b < 0) ? rest + b : rest;
}

/* The largest whole number up to a / b, as Python computes it. */
static double floor_of(double a, double b) {
    double rest = fmod(a, b), quotient = (a - rest) / b;
    if ((rest < 0 || rest > 0) && (rest < 0) != (b < 0)) quotient -= 1;
    if (!(quotient < 0) && !(quotient > 0)) return copysign(0, a / b);
    double down = floor(quotient);
    return quotient - down > 0.5 ? down + 1 : down;
}

static ls_status power_reals(ls_rendering *r, double a, double b, ls_datum *y_p) {
    if (!(a < 0) && !(a > 0) && b < 0) return ls_render_fail(r, "0 has no negative powers");
    if (a < 0 && isfinite(b) && floor(b) < b)
        return ls_render_fail(r, "a negative number has whole powers only");
    y_p->real = pow(a, b);
    if (isinf(y_p->real) && isfinite(a) && isfinite(b))
        return ls_render_fail(r, "the power is too large");
    return LS_OK;
}

static ls_status math_reals(ls_rendering *r, char op, double a, double b, ls_datum *y_p) {
    if (strchr("/d%", op) && !(b < 0) && !(b > 0)) return ls_render_fail(r, "division by zero");
    y_p->kind = LS_DATUM_REAL;
    switch (op) {
    case '+': y_p->real = a + b; break;
    case '-': y_p->real = a - b; break;
    case '*': y_p->real = a * b; break;
    case '/': y_p->real = a / b; break;
    case 'd': y_p->real = floor_of(a, b); break;
    case 'p': return power_reals(r, a, b, y_p);
    default: y_p->real = rest_of(a, b); break;
    }
    return LS_OK;
}

/* a to the power b, at least 0; true if it exceeds 64 bits. */
static bool power_over(int64_t a, int64_t b, int64_t *y_p) {
    bool over = false;
    int64_t y = 1;
    if (a == 0 || a == 1 || a == -1) b = b ? 2 - b % 2 : 0;
    for (; b > 0 && !over; b--) over = __builtin_mul_overflow(y, a, &y);
    *y_p = y;
    return over;
}

static ls_status math_integers(ls_rendering *r, char op, int64_t a, int64_t b, ls_datum *y_p) {
    bool over = false;
    int64_t y = 0;
    if (op == '/') {
        const int64_t most = (int64_t)1 << 53; /* beyond, the quotient may be rounded twice */
        if (a > most || a < -most || b > most || b < -most)
            return ls_render_fail(r, "the integers are too large to be divided");
    }
    if (op == '/' || (op == 'p' && b < 0)) return math_reals(r, op, (double)a, (double)b, y_p);
    if (strchr("d%", op) && !b) return ls_render_fail(r, "division by zero");
    switch (op) {
    case '+': over = __builtin_add_overflow(a, b, &y); break;
    case '-': over = __builtin_sub_overflow(a, b, &y); break;
    case '*': over = __builtin_mul_overflow(a, b, &y); break;
    case 'p': over = power_over(a, b, &y); break;
    default: { /* rounds down, so that the rest has the sign of b */
        over = a == INT64_MIN && b == -1;
        if (over) break;
        y = a % b;
        bool down = y && (y < 0) != (b < 0);
        y = op == 'd' ? a / b - down : y + (down ? b : 0);
        break;
    }
    }
    if (over) return ls_render_fail(r, "an integer exceeds 64 bits");
    *y_p = ls_datum_integer(y);
    return LS_OK;
}

static ls_status math_numbers(ls_rendering *r, char op, const ls_datum *a, const ls_datum *b,
                              ls_datum *y_p) {
    if (a->kind == LS_DATUM_REAL || b->kind == LS_DATUM_REAL)
        return math_reals(r, op, ls_datum_number(a), ls_datum_number(b), y_p);
    return math_integers(r, op, ls_datum_integer_of(a), ls_datum_integer_of(b), y_p);
}

static bool is_sequence(const ls_datum *x) {
    return x->kind == LS_DATUM_TEXT || x->kind == LS_DATUM_LIST || x->kind == LS_DATUM_TUPLE;
}

ls_status ls_datum_math(ls_rendering *r, const char *text, const ls_datum *a, const ls_datum *b,
                        ls_datum *y_p) {
    char op = strcmp(text, "//") == 0 ? 'd' : strcmp(text, "**") == 0 ? 'p' : text[0];
    if (op == '~') {
        ls_datum x, y;
        LS_TRY(ls_datum_str(r, a, &x));
        LS_TRY(ls_datum_str(r, b, &y));
        LS_TRY(join(r, &x, &y, y_p));
        y_p->safe = false;
        return LS_OK;
    }
    if (op == '%' && a->kind == LS_DATUM_TEXT) return ls_text_printf(r, a, b, y_p);
    if (ls_datum_is_number(a) && ls_datum_is_number(b)) return math_numbers(r, op, a, b, y_p);
    if (op == '+' && a->kind == b->kind && is_sequence(a))
        return a->kind == LS_DATUM_TEXT ? add_texts(r, a, b, y_p) : join(r, a, b, y_p);
    if (op == '*' && is_sequence(a) && ls_datum_is_integer(b))
        return repeat(r, a, ls_datum_integer_of(b), y_p);
    if (op == '*' && is_sequence(b) && ls_datum_is_integer(a))
        return repeat(r, b, ls_datum_integer_of(a), y_p);
    const ls_datum *lost = a->kind == LS_DATUM_UNDEFINED ? a : b;
    if (lost->kind == LS_DATUM_UNDEFINED)
        return ls_render_fail(r, "\"%.*s\" is not defined", (int)lost->n, lost->text);
    return ls_render_fail(r, "\"%s\" is not possible with %s and %s", text, ls_datum_kind_name(a),
                          ls_datum_kind_name(b));
}

ls_status ls_datum_sign(ls_rendering *r, bool minus, const ls_datum *x, ls_datum *y_p) {
    if (!ls_datum_is_number(x)) return ls_render_fail(r, "%s has no sign", ls_datum_kind_name(x));
    if (x->kind == LS_DATUM_REAL) {
        *y_p = *x;
        if (minus) y_p->real = -x->real;
        return LS_OK;
    }
    int64_t v = ls_datum_integer_of(x);
    if (minus && v == INT64_MIN) return ls_render_fail(r, "an integer exceeds 64 bits");
    *y_p = ls_datum_integer(minus ? -v : v);
    return LS_OK;
}
