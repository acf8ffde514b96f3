/* events_test.c - the frames and messages of an event file, read back by a plain parser. */
#include "report/events.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/file.h"
#include "folder.h"
#include "test.h"

/* CRC-32C bit by bit. */
static uint32_t plain_crc(const uint8_t *p, size_t n) {
    uint32_t c = 0xffffffffu;
    for (size_t i = 0; i < n; i++) {
        c ^= p[i];
        for (int bit = 0; bit < 8; bit++) c = c & 1 ? (c >> 1) ^ 0x82f63b78u : c >> 1;
    }
    return ~c;
}

static uint32_t plain_mask(uint32_t c) { return ((c >> 15) | (c << 17)) + 0xa282ead8u; }

static void test_crc(void **state) {
    (void)state;
    assert_int_equal(ls_crc32c("123456789", 9), 0xE3069283u); /* the standard check value */
    assert_int_equal(ls_crc32c("", 0), 0);
    uint8_t zeros[32] = {0};
    assert_int_equal(ls_crc32c(zeros, 32), 0x8A9136AAu); /* RFC 3720, appendix B.4 */
}

static uint64_t varint(const uint8_t **p) {
    uint64_t v = 0;
    for (int shift = 0;; shift += 7) {
        uint8_t byte = *(*p)++;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return v;
    }
}

/* The one file of the folder. */
static ls_mapped open_only(void) {
    char path[512] = "";
    DIR *d = opendir(folder);
    for (struct dirent *f; (f = readdir(d));)
        if (strncmp(f->d_name, "events.out.tfevents.", 20) == 0)
            snprintf(path, sizeof path, "%s/%s", folder, f->d_name);
    closedir(d);
    ls_mapped m;
    ls_error e;
    assert_ls_ok(ls_file_map(path, &m, &e), e);
    return m;
}

/* Checks the frame at *p and returns its data. */
static const uint8_t *frame(const uint8_t **p, uint64_t *length_p) {
    uint32_t crc = 0;
    const uint8_t *at = *p;
    memcpy(length_p, at, 8);
    memcpy(&crc, at + 8, 4);
    assert_int_equal(crc, plain_mask(plain_crc(at, 8)));
    memcpy(&crc, at + 12 + *length_p, 4);
    assert_int_equal(crc, plain_mask(plain_crc(at + 12, *length_p)));
    *p = at + 16 + *length_p;
    return at + 12;
}

static void check_scalar(const uint8_t *p, uint64_t step, const char *tag, float want) {
    assert_int_equal(*p, 1 << 3 | 1); /* wall_time */
    p += 9;
    assert_int_equal(*p++, 2 << 3 | 0);
    assert_int_equal(varint(&p), step);
    assert_int_equal(*p++, 5 << 3 | 2); /* summary */
    varint(&p);
    assert_int_equal(*p++, 1 << 3 | 2); /* value */
    varint(&p);
    assert_int_equal(*p++, 1 << 3 | 2);
    uint64_t n = varint(&p);
    assert_int_equal(n, strlen(tag));
    assert_memory_equal(p, tag, n);
    p += n;
    assert_int_equal(*p++, 2 << 3 | 5);
    assert_memory_equal(p, &want, 4);
}

static void test_file(void **state) {
    (void)state;
    ls_error e = {0};
    ls_events *ev = NULL;
    assert_ls_ok(ls_events_create(folder, &ev, &e), e);
    assert_ls_ok(ls_events_scalar(ev, 1, "train/loss", 2.5f, &e), e);
    assert_ls_ok(ls_events_scalar(ev, 300000, "val/bits_per_byte", -1e-3f, &e), e);
    assert_ls_ok(ls_events_flush(ev, &e), e);
    assert_ls_ok(ls_events_close(ev, &e), e);
    ls_mapped m = open_only();
    const uint8_t *p = m.data;
    uint64_t length = 0;
    const uint8_t *data = frame(&p, &length);
    assert_memory_equal(data + 9,
                        "\x1a\x0d"
                        "brain.Event:2",
                        15);
    check_scalar(frame(&p, &length), 1, "train/loss", 2.5f);
    check_scalar(frame(&p, &length), 300000, "val/bits_per_byte", -1e-3f);
    assert_ptr_equal(p, m.data + m.nbytes);
    ls_file_unmap(&m);
}

static void test_failures(void **state) {
    (void)state;
    ls_error e;
    ls_events *ev = NULL;
    assert_ls_fails(ls_events_create("/nowhere/at/all", &ev, &e), LS_EIO, "/nowhere/at/all", e);
    assert_null(ev);
    assert_int_equal(ls_events_close(NULL, &e), LS_OK);
    /* two writers in one folder and one second: two files */
    ls_events *a = NULL, *b = NULL;
    assert_ls_ok(ls_events_create(folder, &a, &e), e);
    assert_ls_ok(ls_events_create(folder, &b, &e), e);
    assert_ls_ok(ls_events_close(a, &e), e);
    assert_ls_ok(ls_events_close(b, &e), e);
}

/* On a full disk, no attempt leaves an empty file. */
static void test_full(void **state) {
    (void)state;
    ls_error e;
    ls_events *ev = NULL;
    struct rlimit before;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){0, before.rlim_max}), 0);
    ls_status first = ls_events_create(folder, &ev, &e), second = ls_events_create(folder, &ev, &e);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(first, LS_EIO);
    assert_int_equal(second, LS_EIO);
    assert_non_null(strstr(e.msg, "can't be written: File too large"));
    assert_int_equal(rmdir(folder), 0); /* nothing is in it */
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crc),
        TEST(test_file),
        TEST(test_failures),
        TEST(test_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
