/* watched_test.c - a growing metrics.jsonl, beside arrays of what it says. */
#include "watch/watched.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "folder.h"
#include "test.h"
#include "watch/window.h"

enum { ALL = 1 << 30 };

static char path[300];
static double now = 1000; /* the clock of the reader, seconds */

static void file_add(const char *text, size_t n) {
    FILE *f = fopen(path, "a");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void file_print(const char *text) { file_add(text, strlen(text)); }

static double loss_of(int64_t step, int salt) {
    return 3 + sin((double)step / 100) + 0.001 * (double)((step * 7919 + salt * 31) % 97);
}

static size_t put_step(char *text, size_t n, int64_t step, int salt) {
    int got = snprintf(text, n,
                       "{\"step\": %lld, \"epoch\": 0, \"first\": 0, \"samples\": 4, \"view\": %d, "
                       "\"workers\": 2, \"loss\": %.9g, \"lr\": 0.001, \"seconds\": 3.6, "
                       "\"tokens_per_s\": 10}\n",
                       (long long)step, step < 700 ? 1 : 2, loss_of(step, salt));
    return (size_t)got;
}

static void file_steps(int64_t from, int64_t to, int salt) {
    ls_buf b = {0};
    char text[512];
    for (int64_t step = from; step <= to; step++)
        ls_buf_append(&b, text, put_step(text, sizeof text, step, salt));
    file_add(b.data, b.len);
    ls_buf_free(&b);
}

/* The offset behind the line of a step. */
static uint64_t end_of_step(int64_t step) {
    ls_buf b = {0};
    char want[64];
    assert_int_equal(ls_file_read(path, ALL, &b, NULL), LS_OK);
    snprintf(want, sizeof want, "{\"step\": %lld, \"epoch\"", (long long)step);
    char *at = strstr(b.data, want);
    assert_non_null(at);
    uint64_t end = (uint64_t)(strchr(at, '\n') + 1 - b.data);
    ls_buf_free(&b);
    return end;
}

static void read_all(ls_watched *w) {
    for (int i = 0; i < 1000 && ls_watched_read(w, now, ALL); i++) continue;
}

static char *text_of(const ls_watched *w, int columns) {
    ls_buf b = {0};
    ls_window_write(w, &(ls_window){LS_X_STEP, NAN, NAN, columns, 0, NULL}, &b);
    return b.data;
}

/* What a reader has that has seen the file grow, a new one must have, too. */
static void compare_with_new(const ls_watched *w) {
    ls_watched fresh;
    ls_watched_open(&fresh, folder);
    read_all(&fresh);
    assert_int_equal(fresh.nrows, w->nrows);
    for (int i = 0; i < 2; i++) {
        char *a = text_of(w, i ? 40 : 4000), *b = text_of(&fresh, i ? 40 : 4000);
        assert_string_equal(strchr(a, ','), strchr(b, ',')); /* behind the generation */
        free(a);
        free(b);
    }
    ls_watched_close(&fresh);
}

static int begin(void **state) {
    if (make_folder(state)) return -1;
    snprintf(path, sizeof path, "%s/metrics.jsonl", folder);
    now = 1000;
    return 0;
}

/* ---- */

static void test_extents(void **state) {
    enum { N = 9000, SPIKE = 3333 };
    ls_watched w;
    (void)state;
    file_steps(1, SPIKE, 0);
    file_print("{\"step\": 3334, \"epoch\": 0, \"loss\": 99.5, \"seconds\": 3.6}\n");
    file_steps(SPIKE + 2, N, 0);
    ls_watched_open(&w, folder);
    read_all(&w);
    assert_int_equal(w.nrows, N);
    const ls_watched_series *loss = ls_watched_find(&w, "loss");
    for (int from = 0; from < N; from += 16 * 37)
        for (int to = from + 16; to <= N; to += to + 16 * 53 < N ? 16 * 53 : N - to ? N - to : 1) {
            ls_extent x = ls_pyramid_extent(&loss->values, from, to);
            double low = INFINITY, high = -INFINITY;
            for (int i = from; i < to; i++) {
                double v = i == SPIKE ? 99.5 : loss_of(i + 1, 0);
                low = fmin(low, v);
                high = fmax(high, v);
            }
            assert_true(fabs(x.low - low) < 1e-6 && fabs(x.high - high) < 1e-5);
            assert_true(fabs(x.first - loss_of(from + 1, 0)) < 1e-6);
            assert_true(fabs(x.last - loss_of(to, 0)) < 1e-6 || to == SPIKE + 1);
        }
    /* However far one looks from: the spike is in the picture. */
    for (int columns = 1; columns < 4000; columns = columns * 3 + 1) {
        char *text = text_of(&w, columns);
        assert_non_null(strstr(text, "99.5"));
        free(text);
    }
    assert_true(fabs(ls_watched_last(&w, "loss") - loss_of(N, 0)) < 1e-6);
    assert_true(isnan(ls_watched_last(&w, "nothing")));
    assert_true(w.x[LS_X_HOURS] > 8.99 && w.x[LS_X_HOURS] < 9.01);
    assert_true(w.x[LS_X_UNITS] ==
                36.0 * (N - 1)); /* the spike's line has no rate, and no samples */
    ls_watched_close(&w);
}

/* Row of the spike of each of many series: low ones and high ones, all over the run. */
enum { NSPIKES = 20, SPIKED = 20000 };

static int64_t spike_row(int series) { return (7919 * (int64_t)series + 13) % SPIKED; }

static double spiked(int series, int64_t row) {
    double sign = series % 2 ? 1 : -1;
    return row == spike_row(series) ? sign * (70000.5 + series)
                                    : (double)((row * 31 + series * 7) % 997) / 64;
}

static void file_spikes(void) {
    ls_buf b = {0};
    for (int64_t row = 0; row < SPIKED; row++) {
        ls_buf_printf(&b, "{\"step\": %lld, \"loss\": 1", (long long)row + 1);
        for (int i = 0; i < NSPIKES; i++) ls_buf_printf(&b, ", \"s%d\": %.9g", i, spiked(i, row));
        ls_buf_printf(&b, "}\n");
    }
    file_add(b.data, b.len);
    ls_buf_free(&b);
}

/* A picture of any part has a series' spike exactly if it is in one of its stretches. */
static void check_spike(const ls_watched *w, int series, int64_t from, int64_t to, int columns) {
    ls_buf b = {0};
    char name[16], want[32];
    long long every = 0, begin = 0, count = 0;
    snprintf(name, sizeof name, "s%d", series);
    snprintf(want, sizeof want, "%.9g", spiked(series, spike_row(series)));
    ls_window_write(w, &(ls_window){LS_X_STEP, (double)from, (double)to, columns, 0, name}, &b);
    const char *stretch = strstr(b.data, "\"every\":");
    assert_non_null(stretch);
    assert_int_equal(
        sscanf(stretch, "\"every\":%lld,\"begin\":%lld,\"count\":%lld", &every, &begin, &count), 3);
    bool shown = strstr(b.data, want),
         inside = spike_row(series) >= begin && spike_row(series) < begin + count;
    assert_true(begin < from && begin + count >= to);
    if (shown != inside)
        fail_msg("%s from %lld to %lld: %s", name, (long long)from, (long long)to, b.data);
    ls_buf_free(&b);
}

static void test_many_series(void **state) {
    ls_watched w;
    (void)state;
    file_spikes();
    ls_watched_open(&w, folder);
    read_all(&w);
    assert_int_equal(w.nrows, SPIKED);
    for (int i = 0; i < NSPIKES; i++) {
        int64_t row = spike_row(i) + 1;
        for (int64_t length = 10; length <= SPIKED; length *= 5)
            for (int k = 0; k < 4; k++) {
                int64_t from = row - length * k / 3, to = from + length;
                if (from < 1) from = 1;
                if (to > SPIKED) to = SPIKED;
                if (from < to) check_spike(&w, i, from, to, k % 2 ? 1000 : 7);
            }
    }
    ls_watched_close(&w);
}

static void test_single_rows(void **state) {
    enum { N = 5000 };
    ls_watched w;
    double values[3 * 2000];
    (void)state;
    file_steps(1, N, 0);
    ls_watched_open(&w, folder);
    read_all(&w);
    int loss = 0;
    while (strcmp(w.series[loss]->name, "loss") != 0) loss++;
    const int series[] = {LS_X_STEP, loss, LS_X_UNITS};
    const int64_t froms[] = {0, 1, 1023, 1024, 2000, N - 2, N};
    for (size_t k = 0; k < sizeof froms / sizeof *froms; k++) {
        int64_t from = froms[k], to = from + 2000 < N ? from + 2000 : N, n = to - from;
        assert_int_equal(ls_watched_rows(&w, series, 3, from, to, values), n);
        for (int64_t i = 0; i < n; i++) {
            assert_true(values[i] == (double)(from + i + 1));
            char text[64];
            snprintf(text, sizeof text, "%.9g", loss_of(from + i + 1, 0));
            assert_true(values[n + i] == strtod(text, NULL));
            assert_true(values[2 * n + i] == 36.0 * (double)(from + i + 1));
        }
    }
    ls_watched_close(&w);
}

static void test_half_lines(void **state) {
    ls_watched w;
    char text[512];
    (void)state;
    ls_watched_open(&w, folder);
    assert_false(ls_watched_read(&w, now, ALL)); /* there is no file yet */
    file_steps(1, 3, 0);
    read_all(&w);
    assert_int_equal(w.nrows, 3);
    size_t n = put_step(text, sizeof text, 4, 0);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(w.nrows, 3);
        file_add(text + i, 1);
        read_all(&w);
    }
    assert_int_equal(w.nrows, 4);
    /* A line that is damaged, or foreign, is passed over. */
    file_print("{\"step\": 5, \"loss\": 1.\nhello\n{\"step\": null, \"loss\": 1}\n");
    file_steps(5, 6, 0);
    read_all(&w);
    assert_int_equal(w.nrows, 6);
    compare_with_new(&w);
    assert_int_equal(w.generation, 0);
    ls_watched_close(&w);
}

