/* demo_test.c - how `make demo` ends: the weights are compared with the recorded hash, and other
 * bits are a failure. */
#include "cli/program.h"

#include <stdlib.h>

/* Returns the command's exit status, and its output in `out`. */
static int run_command(const char *command, char *out, size_t nbytes) {
    char both[1100];
    snprintf(both, sizeof both, "{ %s; } 2>&1", command);
    FILE *f = popen(both, "r");
    assert_non_null(f);
    size_t n = fread(out, 1, nbytes - 1, f);
    out[n] = 0;
    int status = pclose(f);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int check_bits(const char *run, const char *hash, char *out, size_t nbytes) {
    char command[512];
    snprintf(command, sizeof command,
             "LOCKSTEP=" LOCKSTEP_PROGRAM " scripts/check_bits.sh %s/%s %s", folder, run, hash);
    return run_command(command, out, nbytes);
}

static void test_check_bits(void **state) {
    (void)state;
    char out[1024], hash[64], other[64];
    char *text = output_of("train configs/tiny.yaml -n 1 -o @/run --set train.steps=2 "
                           "--set optim.warmup=1 " SMALLER);
    free(text);
    text = output_of("ckpt hash @/run");
    assert_int_equal(sscanf(text, "weights %32s", hash), 1);
    free(text);

    assert_int_equal(check_bits("run", hash, out, sizeof out), 0);
    assert_non_null(strstr(out, "bits as recorded"));
    assert_non_null(strstr(out, hash));

    memcpy(other, hash, sizeof other);
    other[31] = other[31] == '0' ? '1' : '0';
    assert_int_equal(check_bits("run", other, out, sizeof out), 1);
    assert_null(strstr(out, "bits as recorded"));
    assert_non_null(strstr(out, other));
    assert_non_null(strstr(out, hash));

    assert_int_not_equal(check_bits("no-such-run", hash, out, sizeof out), 0);
    assert_null(strstr(out, "bits as recorded"));
}

/* Runs a copy of scripts/demo.sh with a program that trains nothing and whose weights are `hash`;
 * returns its exit status. */
static int run_demo(const char *hash, char *out, size_t nbytes) {
    char command[1024], stub[256];
    shellf("rm -rf %s/tree && mkdir -p %s/tree/scripts %s/tree/build && "
           "cp scripts/demo.sh scripts/check_bits.sh %s/tree/scripts && "
           "echo text >%s/tree/build/bible.txt",
           folder, folder, folder, folder, folder);
    snprintf(stub, sizeof stub,
             "#!/bin/sh\nif [ \"$1\" = ckpt ]; then echo weights %s; echo optimizer 0; fi\n", hash);
    write_file("tree/build/lockstep", stub, strlen(stub));
    snprintf(command, sizeof command, "chmod +x %s/tree/build/lockstep && %s/tree/scripts/demo.sh",
             folder, folder);
    return run_command(command, out, nbytes);
}

static void test_demo(void **state) {
    (void)state;
    char out[1024];
    assert_int_equal(run_demo("c6ef72de008c1875ff4f00fbda3e9e25", out, sizeof out), 0);
    assert_non_null(strstr(out, "bits as recorded: weights c6ef72de008c1875ff4f00fbda3e9e25\n"));
    assert_int_not_equal(run_demo("c6ef72de008c1875ff4f00fbda3e9e26", out, sizeof out), 0);
    assert_null(strstr(out, "bits as recorded"));
    assert_non_null(strstr(out, "the bits are not the recorded ones"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_check_bits),
                                       cmocka_unit_test(test_demo)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
