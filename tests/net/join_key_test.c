/* join_key_test.c - the join key from the environment and from a file. */
#include "net/join_key.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

static const char SECRET[] = "correct horse battery staple";
static char path[] = "/tmp/lockstep-key-test-XXXXXX";

/* HKDF-SHA256 of SECRET by Python's hmac module, written from RFC 5869. */
static const char WANT[] = "a1e9efdd0307c07379aaf3485f543b528521fa84d750ef672f8635fe0ff0794d";

static int unset(void **state) {
    (void)state;
    unsetenv("LOCKSTEP_KEY");
    unsetenv("LOCKSTEP_KEY_FILE");
    return 0;
}

static void hex(const ls_key *k, char text[65]) {
    for (size_t i = 0; i < sizeof k->bytes; i++)
        snprintf(text + 2 * i, 3, "%02x", (unsigned)k->bytes[i]);
}

static void check(const char *want) {
    ls_error e = {0};
    ls_key key;
    bool found = false;
    char text[65];
    assert_ls_ok(ls_key_find(&key, &found, &e), e);
    assert_true(found);
    hex(&key, text);
    assert_string_equal(text, want);
    ls_key_wipe(&key);
    hex(&key, text);
    assert_int_equal(strspn(text, "0"), 64);
}

static void refused(ls_status code, const char *says) {
    ls_error e;
    ls_key key, before;
    bool found = false;
    memset(&key, 7, sizeof key);
    before = key;
    assert_ls_fails(ls_key_find(&key, &found, &e), code, says, e);
    assert_false(found);
    assert_memory_equal(&key, &before, sizeof key);
    assert_null(strstr(e.msg, "horse")); /* no message contains the secret */
}

static void write_file(const void *data, size_t nbytes, mode_t mode) {
    int fd = open(path, O_WRONLY | O_TRUNC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, nbytes), (ssize_t)nbytes);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
    setenv("LOCKSTEP_KEY_FILE", path, 1);
}

static void test_none(void **state) {
    (void)state;
    ls_error e = {0};
    ls_key key;
    bool found = true;
    assert_ls_ok(ls_key_find(&key, &found, &e), e);
    assert_false(found);
}

static void test_environment(void **state) {
    (void)state;
    setenv("LOCKSTEP_KEY", SECRET, 1);
    check(WANT);
    check(WANT);
    setenv("LOCKSTEP_KEY", "correct horse battery staple\n", 1);
    check(WANT);
    setenv("LOCKSTEP_KEY_FILE", path, 1);
    refused(LS_EINVAL, "both set");
}

static void test_length(void **state) {
    (void)state;
    static const char *const shorts[] = {"", "a", "\n", "123456789012345", "123456789012345\n"};
    for (size_t i = 0; i < sizeof shorts / sizeof *shorts; i++) {
        setenv("LOCKSTEP_KEY", shorts[i], 1);
        refused(LS_EINVAL, "needs at least 16");
    }
    static const int lengths[] = {16, 17, 4095, 4096, 4097, 4098, 4099, 100000};
    static char text[100001];
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        memset(text, 'k', sizeof text);
        text[lengths[i]] = 0;
        setenv("LOCKSTEP_KEY", text, 1);
        unsetenv("LOCKSTEP_KEY_FILE");
        if (lengths[i] > LS_KEY_SECRET_MAX) {
            refused(LS_EINVAL, "more than 4096");
            unsetenv("LOCKSTEP_KEY");
            write_file(text, (size_t)lengths[i], 0600);
            refused(LS_EINVAL, "more than 4096");
            continue;
        }
        ls_error e = {0};
        ls_key key;
        bool found = false;
        char want[65];
        assert_ls_ok(ls_key_find(&key, &found, &e), e);
        hex(&key, want);
        unsetenv("LOCKSTEP_KEY");
        text[lengths[i]] = '\n';
        write_file(text, (size_t)lengths[i] + 1, 0600);
        check(want);
    }
}

static void test_file(void **state) {
    (void)state;
    write_file(SECRET, strlen(SECRET), 0600);
    check(WANT);
    write_file("correct horse battery staple\n", strlen(SECRET) + 1, 0400);
    check(WANT);
    write_file("short\n", 6, 0600);
    refused(LS_EINVAL, "has 5 characters");
    refused(LS_EINVAL, path);
    setenv("LOCKSTEP_KEY_FILE", "/nowhere/key", 1);
    refused(LS_EIO, "/nowhere/key: can't be opened");
    setenv("LOCKSTEP_KEY_FILE", "/tmp", 1);
    refused(LS_EIO, "not a regular file");
    setenv("LOCKSTEP_KEY_FILE", "", 1);
    refused(LS_EIO, "can't be opened");
}

static void test_permissions(void **state) {
    (void)state;
    static const mode_t open_modes[] = {0640, 0604, 0644, 0666, 0620, 0602, 0777};
    for (size_t i = 0; i < sizeof open_modes / sizeof *open_modes; i++) {
        write_file(SECRET, strlen(SECRET), open_modes[i]);
        refused(LS_EINVAL, "other users have access");
    }
    write_file(SECRET, strlen(SECRET), 0644);
    refused(LS_EINVAL, "mode 644");
    chmod(path, 0600);
    check(WANT);
}

static void test_make(void **state) {
    (void)state;
    char a[65], b[65];
    ls_key_make(a);
    ls_key_make(b);
    assert_int_equal(strspn(a, "0123456789abcdef"), 64);
    assert_int_equal(strlen(a), 64);
    assert_string_not_equal(a, b);
    ls_error e = {0};
    ls_key ka, kb;
    bool found = false;
    setenv("LOCKSTEP_KEY", a, 1);
    assert_ls_ok(ls_key_find(&ka, &found, &e), e);
    setenv("LOCKSTEP_KEY", b, 1);
    assert_ls_ok(ls_key_find(&kb, &found, &e), e);
    assert_memory_not_equal(&ka, &kb, sizeof ka);
}

static int make_file(void **state) {
    (void)state;
    int fd = mkstemp(path);
    if (fd < 0) return -1;
    return close(fd);
}

static int remove_file(void **state) {
    (void)state;
    return unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_none, unset, unset),
        cmocka_unit_test_setup_teardown(test_environment, unset, unset),
        cmocka_unit_test_setup_teardown(test_length, unset, unset),
        cmocka_unit_test_setup_teardown(test_file, unset, unset),
        cmocka_unit_test_setup_teardown(test_permissions, unset, unset),
        cmocka_unit_test_setup_teardown(test_make, unset, unset),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
