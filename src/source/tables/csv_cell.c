/* csv_cell.c - see csv_cell.h. */
#include "source/tables/csv_cell.h"

#include <math.h>
#include <string.h>

#include "source/number.h"

/* What spreadsheets, pandas, R, SQL and the UCI repository write. */
static const char *const marks[] = {
    "NA",   "N/A",  "n/a",  "#N/A", "#N/A N/A", "#NA",  "<NA>",    "NaN",      "nan",
    "-nan", "-NaN", "NULL", "null", "Null",     "None", "1.#IND",  "1.#QNAN",  "na",
    "NAN",  "none", "\\N",  "?",    "-",        ".",    "-1.#IND", "-1.#QNAN", "#VALUE!"};

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

bool ls_csv_is_in(const char *na, const char *text, size_t n) {
    double x = 0, y = 0;
    bool number = na && ls_number_parse(text, n, &x);
    for (size_t m = 0; na && *na; na += m, na += *na == '\n') {
        m = strcspn(na, "\n");
        if (m == n && memcmp(na, text, n) == 0) return true;
        if (number && ls_number_parse(na, m, &y) && !(x < y) && !(x > y)) return true;
    }
    return false;
}

bool ls_csv_is_missing(const ls_csv_cell *cell, const ls_csv_form *form) {
    const char *text = cell->text;
    size_t n = cell->nbytes;
    while (n && is_blank(*text)) text++, n--;
    while (n && is_blank(text[n - 1])) n--;
    if (n == 0 || ls_csv_is_in(form->na, text, n)) return true;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (marks[i][0] == text[0] && strlen(marks[i]) == n && memcmp(marks[i], text, n) == 0)
            return true;
    return false;
}

/* ---- numbers with signs ---- */

