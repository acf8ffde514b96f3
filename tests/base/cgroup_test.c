/* cgroup_test.c - limits of control groups of both versions, read from trees of files like the
 * kernel's; and reading the machine's own does not fail. */
#include "base/cgroup.h"

#include "folder.h"
#include "test.h"

static void put(const char *path, const char *text) {
    ls_error e;
    char *whole = ls_format("%s/%s", folder, path), *parent = ls_strdup(whole);
    *strrchr(parent, '/') = 0;
    assert_ls_ok(ls_file_make_dirs(parent, &e), e);
    assert_ls_ok(ls_file_replace(whole, text, strlen(text), &e), e);
    free(parent);
    free(whole);
}

static char *self(const char *text) {
    put("self", text);
    return ls_format("%s/self", folder);
}

static void check(const char *lines, double memory, double cores) {
    char *path = self(lines);
    assert_true(ls_cgroup_memory(folder, path) == memory);
    assert_true(ls_cgroup_cores(folder, path) == cores);
    free(path);
}

static void test_version_2(void **state) {
    (void)state;
    put("pod/memory.max", "4000000000\n");
    put("pod/job/memory.max", "max\n");
    put("pod/job/cpu.max", "150000 100000\n");
    put("pod/job/task/memory.max", "8000000000\n");
    put("pod/job/task/cpu.max", "max 100000\n");
    check("0::/pod/job/task\n", 4e9, 1.5); /* the smallest limit up to the root */
    check("0::/pod/job\n", 4e9, 1.5);
    check("0::/pod\n", 4e9, 0);
    check("0::/\n", 0, 0);
    put("memory.max", "1000\n"); /* inside a container, the root is its own group */
    check("0::/\n", 1000, 0);
    check("0::/not/to/be/seen\n", 1000, 0);
}

static void test_version_1(void **state) {
    (void)state;
    put("memory.max", "max\n");
    put("memory/memory.limit_in_bytes", "9223372036854771712\n"); /* none */
    put("memory/a/memory.limit_in_bytes", "2000000000\n");
    put("cpu/a/cpu.cfs_quota_us", "-1\n");
    put("cpu/a/cpu.cfs_period_us", "100000\n");
    put("cpu/a/b/cpu.cfs_quota_us", "400000\n");
    put("cpu/a/b/cpu.cfs_period_us", "100000\n");
    check("5:cpuset:/x\n4:memory:/a\n2:cpuacct,cpu:/a/b\n0::/\n", 2e9, 4);
    check("4:memory:/\n2:cpuacct:/a/b\n", 0, 0);
}

static void test_odd(void **state) {
    (void)state;
    check("", 0, 0);
    check("nothing\n0:\n1:memory\n0::relative\n0::/../..\n\n", 0, 0);
    put("odd/memory.max", "");
    put("odd/cpu.max", "5");
    check("0::/odd\n", 0, 0);
    assert_true(ls_cgroup_memory("/nowhere", "/nowhere/self") == 0);
    assert_true(ls_cgroup_memory(LS_CGROUP_ROOT, LS_CGROUP_SELF) >= 0);
    assert_true(ls_cgroup_cores(LS_CGROUP_ROOT, LS_CGROUP_SELF) >= 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_version_2),
                                       cmocka_unit_test(test_version_1),
                                       cmocka_unit_test(test_odd)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
