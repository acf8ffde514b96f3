/* hostile_test.c - what is no file of data at all, for each format: directories, pipes, devices,
 * empty files, broken links, files that may not be read, headers without samples, names that are no
 * UTF-8. Each is refused at once, by a line that names it. */
#include <sys/stat.h>
#include <unistd.h>

#include "source/formats/open.h"
#include "source/samples.h"

static const char *const formats[] = {"idx",   "npy",      "cifar", "tokens",    "csv",
                                      "jsonl", "tfrecord", "mds",   "webdataset"};
enum { NFORMATS = sizeof formats / sizeof *formats };

/* The message begins with the path, whatever the format; one that is not named, too. */
static void refuses_all(const char *name, const char *says) {
    char *path = paths_of(name);
    for (int i = 0; i <= NFORMATS; i++) {
        ls_source *s = NULL;
        ls_error e = {0};
        ls_source_options o = {.cache = folder, .format = i < NFORMATS ? formats[i] : NULL};
        if (ls_source_open(path, &o, &s, &e) == LS_OK || strncmp(e.msg, path, strlen(path)) != 0 ||
            !strstr(e.msg, says) || strchr(e.msg, '\n'))
            fail_msg("%s as %s: '%s' instead of '%s'", path, o.format ? o.format : "any", e.msg,
                     says);
        assert_null(s);
    }
    free(path);
}

static void test_no_files(void **state) {
    (void)state;
    in_folder("mkfifo pipe && ln -s nowhere link && ln -s loop loop && mkdir empty && "
              "mkdir empty/class");
    refuses_all("@pipe", "/pipe: is not a regular file");
    refuses_all("@link", "/link: can't be opened: No such file or directory");
    refuses_all("@loop", "/loop: can't be opened: Too many levels");
    refuses_all("@none", "/none: can't be opened: No such file or directory");
    refuses_all("@none/x", "/none/x: can't be opened: No such file or directory");
    refuses_all("@empty", ""); /* by name: no file; else: no images */
}

static void test_devices(void **state) {
    (void)state;
    for (int i = 0; i < NFORMATS; i++) {
        const ls_source_options o = {.format = formats[i]};
        ls_source *s = NULL;
        ls_error e = {0};
        assert_ls_fails(ls_source_open("/dev/zero", &o, &s, &e), LS_EIO,
                        "/dev/zero: is not a regular file", e);
    }
}

/* Files that begin well, and of whose 512 GB the rest was never written. */
static void test_unwritten(void **state) {
    (void)state;
    static const char *const names[] = {"@a.csv", "@a.jsonl", "@a.tar"};
    in_folder("seq -f '%g,1' 9 >a.csv; yes '{\"a\": 1}' | head -n 99 >a.jsonl; tar cf a.tar a.csv; "
              "truncate -s 512G a.csv a.jsonl a.tar");
    for (int i = 0; i < 3; i++) {
        refuses(names[i], NULL,
                "on were never written: it is incomplete; copy or download it again");
        refuses(names[i], &(ls_source_options){.skip_damaged = true}, "were never written");
    }
}

static void test_no_samples(void **state) {
    (void)state;
    static const char npy[] =
        "\x93NUMPY\1\0\x48\0{'descr': '<f4', 'fortran_order': False, 'shape': (0, 2), }            "
        "\n";
    put_file("@empty", "", 0);
    in_folder("cp empty empty.npy && gzip -k empty && cp empty.gz empty.csv.gz && cp empty "
              "empty.tar && mkdir set && cp empty set/index.json");
    refuses_all("@empty", "");
    refuses_all("@empty.gz", "");
    refuses("@empty.csv.gz", NULL, "empty.csv.gz: has no rows");
    refuses("@empty.tar", NULL, "empty.tar: is empty (0 bytes)");
    refuses("@set", NULL, "index.json:1: is not valid JSON");
    put_file("@x-idx1-ubyte", "\0\0\x08\1\0\0\0", 8);
    refuses("@x-idx1-ubyte", NULL, "x-idx1-ubyte: has no samples");
    put_file("@x.npy", npy, sizeof npy - 1);
    refuses("@x.npy", NULL, "x.npy: has no samples");
    put_file("@data_batch_1.bin", "", 0);
    refuses("@data_batch_1.bin", NULL, "data_batch_1.bin: has no samples");
    put_file("@head.csv", "a,b\n", 4);
    refuses("@head.csv", NULL, "head.csv: has no rows");
    put_file("@lines.jsonl", "\n\n", 2);
    refuses("@lines.jsonl", NULL, "lines.jsonl: has no objects");
    put_file("@set/index.json", "{\"version\":2,\"shards\":[]}", 25);
    refuses("@set", NULL, "index.json: has no samples");
    in_folder("head -c 10240 /dev/zero > end.tar");
    refuses("@end.tar", NULL, "end.tar: has no samples");
}

static void test_images(void **state) {
    (void)state;
    ls_source *s = NULL;
    ls_error e = {0};
    in_folder("mkdir -p set/class && mkfifo set/class/x.png");
    assert_ls_fails(open_source("@set", NULL, &s, &e), LS_EIO, "x.png: is not a regular file", e);
    in_folder("rm set/class/x.png && ln -s nowhere set/class/x.png");
    assert_ls_fails(open_source("@set", NULL, &s, &e), LS_EIO, "x.png: can't be opened", e);
    in_folder("rm set/class/x.png && : > set/class/x.png");
    refuses("@set", NULL, "x.png: the image is empty (0 bytes)");
    in_folder("rm set/class/x.png && mkdir set/class/x.png");
    refuses("@set", NULL, "class: has no images");
}

/* Names are bytes; messages escape them. Files of others are not read. */
static void test_names(void **state) {
    (void)state;
    ls_source *s = NULL;
    ls_error e = {0};
    put_file("@\xff\x1b[31m.csv", "a,class\n1,\xfe\n", 12);
    assert_int_equal(open_source("@\xff\x1b[31m.csv", NULL, &s, &e), LS_EINVAL);
    assert_non_null(strstr(e.msg, "[31m.csv: is not UTF-8 at byte 10 (line 2)"));
    put_file("@\xff\x1b[31m.csv", "a\n1\nx\n", 6);
    assert_int_equal(open_source("@\xff\x1b[31m.csv", NULL, &s, &e), LS_EINVAL);
    assert_non_null(strstr(e.msg, "[31m.csv:3: column 1"));
    for (const char *c = e.msg; *c; c++) assert_true((unsigned char)*c >= ' ');
    if (geteuid() == 0) return; /* root may read all */
    put_file("@secret.csv", "1\n", 2);
    in_folder("chmod 0 secret.csv");
    refuses_all("@secret.csv", "can't be opened: Permission denied");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_no_files, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_devices, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_unwritten, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_no_samples, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_images, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_names, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
