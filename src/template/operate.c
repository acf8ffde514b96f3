/* operate.c - members, items, slices and arithmetic of values. */
#include <math.h>
#include <string.h>

#include "template/characters.h"
#include "template/value.h"

/* ---- members and items ---- */

static ls_datum loop_member(const ls_template_loop *l, const char *name) {
    int64_t i = (int64_t)l->i, n = (int64_t)l->n;
    if (strcmp(name, "index") == 0) return ls_datum_integer(i + 1);
    if (strcmp(name, "index0") == 0) return ls_datum_integer(i);
    if (strcmp(name, "revindex") == 0) return ls_datum_integer(n - i);
    if (strcmp(name, "revindex0") == 0) return ls_datum_integer(n - i - 1);
    if (strcmp(name, "first") == 0) return ls_datum_bool(i == 0);
    if (strcmp(name, "last") == 0) return ls_datum_bool(i == n - 1);
    if (strcmp(name, "length") == 0) return ls_datum_integer(n);
    if (strcmp(name, "depth") == 0) return ls_datum_integer(l->depth);
    if (strcmp(name, "depth0") == 0) return ls_datum_integer(l->depth - 1);
    if (strcmp(name, "previtem") == 0 && i > 0) return l->items[i - 1];
    if (strcmp(name, "nextitem") == 0 && i < n - 1) return l->items[i + 1];
    return ls_datum_undefined(name);
}

ls_status ls_datum_member(ls_rendering *r, const ls_datum *x, const char *name, ls_datum *y_p) {
    *y_p = ls_datum_undefined(name);
    if (x->kind == LS_DATUM_UNDEFINED)
        return ls_render_fail(r, "\"%.*s\" is not defined, so it has no \"%s\"", (int)x->n, x->text,
                              name);
    ls_template_function *method = ls_template_method(x, name);
    if (method) {
        void *self;
        LS_TRY(ls_render_alloc(r, sizeof *x, &self));
        memcpy(self, x, sizeof *x);
        *y_p = (ls_datum){.kind = LS_DATUM_FUNCTION, .function = method, .self = self};
        return LS_OK;
    }
    const ls_datum *found = NULL;
    if (x->kind == LS_DATUM_DICT) found = ls_dict_find(x, name, strlen(name));
    if (x->kind == LS_DATUM_SPACE) found = ls_scope_find(x->space, name);
    if (x->kind == LS_DATUM_LOOP) *y_p = loop_member(x->loop, name);
    if (found) *y_p = *found;
    return LS_OK;
}

/* Item i of n, where a negative i counts from the end; false: there is none. */
static bool place_of(int64_t i, size_t n, size_t *place_p) {
    if (i < 0) i += (int64_t)n;
    *place_p = (size_t)i;
    return i >= 0 && i < (int64_t)n;
}

ls_status ls_datum_item(ls_rendering *r, const ls_datum *x, const ls_datum *key, ls_datum *y_p) {
    size_t i;
    *y_p = ls_datum_undefined("item");
    if (x->kind == LS_DATUM_UNDEFINED)
        return ls_render_fail(r, "\"%.*s\" is not defined, so it has no items", (int)x->n, x->text);
    LS_TRY(ls_render_count(r, x->n / 16));
    if (x->kind == LS_DATUM_DICT) {
        const ls_datum *found = NULL;
        if (key->kind == LS_DATUM_TEXT) {
            *y_p = (ls_datum){.kind = LS_DATUM_UNDEFINED, .n = key->n, .text = key->text};
            found = ls_dict_find(x, key->text, key->n);
        }
        for (size_t k = 0; key->kind != LS_DATUM_TEXT && !found && k < x->n; k++) {
            bool equal;
            LS_TRY(ls_datum_equal(r, &x->items[2 * k], key, &equal));
            if (equal) found = &x->items[2 * k + 1];
        }
        if (found) *y_p = *found;
        return LS_OK;
    }
    if (key->kind == LS_DATUM_TEXT) {
        ls_datum name = *key; /* a 0 must follow a member's name */
        LS_TRY(ls_datum_copy_text(r, key->text, key->n, &name));
        return ls_datum_member(r, x, name.text, y_p);
    }
    if (key->kind != LS_DATUM_INTEGER) return LS_OK;
    if (x->kind == LS_DATUM_LIST && place_of(key->integer, x->n, &i)) *y_p = x->items[i];
    if (x->kind == LS_DATUM_TEXT && place_of(key->integer, ls_characters(x->text, x->n), &i)) {
        uint32_t point;
        size_t at = ls_characters_bytes(x->text, x->n, i);
        *y_p = ls_datum_text(x->text + at, ls_character(x->text + at, x->n - at, &point));
    }
    return LS_OK;
}

