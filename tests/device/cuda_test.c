/* cuda_test.c - device `cuda` on a driver and a compiler of our own (fake_cuda.c, fake_nvrtc.c):
 * loading, caching, streams, events, and every error. The program starts itself again with
 * LD_LIBRARY_PATH leading to them, since libraries are loaded once. */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "device/auto.h"
#include "device/calls.h"
#include "device/compiled.h"
#include "device/device_nccl.h"
#include "device/trial.h"
#include "folder.h"

static const char *own;

/* The folder is the cache. */
static int make_cache(void **state) {
    if (make_folder(state) != 0) return -1;
    return setenv("XDG_CACHE_HOME", folder, 1);
}

static int compiled(void) {
    const char *n = getenv("FAKE_NVRTC_COMPILED");
    return n ? atoi(n) : 0;
}

/* The one file of the cache. */
static char *cached_file(void) {
    char *dir = ls_format("%s/lockstep/kernels", folder), *path = NULL;
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (struct dirent *x; (x = readdir(d));)
        if (strstr(x->d_name, ".cubin")) {
            assert_null(path);
            path = ls_format("%s/%s", dir, x->d_name);
        }
    closedir(d);
    free(dir);
    assert_non_null(path);
    return path;
}

static void test_events(void **state) {
    (void)state;
    for (int seed = 0; seed < 20; seed++) {
        char text[16];
        snprintf(text, sizeof text, "%d", seed);
        setenv("FAKE_CUDA_SEED", text, 1);
        ls_device *d = opened("cuda");
        assert_string_equal(d->name, "Fake H100 0");
        assert_int_equal(d->memory_nbytes, 1 << 30);
        assert_true(doubles(d, true));
        ls_device_close(d);
    }
    unsetenv("FAKE_CUDA_SEED");
    assert_int_equal(compiled(), 1); /* and then it was in the cache */
}

static void test_shared(void **state) {
    (void)state;
    read_of_child("cuda", "cuda");
    free_of_read("cuda"); /* the driver for tests objects to memory that is still mapped */
}

/* The device is another one than that of the number before; memory is cleared, and freed. */
static void test_memory(void **state) {
    ls_error e = {0};
    float x = 3, y = 4;
    (void)state;
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    ls_device *d = opened("cuda:1"), *other = opened("cuda:0");
    assert_string_equal(d->name, "Fake H100 1");
    float *p = memory(d, 8), *q = memory(other, 8);
    ls_device_copy_to(d, LS_DEVICE_COMPUTE, p, &x, sizeof x);
    ls_device_copy_to(d, LS_DEVICE_COMPUTE, p + 1, &x, sizeof x);
    ls_device_clear(d, LS_DEVICE_COMPUTE, p, sizeof *p);
    ls_device_clear(other, LS_DEVICE_COMPUTE, q, 8 * sizeof *q);
    ls_device_copy_from(d, LS_DEVICE_COMPUTE, &x, p + 1, sizeof x);
    ls_device_copy_from(d, LS_DEVICE_COMPUTE, &y, p, sizeof y);
    assert_ls_ok(ls_device_finish(d, LS_DEVICE_COMPUTE, &e), e);
    assert_ls_ok(ls_device_finish(other, LS_DEVICE_COMPUTE, &e), e);
    assert_true(x == 3 && y == 0);
    ls_device_free(d, p);
    ls_device_free(other, q);
    ls_device_close(d);
    ls_device_close(other);
    unsetenv("FAKE_CUDA_DEVICES");
}

/* A file of the cache that is damaged is made anew, and then used. */
static void test_damaged(void **state) {
    (void)state;
    char *path = cached_file();
    for (int way = 0; way < 3; way++) {
        int before = compiled();
        ls_buf whole = {0};
        assert_int_equal(ls_file_read(path, 1 << 20, &whole, NULL), LS_OK);
        size_t keep = way == 0 ? whole.len - 5 : way == 1 ? 0 : whole.len;
        if (way == 2) whole.data[whole.len - 3] ^= 1;
        assert_int_equal(ls_file_replace(path, whole.data, keep, NULL), LS_OK);
        ls_device_close(opened("cuda"));
        assert_int_equal(compiled(), before + 1);
        ls_device_close(opened("cuda"));
        assert_int_equal(compiled(), before + 1);
        ls_buf_free(&whole);
    }
    free(path);
}