/* Bytes of a sign that stands before or behind an amount, at the beginning of `text`; 0: none. */
static size_t sign_at(const char *text, size_t n) {
    static const char *const signs[] = {"$",   "%",   "\xe2\x82\xac", "\xc2\xa3", "\xc2\xa5",
                                        "EUR", "USD", "GBP",          "CHF"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        size_t m = strlen(signs[i]);
        if (m <= n && memcmp(text, signs[i], m) == 0) return m;
    }
    return 0;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool has_digit(const ls_csv_cell *cell) {
    for (size_t i = 0; i < cell->nbytes; i++)
        if (is_digit(cell->text[i])) return true;
    return false;
}

/* Bytes of a comma, apostrophe or blank, also one that does not break, in front of three digits; 0:
 * there is none. */
static size_t thousands_at(const char *text, size_t n) {
    static const char *const between[] = {",", "'", " ", "\xc2\xa0", "\xe2\x80\xaf"};
    for (size_t i = 0; i < sizeof between / sizeof *between; i++) {
        size_t m = strlen(between[i]);
        if (m + 3 <= n && memcmp(text, between[i], m) == 0)
            return is_digit(text[m]) && is_digit(text[m + 1]) && is_digit(text[m + 2]) ? m : 0;
    }
    return 0;
}

bool ls_csv_is_decorated(const ls_csv_cell *cell) {
    char plain[64];
    const char *text = cell->text;
    size_t n = cell->nbytes, length = 0;
    bool decorated = false;
    double number = 0;
    if (n > sizeof plain || !has_digit(cell)) return false;
    for (size_t i = 0; i < n;) {
        size_t sign = sign_at(text + i, n - i);
        if (!sign && i && is_digit(text[i - 1])) sign = thousands_at(text + i, n - i);
        decorated = decorated || sign;
        if (!sign && !is_blank(text[i])) plain[length++] = text[i];
        i += sign ? sign : 1;
    }
    return decorated && ls_number_parse(plain, length, &number);
}

bool ls_csv_is_date(const ls_csv_cell *cell) {
    static const char shape[] = "0000-00-00";
    enum { LENGTH = sizeof shape - 1 };
    if (cell->nbytes < LENGTH) return false;
    for (size_t i = 0; i < LENGTH; i++)
        if (shape[i] == '-' ? cell->text[i] != '-' : !is_digit(cell->text[i])) return false;
    return cell->nbytes == LENGTH || cell->text[LENGTH] == 'T' || cell->text[LENGTH] == ' ';
}

/* ---- lists ---- */

static size_t skip_blanks(const ls_csv_cell *cell, size_t at) {
    while (at < cell->nbytes && is_blank(cell->text[at])) at++;
    return at;
}

/* Behind the digits, signs and letters of one number. */
static size_t skip_word(const ls_csv_cell *cell, size_t at) {
    while (at < cell->nbytes && !is_blank(cell->text[at]) && !strchr(",[]", cell->text[at])) at++;
    return at;
}

static bool fail_list(ls_cell_kind *kind_p) {
    *kind_p = LS_CELL_BROKEN;
    return false;
}

bool ls_csv_next_in_list(const ls_csv_cell *cell, size_t *at, double *number_p,
                         ls_cell_kind *kind_p) {
    bool first = *at == 0;
    size_t i = skip_blanks(cell, first ? 1 : *at);
    if (!first && i < cell->nbytes && cell->text[i] == ',') {
        i = skip_blanks(cell, i + 1);
        if (i == cell->nbytes || cell->text[i] == ']') return fail_list(kind_p);
    }
    if (i < cell->nbytes && cell->text[i] == ']')
        return skip_blanks(cell, i + 1) == cell->nbytes ? false : fail_list(kind_p);
    size_t end = skip_word(cell, i);
    if (!ls_number_parse(cell->text + i, end - i, number_p) || !ls_number_is_f32(*number_p))
        return fail_list(kind_p);
    bool spelled_whole = true;
    for (size_t k = i; k < end; k++) spelled_whole = spelled_whole && !strchr(".eE", cell->text[k]);
    bool whole = spelled_whole && ls_number_is_i32(*number_p) && *number_p > INT32_MIN;
    if (!whole) *kind_p = LS_CELL_REALS;
    *at = end;
    return true;
}

/* Does the text have what lists of numbers have, and nothing else? */
static bool looks_like_list(const ls_csv_cell *cell) {
    bool digits = false;
    for (size_t i = 0; i < cell->nbytes; i++) {
        if (!cell->text[i] || !strchr("[]0123456789+-.eE, \t\r\n", cell->text[i])) return false;
        digits = digits || (cell->text[i] >= '0' && cell->text[i] <= '9');
    }
    size_t n = cell->nbytes;
    while (n && is_blank(cell->text[n - 1])) n--;
    return digits && cell->text[n - 1] == ']';
}

static ls_cell_value list_value(const ls_csv_cell *cell) {
    ls_cell_value v = {.kind = LS_CELL_INTEGERS};
    double number = 0;
    size_t at = 0;
    while (ls_csv_next_in_list(cell, &at, &number, &v.kind)) v.length++;
    if (v.kind == LS_CELL_BROKEN && !looks_like_list(cell)) v.kind = LS_CELL_TEXT;
    return v;
}

/* ---- all ---- */

/* A number whose decimal sign is a comma; with a point it is none. */
static bool parse_comma(const ls_csv_cell *cell, double *number_p) {
    char text[64];
    if (cell->nbytes >= sizeof text || memchr(cell->text, '.', cell->nbytes)) return false;
    memcpy(text, cell->text, cell->nbytes);
    char *comma = memchr(text, ',', cell->nbytes);
    if (comma) *comma = '.';
    return ls_number_parse(text, cell->nbytes, number_p);
}

/* Is it a number, with the decimal sign of the form? */
static bool parse_number(const ls_csv_cell *cell, const ls_csv_form *form, double *number_p) {
    return form->comma ? parse_comma(cell, number_p)
                       : ls_number_parse(cell->text, cell->nbytes, number_p);
}

ls_cell_value ls_csv_value(const ls_csv_cell *cell, const ls_csv_form *form) {
    ls_cell_value v = {.kind = LS_CELL_NUMBER};
    double number = 0;
    bool is_number = parse_number(cell, form, &v.number);
    if (is_number && !(form->na && ls_csv_is_missing(cell, form))) return v;
    if (ls_csv_is_missing(cell, form))
        v.kind = LS_CELL_MISSING;
    else if (cell->text[0] == '[')
        v = list_value(cell);
    else if (!form->comma && *form->separator != ',' && memchr(cell->text, ',', cell->nbytes) &&
             parse_comma(cell, &number))
        v.kind = LS_CELL_COMMA;
    else
        v.kind = LS_CELL_TEXT;
    return v;
}