/* ---- slices ---- */

/* A bound of a slice within [low, high], as Python clips it. */
static ls_status bound(ls_rendering *r, const ls_datum *x, int64_t n, int64_t otherwise,
                       int64_t *value_p) {
    *value_p = otherwise;
    if (x->kind == LS_DATUM_NONE) return LS_OK;
    if (x->kind != LS_DATUM_INTEGER)
        return ls_render_fail(r, "a slice's bounds are integers, not %s", ls_datum_kind_name(x));
    int64_t v = x->integer;
    if (v < 0) v = v < -n ? -1 : v + n; /* before the beginning: -1, as a step down has it */
    *value_p = v > n ? n : v;
    return LS_OK;
}

static ls_status slice_items(ls_rendering *r, const ls_datum *x, const ls_datum bounds[3],
                             ls_datum *y_p) {
    int64_t n = (int64_t)x->n, step = 1, begin, end;
    if (bounds[2].kind == LS_DATUM_INTEGER) step = bounds[2].integer;
    if (!step || (bounds[2].kind != LS_DATUM_INTEGER && bounds[2].kind != LS_DATUM_NONE))
        return ls_render_fail(r, "a slice's step is an integer that is not 0");
    if (step > n + 1) step = n + 1;
    if (step < -n - 1) step = -n - 1;
    LS_TRY(bound(r, &bounds[0], n, step > 0 ? 0 : n - 1, &begin));
    LS_TRY(bound(r, &bounds[1], n, step > 0 ? n : -1, &end));
    if (step > 0 && begin < 0) begin = 0;
    if (step < 0 && begin > n - 1) begin = n - 1;
    void *room;
    LS_TRY(ls_render_alloc(r, x->n * sizeof(ls_datum), &room));
    ls_datum *items = room;
    size_t k = 0;
    for (int64_t i = begin; step > 0 ? i < end : i > end; i += step) items[k++] = x->items[i];
    *y_p = (ls_datum){.kind = LS_DATUM_LIST, .n = k, .items = items};
    return LS_OK;
}

ls_status ls_datum_slice(ls_rendering *r, const ls_datum *x, const ls_datum bounds[3],
                         ls_datum *y_p) {
    ls_datum list;
    if (x->kind != LS_DATUM_LIST && x->kind != LS_DATUM_TEXT)
        return ls_render_fail(r, "%s has no slices", ls_datum_kind_name(x));
    LS_TRY(ls_render_count(r, x->n));
    LS_TRY(ls_datum_items(r, x, &list));
    LS_TRY(slice_items(r, &list, bounds, &list));
    *y_p = list;
    if (x->kind == LS_DATUM_LIST) return LS_OK;
    void *room;
    LS_TRY(ls_render_alloc(r, x->n + 1, &room));
    size_t n = 0;
    for (size_t i = 0; i < list.n; n += list.items[i].n, i++)
        memcpy((char *)room + n, list.items[i].text, list.items[i].n);
    *y_p = ls_datum_text(room, n);
    return LS_OK;
}

/* ---- arithmetic ---- */