/* A cache that can't be written costs time, not the run. */
static void test_no_cache(void **state) {
    int before = compiled();
    (void)state;
    setenv("XDG_CACHE_HOME", "/dev/null/none", 1);
    ls_device_close(opened("cuda"));
    ls_device_close(opened("cuda"));
    assert_int_equal(compiled(), before + 2);
    setenv("XDG_CACHE_HOME", folder, 1);
}

static void test_numbers(void **state) {
    ls_device *d = NULL;
    ls_error e;
    (void)state;
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    assert_ls_fails(ls_device_open("cuda:7", &d, &e), LS_EINVAL,
                    "device cuda:7: the highest is cuda:1", e);
    setenv("FAKE_CUDA_DEVICES", "0", 1);
    setenv("CUDA_VISIBLE_DEVICES", "5", 1);
    assert_ls_fails(ls_device_open("cuda", &d, &e), LS_EINVAL,
                    "shows no GPU, with CUDA_VISIBLE_DEVICES=5", e);
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv("FAKE_CUDA_DEVICES");
}

/* A name without a number has all of them, and each has an id of its own, unlike those that a
 * process sees with another CUDA_VISIBLE_DEVICES. */
static void test_list(void **state) {
    ls_device_seen list[LS_DEVICE_LIST], other[LS_DEVICE_LIST];
    ls_error e = {0};
    int n = 0;
    (void)state;
    setenv("FAKE_CUDA_DEVICES", "3", 1);
    assert_ls_ok(ls_device_list("cuda", list, &n, &e), e);
    assert_int_equal(n, 3);
    for (int i = 0; i < 3; i++) {
        assert_true(list[i].number == i && list[i].id && !list[i].is_cores);
        for (int k = 0; k < i; k++) assert_true(list[i].id != list[k].id);
    }
    assert_ls_ok(ls_device_list("cuda:2", other, &n, &e), e);
    assert_true(n == 1 && other[0].id == list[2].id);
    assert_ls_ok(ls_device_list("cuda:3", other, &n, &e), e);
    assert_int_equal(n, 0);
    setenv("CUDA_VISIBLE_DEVICES", "5", 1);
    assert_ls_ok(ls_device_list("cuda:2", other, &n, &e), e);
    assert_true(n == 1 && other[0].id != list[2].id);
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv("FAKE_CUDA_DEVICES");
    assert_ls_fails(ls_device_list("tpu", list, &n, &e), LS_EINVAL, "device tpu: not known", e);
}

/* What this host would use: the fake, or what fails. */
static void test_auto(void **state) {
    ls_device_auto found;
    (void)state;
    ls_device_auto_find(&found);
    assert_string_equal(found.name, "cuda");
    assert_string_equal(found.text, "Fake H100 0");
    setenv("FAKE_CUDA_FAIL", "cuStreamCreate:801", 1);
    ls_device_auto_find(&found);
    assert_true(strstr(found.text, "cuStreamCreate failed: CUDA_ERROR_OF_THE_FAKE") || *found.name);
    assert_true(strcmp(found.name, "cuda") != 0);
    unsetenv("FAKE_CUDA_FAIL");
}

static void test_no_room(void **state) {
    ls_error e;
    void *p = NULL;
    (void)state;
    setenv("FAKE_CUDA_MEMORY", "1000", 1);
    ls_device *d = opened("cuda");
    float *some = memory(d, 100);
    assert_ls_fails(ls_device_alloc(d, 900, "weights", &p, &e), LS_ENOMEM,
                    "has no room for weights, 900 bytes: 600 of its 1000 bytes are free "
                    "(nvidia-smi lists who has the others)",
                    e);
    setenv("FAKE_CUDA_FAIL", "cuMemGetInfo:700", 1);
    assert_int_equal(ls_device_alloc(d, 900, "weights", &p, &e), LS_ENOMEM);
    assert_string_equal(strstr(e.msg, " has no room"), " has no room for weights, 900 bytes");
    unsetenv("FAKE_CUDA_FAIL");
    ls_device_free(d, some);
    ls_device_close(d);
    unsetenv("FAKE_CUDA_MEMORY");
}