/* Lines that a resumed run takes back. */
static void test_cut(void **state) {
    static const int64_t cuts[] = {4999, 4096, 3000, 1025, 1024, 1023, 500, 1};
    ls_watched w;
    (void)state;
    ls_watched_open(&w, folder);
    file_print("{\"step\": 0, \"started\": \"2026-01-01T00:00:00Z\", \"workers\": 2}\n");
    file_steps(1, 5000, 0);
    read_all(&w);
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        assert_int_equal(truncate(path, (off_t)end_of_step(cuts[i])), 0);
        if (i % 2) read_all(&w); /* it may see the shorter file, or not */
        if (i % 2) assert_int_equal(w.nrows, cuts[i]);
        file_print("{\"step\": 0, \"started\": \"2026-01-02T00:00:00Z\", \"workers\": 3}\n");
        file_steps(cuts[i] + 1, 5000 + (int64_t)i, (int)i + 1);
        file_print("{\"step\": 5000, \"val_loss\": 2.5, \"val_samples\": 9}\n");
        uint64_t generation = w.generation;
        read_all(&w);
        assert_int_equal(w.nrows, 5000 + i);
        assert_true(w.generation > generation || i % 2);
        assert_int_equal(w.npoints, 1);
        compare_with_new(&w);
    }
    ls_watched_close(&w);
}

