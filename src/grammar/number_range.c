/* number_range.c - see number_range.h. */
#include "grammar/number_range.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Texts of n digits from low to high. */
static void put_digits(const char *low, const char *high, size_t n, ls_buf *out) {
    static const char nines[] = "999999999999999999", zeros[] = "000000000000000000";
    if (n == 0) return;
    if (memcmp(low, zeros, n) == 0 && memcmp(high, nines, n) == 0) {
        ls_buf_printf(out, "[0-9]{%zu}", n);
        return;
    }
    if (*low == *high) {
        ls_buf_printf(out, "%c", *low);
        put_digits(low + 1, high + 1, n - 1, out);
        return;
    }
    ls_buf_printf(out, "(?:%c", *low);
    put_digits(low + 1, nines, n - 1, out);
    if (*low + 1 < *high) ls_buf_printf(out, "|[%c-%c][0-9]{%zu}", *low + 1, *high - 1, n - 1);
    ls_buf_printf(out, "|%c", *high);
    put_digits(zeros, high + 1, n - 1, out);
    ls_buf_printf(out, ")");
}

/* Whole numbers from low, not negative, to high. */
static void put_whole(int64_t low, int64_t high, ls_buf *out) {
    int64_t first = 0, last = 9;
    const char *bar = "";
    ls_buf_printf(out, "(?:");
    for (size_t n = 1; n <= 18; n++) {
        char a[24], b[24];
        if (n > 1) first = last + 1, last = last * 10 + 9;
        if (high < first || low > last) continue;
        snprintf(a, sizeof a, "%lld", (long long)(low > first ? low : first));
        snprintf(b, sizeof b, "%lld", (long long)(high < last ? high : last));
        ls_buf_printf(out, "%s", bar);
        put_digits(a, b, n, out);
        bar = "|";
    }
    ls_buf_printf(out, ")");
}

/* Doubles tell numbers of 15 digits apart. */
static int count_fractions(const ls_number_range *r) {
    enum { DIGITS = 15, MOST = 17 };
    int64_t low = r->above ? llabs(r->low) : 0, high = r->below ? llabs(r->high) : 0;
    int n = DIGITS;
    if (!r->above && !r->below) return MOST;
    for (int64_t x = low > high ? low : high; x > 0; x /= 10) n--;
    return n > 0 ? n : 0;
}

/* Of numbers that are not negative, with at most nfractions digits behind the point. */
static bool put_positive(const ls_number_range *r, bool fractions, int nfractions, ls_buf *out) {
    int64_t low = r->low + r->above, high = r->high - (fractions || r->below);
    const char *bar = "";
    if (r->low > r->high) return false;
    ls_buf_printf(out, "(?:");
    if (low <= high) {
        put_whole(low, high, out);
        if (nfractions) ls_buf_printf(out, "(?:\\.[0-9]{1,%d})?", nfractions);
        bar = "|";
    }
    if (nfractions && r->above && r->low < r->high) {
        ls_buf_printf(out, "%s%lld\\.[0-9]{0,%d}[1-9]", bar, (long long)r->low, nfractions - 1);
        bar = "|";
    }
    if (fractions && !r->below && (!r->above || r->low < r->high)) {
        ls_buf_printf(out, "%s%lld(?:\\.0{1,17})?", bar, (long long)r->high);
        bar = "|";
    }
    ls_buf_printf(out, ")");
    return *bar;
}

bool ls_number_range_write(const ls_number_range *r, bool fractions, ls_buf *out) {
    ls_buf positive = {0}, negative = {0};
    ls_number_range over = *r, under = {-r->high, -r->low, r->below, r->above};
    int nfractions = fractions ? count_fractions(r) : 0;
    if (over.low < 0) over.low = 0, over.above = false;
    if (under.low < 0) under.low = 0, under.above = true; /* -0 is 0 */
    bool above = put_positive(&over, fractions, nfractions, &positive);
    bool below = put_positive(&under, fractions, nfractions, &negative);
    ls_buf_printf(out, "(?:");
    if (above) ls_buf_append(out, positive.data, positive.len);
    if (below) ls_buf_printf(out, "%s-%s", above ? "|" : "", negative.data);
    ls_buf_printf(out, ")");
    ls_buf_free(&positive);
    ls_buf_free(&negative);
    return above || below;
}