/* Whatever fails while a device is opened, all that was made is given back: the fake aborts if
 * not. */
static void test_opening_fails(void **state) {
    static const char *const names[] = {"cuDevicePrimaryCtxRetain", "cuCtxPushCurrent",
                                        "cuStreamCreate", "cuEventCreate", "cuModuleLoadData"};
    ls_device *d = NULL;
    ls_error e;
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *fault = ls_format("%s:801", names[i]);
        setenv("FAKE_CUDA_FAIL", fault, 1);
        assert_ls_fails(ls_device_open("cuda", &d, &e), LS_EIO,
                        "CUDA_ERROR_OF_THE_FAKE (as asked for)", e);
        free(fault);
    }
    unsetenv("FAKE_CUDA_FAIL");
}

/* What can't be used now is not lost. */
static void test_not_free(void **state) {
    static const char *const cases[][2] = {
        {"cuDevicePrimaryCtxRetain:46",
         "is not free: cuDevicePrimaryCtxRetain: as asked for; in compute mode Exclusive_Process"},
        {"cuDevicePrimaryCtxRetain:2", "nvidia-smi lists who has its memory"}};
    ls_device *d = NULL;
    ls_error e;
    (void)state;
    for (int i = 0; i < 2; i++) {
        setenv("FAKE_CUDA_FAIL", cases[i][0], 1);
        assert_ls_fails(ls_device_open("cuda", &d, &e), i == 0 ? LS_EIO : LS_ENOMEM, cases[i][1],
                        e);
        assert_null(strstr(e.msg, "lost"));
    }
    unsetenv("FAKE_CUDA_FAIL");
}

/* Which devices read each other, and the one with the least memory that is free. */
static void test_trial(void **state) {
    static const struct {
        const char *name, *peers, *fault, *why; /* why NULL: they do */
    } cases[] = {{"cuda", "all", "", NULL},
                 {"cuda", "none", "", "can't read the memory of cuda:"},
                 {"cuda", "blind", "", "cuIpcOpenMemHandle failed"},
                 {"cuda", "broken", "", "read wrong bytes from cuda:"},
                 {"cuda", "all", "cuIpcGetMemHandle:801", "cuIpcGetMemHandle failed"},
                 {"cuda", "all", "cuIpcOpenMemHandle:-9", "its process died while it was tried"},
                 {"cuda:1", "none", "", NULL}}; /* one for all */
    ls_device_trial t;
    (void)state;
    setenv("FAKE_CUDA_DEVICES", "3", 1);
    setenv("FAKE_CUDA_MEMORY", "50000000", 1);
    setenv("FAKE_CUDA_USED", "1000000", 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setenv("FAKE_CUDA_PEERS", cases[i].peers, 1);
        setenv("FAKE_CUDA_FAIL", cases[i].fault, 1);
        ls_device_try(cases[i].name, 3, true, &t);
        assert_int_equal(t.links, cases[i].why == NULL);
        if (cases[i].why && !strstr(t.why, cases[i].why)) fail_msg("%s", t.why);
        assert_int_equal(t.n, i == 6 ? 2 : 3);
        assert_string_equal(t.device, i == 6 ? "cuda:1" : "cuda:2");
        assert_int_equal(t.room.free, i == 6 ? 48000000 : 47000000);
        assert_int_equal(t.room.all, 50000000);
    }
    unsetenv("FAKE_CUDA_PEERS");
    setenv("FAKE_CUDA_FAIL", "cuStreamCreate:801", 1);
    ls_device_try("cuda", 2, true, &t); /* none opens */
    assert_true(t.n == 0 && !t.links && t.room.free == 0);
    unsetenv("FAKE_CUDA_FAIL");
    ls_device_try("cuda", 5, false, &t); /* more than there are */
    assert_true(t.n == 3 && !t.links);
    unsetenv("FAKE_CUDA_USED");
    unsetenv("FAKE_CUDA_MEMORY");
    unsetenv("FAKE_CUDA_DEVICES");
}