/* Another file takes its place: longer, shorter, or gone for a while. */
static void test_replaced(void **state) {
    char other[320];
    ls_watched w;
    (void)state;
    snprintf(other, sizeof other, "%s.old", path);
    ls_watched_open(&w, folder);
    for (int i = 0; i < 4; i++) {
        file_steps(1, i % 2 ? 100 : 3000, i);
        if (i == 2) assert_int_equal(w.nrows, 100); /* not looked at since */
        read_all(&w);
        assert_int_equal(w.nrows, i % 2 ? 100 : 3000);
        compare_with_new(&w);
        assert_int_equal(rename(path, other), 0);
        if (i == 0) read_all(&w);
        if (i == 0) assert_int_equal(w.nrows, 3000); /* what was seen stays */
    }
    ls_watched_close(&w);
}

static void test_zeros(void **state) {
    char zeros[300] = {0};
    ls_watched w;
    (void)state;
    ls_watched_open(&w, folder);
    file_steps(1, 2, 0);
    uint64_t end = end_of_step(2);
    file_add(zeros, sizeof zeros);
    file_steps(5, 6, 0);
    read_all(&w);
    assert_int_equal(w.nrows, 2); /* the bytes may still come */
    now += 1;
    read_all(&w);
    assert_int_equal(w.nrows, 2);
    /* They come. */
    char text[1024];
    size_t n = put_step(text, sizeof text, 3, 0);
    FILE *f = fopen(path, "r+");
    assert_non_null(f);
    assert_int_equal(fseek(f, (long)end, SEEK_SET), 0);
    memset(text + n - 1, ' ', sizeof zeros - n);
    text[sizeof zeros - 1] = '\n';
    assert_int_equal(fwrite(text, 1, sizeof zeros, f), sizeof zeros);
    fclose(f);
    read_all(&w);
    assert_int_equal(w.nrows, 5);
    compare_with_new(&w);
    /* They do not come, and lines follow: these are not lost. */
    file_add(zeros, sizeof zeros);
    file_print("\n");
    file_steps(7, 9, 0);
    read_all(&w);
    assert_int_equal(w.nrows, 5);
    now += 10;
    read_all(&w);
    assert_int_equal(w.nrows, 8);
    ls_watched_close(&w);
}