static ls_status join(ls_rendering *r, const ls_datum *a, const ls_datum *b, ls_datum *y_p) {
    size_t size = a->kind == LS_DATUM_TEXT ? 1 : sizeof(ls_datum);
    void *room;
    LS_TRY(ls_render_alloc(r, (a->n + b->n + 1) * size, &room));
    if (a->n) memcpy(room, a->items, a->n * size);
    if (b->n) memcpy((char *)room + a->n * size, b->items, b->n * size);
    *y_p = *a;
    y_p->n = a->n + b->n;
    y_p->items = room;
    return LS_OK;
}

static ls_status repeat(ls_rendering *r, const ls_datum *x, int64_t times, ls_datum *y_p) {
    size_t n = times > 0 ? (size_t)times : 0;
    void *room;
    if (x->n && n > LS_TEMPLATE_OUTPUT / x->n)
        return ls_render_fail(r, "a repeated text exceeds %d MB", LS_TEMPLATE_OUTPUT >> 20);
    LS_TRY(ls_render_alloc(r, n * x->n + 1, &room));
    LS_TRY(ls_render_count(r, x->n ? n : 0));
    for (size_t i = 0; x->n && i < n; i++) memcpy((char *)room + i * x->n, x->text, x->n);
    *y_p = ls_datum_text(room, n * x->n);
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
    case 'd': y_p->real = floor(a / b); break;
    default: y_p->real = a - b * floor(a / b); break;
    }
    return LS_OK;
}

static ls_status math_integers(ls_rendering *r, char op, int64_t a, int64_t b, ls_datum *y_p) {
    bool over = false;
    int64_t y = 0;
    if (op == '/') return math_reals(r, op, (double)a, (double)b, y_p);
    if (strchr("d%", op) && !b) return ls_render_fail(r, "division by zero");
    switch (op) {
    case '+': over = __builtin_add_overflow(a, b, &y); break;
    case '-': over = __builtin_sub_overflow(a, b, &y); break;
    case '*': over = __builtin_mul_overflow(a, b, &y); break;
    default: /* rounds down, so that the rest has the sign of b */
        over = a == INT64_MIN && b == -1;
        if (over) break;
        y = a % b;
        if (y && (y < 0) != (b < 0)) y += b;
        if (op == 'd') y = (a - y) / b;
        break;
    }
    if (over) return ls_render_fail(r, "an integer exceeds 64 bits");
    *y_p = ls_datum_integer(y);
    return LS_OK;
}

ls_status ls_datum_math(ls_rendering *r, const char *text, const ls_datum *a, const ls_datum *b,
                        ls_datum *y_p) {
    char op = strcmp(text, "//") == 0 ? 'd' : text[0];
    if (op == '~') {
        ls_datum x, y;
        LS_TRY(ls_datum_str(r, a, &x));
        LS_TRY(ls_datum_str(r, b, &y));
        return join(r, &x, &y, y_p);
    }
    if (ls_datum_is_number(a) && ls_datum_is_number(b)) {
        if (a->kind == LS_DATUM_REAL || b->kind == LS_DATUM_REAL)
            return math_reals(r, op, ls_datum_number(a), ls_datum_number(b), y_p);
        int64_t x = a->kind == LS_DATUM_BOOL ? a->truth : a->integer;
        return math_integers(r, op, x, b->kind == LS_DATUM_BOOL ? b->truth : b->integer, y_p);
    }
    if (op == '+' && a->kind == b->kind && (a->kind == LS_DATUM_TEXT || a->kind == LS_DATUM_LIST))
        return join(r, a, b, y_p);
    if (op == '*' && a->kind == LS_DATUM_TEXT && b->kind == LS_DATUM_INTEGER)
        return repeat(r, a, b->integer, y_p);
    const ls_datum *lost = a->kind == LS_DATUM_UNDEFINED ? a : b;
    if (lost->kind == LS_DATUM_UNDEFINED)
        return ls_render_fail(r, "\"%.*s\" is not defined", (int)lost->n, lost->text);
    return ls_render_fail(r, "\"%s\" is not possible with %s and %s", text, ls_datum_kind_name(a),
                          ls_datum_kind_name(b));
}
