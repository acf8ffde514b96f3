/* ram_test.c - the machine's memory, also where a filter of system calls refuses sysinfo(). */
#include "base/ram.h"

#include <errno.h>
#include <math.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "folder.h"
#include "test.h"

/* Replaces that of the C library: with this errno it fails, and leaves what is there. */
static int refused;

int sysinfo(struct sysinfo *info) {
    errno = refused;
    return refused ? -1 : (int)syscall(SYS_sysinfo, info);
}

static double with_file(const char *text) {
    ls_error e;
    char *path = ls_format("%s/meminfo", folder);
    assert_ls_ok(ls_file_replace(path, text, strlen(text), &e), e);
    double nbytes = ls_ram_machine(path);
    free(path);
    return nbytes;
}

/* Both ways give the same, but for rounding to kB and pages. */
static void test_machine(void **state) {
    (void)state;
    refused = 0;
    double asked = ls_ram_machine("/nowhere");
    refused = EPERM;
    double read = ls_ram_machine(LS_RAM_MEMINFO);
    assert_true(isfinite(asked) && asked > 0);
    assert_true(fabs(asked - read) < 1 << 16);
    assert_true(ls_ram_allowed().nbytes <= read);
}

static void test_unknown(void **state) {
    (void)state;
    refused = ENOSYS;
    assert_true(with_file("MemFree: 5 kB\nMemTotal:  2000 kB\n") == 2048000);
    assert_true(with_file("") == (double)INFINITY);
    assert_true(with_file("MemTotal: 0 kB\n") == (double)INFINITY);
    assert_true(with_file("MemTotal: many\n") == (double)INFINITY);
    assert_true(ls_ram_machine("/nowhere") == (double)INFINITY);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_machine),
                                       cmocka_unit_test(test_unknown)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