/* A device that is lost: the first error stays. */
static void test_lost(void **state) {
    ls_error e;
    float x = 1;
    (void)state;
    ls_device *d = opened("cuda");
    float *p = memory(d, 1);
    ls_device_copy_to(d, LS_DEVICE_COMPUTE, p, &x, sizeof x);
    setenv("FAKE_CUDA_FAIL", "cuStreamSynchronize:719", 1);
    assert_ls_fails(ls_device_finish(d, LS_DEVICE_COMPUTE, &e), LS_EPEER,
                    "device cuda:0 (Fake H100 0) is lost: queued work: CUDA_ERROR_LAUNCH_FAILED "
                    "(unspecified launch failure); dmesg may have an Xid",
                    e);
    unsetenv("FAKE_CUDA_FAIL");
    add(d, LS_DEVICE_COMPUTE, 1, p, p, p);
    assert_ls_fails(ls_device_finish(d, LS_DEVICE_COMPUTE, &e), LS_EPEER, "is lost", e);
    ls_device_free(d, p);
    ls_device_close(d);
}

static void test_compiler_errors(void **state) {
    ls_device *d = NULL;
    ls_error e;
    (void)state;
    setenv("XDG_CACHE_HOME", "/dev/null/none", 1);
    setenv("FAKE_NVRTC_FAIL", "warning: a\nkernels.cu(7): error: b is not declared\n1 error", 1);
    assert_ls_fails(ls_device_open("cuda", &d, &e), LS_EIO,
                    "can't be compiled for sm_90a by libnvrtc 13.0 (error 6): kernels.cu(7): "
                    "error: b is not declared",
                    e);
    unsetenv("FAKE_NVRTC_FAIL");
    setenv("FAKE_NVRTC_OLDEST", "100", 1);
    setenv("FAKE_NVRTC_NEWEST", "121", 1);
    assert_ls_fails(ls_device_open("cuda", &d, &e), LS_EINVAL,
                    "libnvrtc 13.0 compiles for sm_100 to sm_121, and this GPU is sm_90a", e);
    unsetenv("FAKE_NVRTC_OLDEST");
    unsetenv("FAKE_NVRTC_NEWEST");
    setenv("XDG_CACHE_HOME", folder, 1);
}

/* What opening a device says in a process of its own, with this environment. */
static void says_how(const char *how, const char *environment, const char *text) {
    char line[1024] = "";
    char *command = ls_format("CUDA_HOME=/nowhere %s %s %s", environment, own, how);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    assert_non_null(fgets(line, sizeof line, f));
    pclose(f);
    if (!strstr(line, text)) {
        print_error("%s: '%s' does not say '%s'\n", environment, line, text);
        fail();
    }
    free(command);
}

static void says(const char *environment, const char *text) {
    says_how("--open", environment, text);
}

static void test_nccl(void **state) {
    char *none = ls_format("LD_LIBRARY_PATH=%s", folder);
    char *there = ls_format("LD_LIBRARY_PATH=%s FAKE_NCCL_VERSION=2604", FAKE_NCCL);
    char *fails = ls_format("LD_LIBRARY_PATH=%s FAKE_NCCL_FAIL=ncclGetUniqueId:3", FAKE_NCCL);
    char *path = ls_format("%s/libnccl.so.2", folder);
    (void)state;
    assert_int_equal(ls_file_write(path, "none", 4, NULL), LS_OK);
    says_how("--nccl", none, "nccl needs libnccl.so.2, 2.7 or newer, which can't be loaded");
    says_how("--nccl", there, "nccl needs NCCL 2.7 or newer, and this is number 2604");
    says_how("--nccl", fails, "ncclGetUniqueId failed: as asked for (NCCL's error 3");
    free(none);
    free(there);
    free(fails);
    free(path);
}