static void test_long_lines(void **state) {
    ls_watched w;
    (void)state;
    ls_watched_open(&w, folder);
    file_steps(1, 2, 0);
    ls_buf b = {0};
    for (int i = 0; i < 700000; i++) ls_buf_append(&b, "x", 1);
    file_add(b.data, b.len);
    read_all(&w);
    file_add(b.data, b.len);
    file_print("\n");
    file_steps(3, 4, 0);
    read_all(&w);
    assert_int_equal(w.nrows, 4);
    ls_buf_free(&b);
    ls_watched_close(&w);
}

static void test_marks(void **state) {
    static const char *const kinds[] = {"started", "view", "changed", "gap", "diverged"};
    ls_watched w;
    (void)state;
    ls_watched_open(&w, folder);
    file_print("{\"step\": 0, \"started\": \"2026-01-01T00:00:00Z\", \"workers\": 2}\n");
    file_steps(1, 900, 0);
    file_print("{\"step\": 901, \"changed\": {\"optim.lr\": [\"1\", \"2\"]}}\n"
               "{\"step\": 950, \"gap\": [901, 950]}\n{\"step\": 951, \"diverged\": true}\n");
    read_all(&w);
    assert_int_equal(w.nmarks, 5);
    for (int i = 0; i < 5; i++) assert_string_equal(w.marks[i].kind, kinds[i]);
    assert_true(w.marks[1].x[LS_X_STEP] == 699);
    assert_int_equal(w.marks[1].workers, 2);
    ls_watched_close(&w);
}

static uint64_t random_next(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (*state * 0x2545f4914f6cdd1dULL) >> 16;
}

/* Anything may happen between two looks. */
static void test_random(void **state) {
    (void)state;
    for (int k = 0; k < ncases(6, 200); k++) {
        uint64_t r = (uint64_t)k + 1;
        int64_t last = 0;
        ls_watched w;
        unlink(path);
        ls_watched_open(&w, folder);
        for (int i = 0; i < 30; i++) {
            int what = (int)(random_next(&r) % 8);
            if (what == 0 && last > 1) {
                last = 1 + (int64_t)(random_next(&r) % (uint64_t)last);
                assert_int_equal(truncate(path, (off_t)end_of_step(last)), 0);
            } else if (what == 1) {
                unlink(path);
                last = 0;
            } else {
                int64_t n = 1 + (int64_t)(random_next(&r) % 700);
                file_steps(last + 1, last + n, i);
                last += n;
            }
            if (random_next(&r) % 2) continue;
            read_all(&w);
            if (what != 1) compare_with_new(&w);
        }
        ls_watched_close(&w);
    }
}

#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, begin, remove_folder)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_extents),    IN_FOLDER(test_many_series), IN_FOLDER(test_single_rows),
        IN_FOLDER(test_half_lines), IN_FOLDER(test_cut),         IN_FOLDER(test_replaced),
        IN_FOLDER(test_zeros),      IN_FOLDER(test_long_lines),  IN_FOLDER(test_marks),
        IN_FOLDER(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
