/* filters.c - filters of any value and of texts; and which filters there are. */
#include <string.h>

#include "template/characters.h"
#include "template/methods.h"

typedef const ls_template_arguments arguments;

static ls_status trim(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    ls_datum text;
    LS_TRY(ls_datum_str(r, x, &text));
    return ls_text_strip(r, &text, a->given[0], LS_STRIP_LEFT | LS_STRIP_RIGHT, y_p);
}

static ls_status length(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    (void)a;
    size_t n;
    LS_TRY(ls_datum_length(r, x, &n));
    *y_p = ls_datum_integer((int64_t)n);
    return LS_OK;
}

static ls_status text_of(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    (void)a;
    return ls_datum_str(r, x, y_p);
}

static ls_status safe(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    (void)a;
    LS_TRY(ls_datum_str(r, x, y_p));
    y_p->safe = true;
    return LS_OK;
}

static ls_status escape(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    (void)a;
    ls_datum text;
    LS_TRY(ls_datum_str(r, x, &text));
    return ls_text_escape(r, &text, y_p);
}

static ls_status forceescape(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    (void)a;
    ls_datum text;
    LS_TRY(ls_datum_str(r, x, &text));
    text.safe = false;
    return ls_text_escape(r, &text, y_p);
}

static ls_status in_case(ls_rendering *r, const ls_datum *x, char which, ls_datum *y_p) {
    ls_datum text;
    LS_TRY(ls_datum_str(r, x, &text));
    return ls_text_case(r, &text, which, y_p);
}
static ls_status upper(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    (void)a;
    return in_case(r, x, 'u', y_p);
}
static ls_status lower(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    (void)a;
    return in_case(r, x, 'l', y_p);
}
static ls_status capitalize(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    (void)a;
    return in_case(r, x, 'c', y_p);
}

/* As Jinja, and unlike Python's method: a word begins behind white space, "-" and opening
 * brackets alone. */
static ls_status title(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    (void)a;
    ls_datum text, part, piece;
    ls_buf out = {0};
    LS_TRY(ls_datum_str(r, x, &text));
    ls_status s = ls_render_count(r, text.n / 16);
    bool starts = true;
    for (size_t i = 0, n; s == LS_OK && i < text.n; i += n) {
        const char *at = text.text + i;
        uint32_t point;
        n = ls_character(at, text.n - i, &point);
        char to = starts ? 'u' : 'l';
        starts = ls_is_space(point) || (point < 128 && strchr("-({[<", (int)point));
        part = ls_datum_text(at, n);
        /* Characters of one case are changed together. */
        while (to == 'l' && !starts && i + n < text.n) {
            size_t k = ls_character(at + n, text.n - i - n, &point);
            if (ls_is_space(point) || (point < 128 && strchr("-({[<", (int)point))) break;
            n += k;
        }
        part.n = n;
        s = ls_text_case(r, &part, to, &piece);
        if (s == LS_OK) ls_buf_append(&out, piece.text, piece.n);
    }
    LS_TRY(ls_datum_take(r, s, &out, y_p));
    y_p->safe = text.safe;
    return LS_OK;
}

static ls_status replace(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    ls_datum text, pair[2];
    int64_t most = -1;
    LS_TRY(ls_datum_str(r, x, &text));
    text.safe = false; /* str() of it is plain */
    LS_TRY(ls_datum_str(r, a->given[0], &pair[0]));
    LS_TRY(ls_datum_str(r, a->given[1], &pair[1]));
    if (a->given[2] && a->given[2]->kind != LS_DATUM_NONE)
        LS_TRY(ls_argument_integer(r, a, 2, -1, &most));
    return ls_text_replace(r, &text, pair, most, y_p);
}

static ls_status otherwise(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    (void)r;
    bool lacks =
        x->kind == LS_DATUM_UNDEFINED || (ls_argument_is_true(a, 1) && !ls_datum_is_true(x));
    *y_p = !lacks ? *x : a->given[0] ? *a->given[0] : ls_datum_text("", 0);
    return LS_OK;
}

static ls_status center(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    ls_datum text;
    int64_t width;
    LS_TRY(ls_argument_integer(r, a, 0, 80, &width));
    LS_TRY(ls_datum_str(r, x, &text));
    if (text.safe) return ls_render_fail(r, "center of a text marked as safe is not supported");
    return ls_text_pad(r, &text, width, '^', NULL, y_p);
}

/* text % values, or % a dict of names. */
static ls_status format(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    ls_datum text, *items, values = {.kind = LS_DATUM_TUPLE, .n = (size_t)a->n, .items = a->list};
    if (a->n && a->nkeywords) return ls_render_fail(r, "format takes values or names, not both");
    if (a->nkeywords) {
        LS_TRY(ls_datum_new_list(r, 2 * (size_t)a->nkeywords, &items, &values));
        values = (ls_datum){.kind = LS_DATUM_DICT, .items = items};
        for (int k = 0; k < a->nkeywords; k++) {
            ls_datum key = ls_datum_text(a->keywords[k].name, strlen(a->keywords[k].name));
            LS_TRY(ls_dict_put(r, &values, &key, &a->keywords[k].value));
        }
    }
    LS_TRY(ls_datum_str(r, x, &text));
    return ls_text_printf(r, &text, &values, y_p);
}

