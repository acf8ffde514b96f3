/* number_range.c - see number_range.h.
 *
 * Digits are written from the first to the last. As long as they are those of a bound, the next
 * one is limited by it; behind the first that differs, all digits are free.
 */
#include "grammar/number_range.h"

#include <string.h>

enum {
    DOUBLE_DIGITS = 15, /* doubles tell numbers of so many digits apart */
    END = LS_WHOLE_DIGITS + LS_FRACTION_DIGITS
};

/* Numbers that are not negative. */
typedef struct range_writer {
    char low[END], high[END];
    bool above, below; /* not `low` itself, not `high` itself */
    bool bounded;      /* by `high` */
    int whole, places;
} range_writer;

static bool has_digits(const char *digits, int from) {
    for (int i = from; i < END; i++)
        if (digits[i] != '0') return true;
    return false;
}

/* Whole digits; 0: it is below 1. */
static int count_whole(const char *digits) {
    int n = LS_WHOLE_DIGITS;
    while (n > 0 && digits[LS_WHOLE_DIGITS - n] == '0') n--;
    return n;
}

/* May the number end before place `at`? low, high: its digits are so far those of the bound. */
static bool may_end(const range_writer *w, int at, bool low, bool high) {
    if (at < LS_WHOLE_DIGITS) return false;
    if (low && (w->above || has_digits(w->low, at))) return false;
    return !high || !w->below || has_digits(w->high, at);
}

static void put_free(const range_writer *w, int at, ls_buf *out) {
    int last = LS_WHOLE_DIGITS + w->places;
    if (at > LS_WHOLE_DIGITS) {
        ls_buf_printf(out, "[0-9]{0,%d}", last - at);
        return;
    }
    if (at < LS_WHOLE_DIGITS) ls_buf_printf(out, "[0-9]{%d}", LS_WHOLE_DIGITS - at);
    if (w->places) ls_buf_printf(out, "(?:\\.[0-9]{1,%d})?", w->places);
}

static bool put_from(const range_writer *, int at, bool low, bool high, ls_buf *out);

/* One of the digits a to b at the place, and what follows. */
static void put_branch(const range_writer *w, int at, const char digits[2], const bool bound[2],
                       ls_buf *out) {
    ls_buf rest = {0};
    if (digits[0] <= digits[1] && put_from(w, at + 1, bound[0], bound[1], &rest)) {
        ls_buf_printf(out, "%s[%c-%c]", out->len ? "|" : "", digits[0], digits[1]);
        ls_buf_append(out, rest.data, rest.len);
    }
    ls_buf_free(&rest);
}

/* Further digits from place `at` on, the first of them at least `least`. */
static bool put_digits(const range_writer *w, int at, bool low, bool high, char least,
                       ls_buf *out) {
    char a = low ? w->low[at] : least, b = high ? w->high[at] : '9';
    ls_buf all = {0};
    if (low && high && a == b) {
        put_branch(w, at, (char[]){a, b}, (bool[]){true, true}, &all);
    } else {
        if (low) put_branch(w, at, (char[]){a, a}, (bool[]){true, false}, &all);
        put_branch(w, at, (char[]){(char)(a + low), (char)(b - high)}, (bool[]){false, false},
                   &all);
        if (high) put_branch(w, at, (char[]){b, b}, (bool[]){false, true}, &all);
    }
    bool any = all.len > 0;
    if (any) ls_buf_printf(out, "%s(?:%s)", at == LS_WHOLE_DIGITS ? "\\." : "", all.data);
    ls_buf_free(&all);
    return any;
}

static bool put_from(const range_writer *w, int at, bool low, bool high, ls_buf *out) {
    ls_buf more = {0};
    bool ends = may_end(w, at, low, high), any = false;
    if (!low && !high) {
        put_free(w, at, out);
        return true;
    }
    if (at < LS_WHOLE_DIGITS + w->places) any = put_digits(w, at, low, high, '0', &more);
    if (any) ls_buf_printf(out, "(?:%s)%s", more.data, ends ? "?" : "");
    ls_buf_free(&more);
    return any || ends;
}

static bool put_positive(const range_writer *w, ls_buf *out) {
    int least = count_whole(w->low), most = count_whole(w->high), any = 0;
    if (least == 0) least = 1;
    if (most == 0) most = 1;
    for (int n = least; n <= most && n <= w->whole; n++) {
        bool low = n == least && (w->above || has_digits(w->low, 0));
        bool high = n == most && w->bounded;
        ls_buf one = {0};
        if (!low && !high) { /* all numbers of so many digits, and of more */
            int last = n == 1 ? 1 : most - w->bounded < w->whole ? most - w->bounded : w->whole;
            ls_buf_printf(&one, "[%d-9][0-9]{%d,%d}", n > 1, n - 1, last - 1);
            put_free(w, LS_WHOLE_DIGITS, &one);
            n = last;
        } else {
            put_digits(w, LS_WHOLE_DIGITS - n, low, high, n > 1 ? '1' : '0', &one);
        }
        if (one.len) ls_buf_printf(out, "%s%s", any++ ? "|" : "", one.data);
        ls_buf_free(&one);
    }
    return any;
}

/* The places in which numbers may differ from an excluded bound. */
static int count_places(const ls_number_range *r) {
    int places = r->places;
    const ls_number_bound *bounds[] = {&r->low, &r->high};
    for (int i = 0; i < 2; i++) {
        int most = DOUBLE_DIGITS - count_whole(bounds[i]->at.digits);
        if (bounds[i]->given && bounds[i]->exclusive && most < places) places = most;
    }
    return places > 0 ? places : 0;
}

static bool is_zero(const ls_decimal *d) { return !d->cut && !has_digits(d->digits, 0); }

/* The part of the range on one side of 0: low and high are the bounds' distances from 0. */
static bool put_side(const ls_number_range *r, bool negative, ls_buf *out) {
    const ls_number_bound *near = negative ? &r->high : &r->low;
    const ls_number_bound *far = negative ? &r->low : &r->high;
    range_writer w = {.whole = r->whole, .places = count_places(r)};
    memset(w.low, '0', END);
    memset(w.high, '9', END);
    w.above = negative; /* -0 is 0 */
    if (near->given && near->at.negative == negative && !is_zero(&near->at)) {
        ls_decimal d = near->at;
        ls_decimal_cut(&d, w.places);
        memcpy(w.low, d.digits, END);
        if (d.large) return false;
        w.above = near->exclusive || d.cut;
    } else if (near->given && !negative && is_zero(&near->at)) {
        w.above = near->exclusive;
    }
    if (far->given && far->at.negative != negative) return false;
    w.bounded = far->given && !far->at.large;
    if (w.bounded) {
        ls_decimal d = far->at;
        ls_decimal_cut(&d, w.places);
        memcpy(w.high, d.digits, END);
        w.below = far->exclusive && !d.cut;
    }
    return memcmp(w.low, w.high, END) <= 0 && put_positive(&w, out);
}

bool ls_number_range_write(const ls_number_range *r, ls_buf *out) {
    ls_buf sides[2] = {{0}, {0}};
    bool positive = put_side(r, false, &sides[0]), negative = put_side(r, true, &sides[1]);
    if (positive) ls_buf_printf(out, "(?:%s)", sides[0].data);
    if (negative) ls_buf_printf(out, "%s-(?:%s)", positive ? "|" : "", sides[1].data);
    ls_buf_free(&sides[0]);
    ls_buf_free(&sides[1]);
    return positive || negative;
}