/* Files in the place of libraries that can't be loaded hide those of the machine. */
static void test_libraries(void **state) {
    char *none = ls_format("%s/none", folder);
    static const char *const files[] = {"libcuda.so.1", "libnvrtc.so.13", "libnvrtc.so.12",
                                        "libnvrtc.so.11.2", "libnvrtc.so"};
    (void)state;
    assert_int_equal(mkdir(none, 0777), 0);
    for (int i = 0; i < 5; i++) {
        char *path = ls_format("%s/%s", none, files[i]);
        assert_int_equal(ls_file_write(path, "none", 4, NULL), LS_OK);
        free(path);
    }
    char *nothing = ls_format("LD_LIBRARY_PATH=%s", none);
    says(nothing, "device cuda needs an NVIDIA GPU and its driver, 525 or newer, which can't be");
    char *driver = ls_format("LD_LIBRARY_PATH=%s:%s", FAKE_CUDA, none);
    says(driver, "device cuda needs NVIDIA's compiler libnvrtc.so.12 or .13");
    says("FAKE_CUDA_DRIVER=11040", "too old: it supports CUDA 11.4, and 12.0 is needed");
    says("FAKE_CUDA_FAIL=cuInit:803",
         "NVIDIA's driver can't be used: as asked for (error 803); the driver was updated");
    says("FAKE_CUDA_FAIL=cuInit:802", "nvidia-fabricmanager");
    says("FAKE_CUDA_FAIL=cuInit:804", "compat out of LD_LIBRARY_PATH");
    says("FAKE_CUDA_FAIL=cuInit:807", "nvidia-cuda-mps-control");
    says("FAKE_CUDA_FAIL=cuInit:999", "/dev/nvidia-uvm");
    says("FAKE_CUDA_FAIL=cuInit:3", "nvidia-smi may say why");
    says("FAKE_CUDA_FAIL=cuDriverGetVersion:34", "does not answer (error 34); take .../stubs");
    says("FAKE_NVRTC_VERSION=11.8", "opened: Fake H100 0");
    char *unknown = ls_format("exec 2>&1; CUDA_HOME=/nowhere LD_LIBRARY_PATH=%s:%s:%s "
                              "FAKE_CUDA_SM=120",
                              FAKE_CUDA, FAKE_NVRTC, none);
    says(unknown, "libnvrtc 13.0 does not know sm_120: NVIDIA's driver");
    says(unknown, "opened: Fake H100 0"); /* from the cache */
    free(unknown);
    char *newer = ls_format("LD_LIBRARY_PATH=%s:%s:%s FAKE_CUDA_DRIVER=12040 "
                            "FAKE_NVRTC_VERSION=13.1",
                            FAKE_CUDA, FAKE_NVRTC, none);
    says(newer, "libnvrtc is of CUDA 13.1, and NVIDIA's driver supports 12.x");
    says("FAKE_CUDA_DRIVER=12040 FAKE_NVRTC_VERSION=12.2", "opened: Fake H100 0");
    free(newer);
    free(nothing);
    free(driver);
    free(none);
}

/* A compiler that the loader does not find, as Python's packages have it: CUDA_HOME leads to it,
 * and what it opens when it compiles is taken from beside it. */
static void test_compiler_elsewhere(void **state) {
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc-builtins.so.13.9"};
    static const char *const files[] = {FAKE_NVRTC "/libnvrtc.so.13", FAKE_BUILTINS};
    char *home = ls_format("%s/home", folder), *lib = ls_format("%s/lib", home);
    char *environment = ls_format("CUDA_HOME=%s LD_LIBRARY_PATH=%s:%s/none FAKE_NVRTC_BUILTINS=1 "
                                  "FAKE_NVRTC_VERSION=13.9",
                                  home, FAKE_CUDA, folder);
    (void)state;
    assert_int_equal(mkdir(home, 0777) | mkdir(lib, 0777), 0);
    for (int i = 0; i < 2; i++) {
        char *path = ls_format("%s/%s", lib, names[i]);
        assert_int_equal(symlink(files[i], path), 0);
        free(path);
        says(environment, i == 0 ? "libnvrtc 13.9 (error 7)" : "opened: Fake H100 0");
    }
    free(home);
    free(lib);
    free(environment);
}