/* Lines with blanks, or a text, before them: all but the first one and empty ones. */
static ls_status indent(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    ls_datum by = ls_datum_text("", 0), lines, text;
    bool first = ls_argument_is_true(a, 1), blank = ls_argument_is_true(a, 2);
    if (a->given[0] && a->given[0]->kind == LS_DATUM_TEXT) {
        by = *a->given[0];
    } else {
        int64_t width;
        LS_TRY(ls_argument_integer(r, a, 0, 4, &width));
        LS_TRY(ls_text_pad(r, &by, width, '<', NULL, &by));
    }
    if (x->kind != LS_DATUM_TEXT || x->safe)
        return ls_render_fail(r, "indent takes text, not %s", ls_datum_kind_name(x));
    ls_datum line_end = ls_datum_text("\n", 1);
    LS_TRY(ls_datum_math(r, "+", x, &line_end, &text));
    LS_TRY(ls_text_lines(r, &text, false, &lines));
    ls_buf out = {0};
    ls_status s = LS_OK;
    if (first) ls_buf_append(&out, by.text, by.n);
    for (size_t i = 0; s == LS_OK && i < lines.n; i++) {
        if (i) ls_buf_append(&out, "\n", 1);
        if (i && (blank || lines.items[i].n)) ls_buf_append(&out, by.text, by.n);
        ls_buf_append(&out, lines.items[i].text, lines.items[i].n);
        s = ls_datum_fits(r, out.len);
    }
    return ls_datum_take(r, s, &out, y_p);
}

/* The first characters of a text that is too long, up to a blank, and "...". */
static ls_status truncate(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    int64_t most, leeway = 5;
    ls_datum end = ls_datum_text("...", 3), cut;
    LS_TRY(ls_argument_integer(r, a, 0, 255, &most));
    if (a->given[2]) LS_TRY(ls_argument_text(r, a, 2, &end));
    if (a->given[3] && a->given[3]->kind != LS_DATUM_NONE)
        LS_TRY(ls_argument_integer(r, a, 3, 5, &leeway));
    int64_t nend = (int64_t)ls_characters(end.text, end.n);
    if (x->kind != LS_DATUM_TEXT || x->safe)
        return ls_render_fail(r, "truncate takes text, not %s", ls_datum_kind_name(x));
    if (most < nend || leeway < 0 || most > LS_TEMPLATE_OUTPUT || leeway > LS_TEMPLATE_OUTPUT)
        return ls_render_fail(r, "truncate takes a length of at least that of its end");
    *y_p = *x;
    if ((int64_t)ls_characters(x->text, x->n) <= most + leeway) return LS_OK;
    cut = ls_datum_text(x->text, ls_characters_bytes(x->text, x->n, (size_t)(most - nend)));
    const char *blank = ls_argument_is_true(a, 1) ? NULL : memrchr(cut.text, ' ', cut.n);
    if (blank) cut.n = (size_t)(blank - cut.text);
    return ls_datum_math(r, "+", &cut, &end, y_p);
}

static ls_status wordcount(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    (void)a;
    ls_datum text;
    int64_t n = 0;
    bool before = false;
    LS_TRY(ls_datum_str(r, x, &text));
    for (size_t i = 0; i < text.n; i++) {
        char c = text.text[i];
        if (c & (char)0x80) return ls_render_fail(r, "wordcount takes ASCII text only");
        bool word =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
        n += word && !before;
        before = word;
    }
    *y_p = ls_datum_integer(n);
    return LS_OK;
}

static const ls_template_entry filters[] = {
    {"trim", trim, "| chars"},
    {"length", length, ""},
    {"count", length, ""},
    {"tojson", ls_filter_tojson, "| ensure_ascii indent separators sort_keys"},
    {"string", text_of, ""},
    {"safe", safe, ""},
    {"escape", escape, ""},
    {"e", escape, ""},
    {"forceescape", forceescape, ""},
    {"upper", upper, ""},
    {"lower", lower, ""},
    {"capitalize", capitalize, ""},
    {"title", title, ""},
    {"replace", replace, "old new | count"},
    {"default", otherwise, "| default_value boolean"},
    {"d", otherwise, "| default_value boolean"},
    {"center", center, "| width"},
    {"format", format, "*"},
    {"indent", indent, "| width first blank"},
    {"truncate", truncate, "| length killwords end leeway"},
    {"wordcount", wordcount, ""},
    {NULL, NULL, NULL}};

const ls_template_entry *ls_template_filter(const char *name) {
    const ls_template_entry *found = ls_template_entry_find(filters, name);
    if (!found) found = ls_template_entry_find(ls_list_filters, name);
    return found ? found : ls_template_entry_find(ls_number_filters, name);
}