/* Kernels that are installed need no compiler. Those of another text are not used; those that this
 * GPU can't run are compiled, and a line says so. */
static void test_installed(void **state) {
    ls_buf text = {0};
    char key[64] = "";
    (void)state;
    ls_compiled_text(&text);
    assert_int_equal(sscanf(text.data, "// %32[0-9a-f] -fmad=false ", key), 1);
    ls_buf_free(&text);
    static const struct {
        const char *key, *code;
        const char *without, *with; /* what is said without a compiler, and with one */
    } cases[] = {
        {NULL, "code of the fake for sm_90a", "opened: Fake H100 0", "opened: Fake H100 0"},
        {NULL, "code of the fake for sm_80", "libnvrtc.so.12",
         ".fatbin has no kernels for sm_90a; NVIDIA's compiler makes them"},
        {NULL, "damaged", "libnvrtc.so.12", ".fatbin failed: "},
        {"of-another-text", "damaged", "libnvrtc.so.12", "opened: Fake H100 0"},
    };
    char *none = ls_format("%s/none", folder); /* with files that hide the machine's compiler */
    char *without = ls_format("LD_LIBRARY_PATH=%s:%s LOCKSTEP_PLUGINS=%s", FAKE_CUDA, none, folder);
    char *with = ls_format("LOCKSTEP_PLUGINS=%s", folder);
    char *logged = ls_format("exec 2>&1; LOCKSTEP_PLUGINS=%s", folder);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *path =
            ls_format("%s/lockstep-kernels-%s.fatbin", folder, cases[i].key ? cases[i].key : key);
        assert_int_equal(ls_file_write(path, cases[i].code, strlen(cases[i].code), NULL), LS_OK);
        says(without, cases[i].without);
        says(logged, cases[i].with);
        says(with, "opened: Fake H100 0");
        assert_int_equal(unlink(path), 0);
        free(path);
    }
    free(none);
    free(with);
    free(logged);
    free(without);
}

static int print_opened(void) {
    ls_error e = {0};
    ls_device *d = NULL;
    if (ls_device_open("cuda", &d, &e) != LS_OK) return printf("%s\n", e.msg), 1;
    printf("opened: %s\n", d->name);
    ls_device_close(d);
    return 0;
}

static int print_nccl(void) {
    ls_error e = {0};
    ls_nccl_id id;
    return printf("%s\n", ls_device_nccl_id(&id, &e) == LS_OK ? "found" : e.msg) < 0;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events),    cmocka_unit_test(test_memory),
        cmocka_unit_test(test_shared),    cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_no_cache),  cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_list),      cmocka_unit_test(test_auto),
        cmocka_unit_test(test_no_room),   cmocka_unit_test(test_opening_fails),
        cmocka_unit_test(test_not_free),  cmocka_unit_test(test_trial),
        cmocka_unit_test(test_lost),      cmocka_unit_test(test_compiler_errors),
        cmocka_unit_test(test_libraries), cmocka_unit_test(test_nccl),
        cmocka_unit_test(test_installed), cmocka_unit_test(test_compiler_elsewhere),
    };
    own = argv[0];
    if (argc > 1) return strcmp(argv[1], "--nccl") == 0 ? print_nccl() : print_opened();
    const char *path = getenv("LD_LIBRARY_PATH");
    if (!path || strcmp(path, FAKE_CUDA ":" FAKE_NVRTC) != 0) {
        setenv("LD_LIBRARY_PATH", FAKE_CUDA ":" FAKE_NVRTC, 1);
        execv("/proc/self/exe", argv);
        return 1;
    }
    return cmocka_run_group_tests(tests, make_cache, remove_folder);
}
