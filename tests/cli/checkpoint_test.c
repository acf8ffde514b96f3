/* checkpoint_test.c - checkpoints with a damaged file, or with a manifest that does not cover
 * all files: every reader refuses them, and names an older one that is intact.
 */
#include "cli/program.h"

static const char START[] = "train configs/tiny.yaml -n 2 -o @/%s --set train.steps=40 "
                            "--set checkpoint.every=20 --set log.every=1000 "
                            "--set train.eval_every=0%s";

/* Python code, run in the checkpoint's directory; m is its manifest, which is written back. */
static const char PYTHON[] =
    "cd %s/%s/checkpoints/step-40 && python3 -c '\n"
    "import json, struct\n"
    "m = json.load(open(\"manifest.json\"))\n"
    "def nans():\n"
    "    b = bytearray(open(\"model.safetensors\", \"rb\").read())\n"
    "    at = 8 + struct.unpack(\"<Q\", b[:8])[0]\n"
    "    b[at:] = struct.pack(\"<f\", float(\"nan\")) * ((len(b) - at) // 4)\n"
    "    open(\"model.safetensors\", \"wb\").write(b)\n"
    "def damage(name, at):\n"
    "    b = bytearray(open(name, \"rb\").read())\n"
    "    b[at] ^= 1\n"
    "    open(name, \"wb\").write(b)\n"
    "def drop(name):\n"
    "    m[\"files\"] = [f for f in m[\"files\"] if f[\"name\"] != name]\n"
    "%s\n"
    "json.dump(m, open(\"manifest.json\", \"w\"))'";

static const char *const faults[][2] = {
    {"nans(); m[\"files\"] = []", "manifest.json: is not complete: it does not list model.safe"},
    {"nans(); drop(\"model.safetensors\")", "it does not list model.safetensors"},
    {"nans()", "model.safetensors: is damaged: its hash is not the manifest"},
    {"damage(\"model.safetensors\", -1)", "model.safetensors: is damaged"},
    {"damage(\"optimizer.safetensors\", 10000)", "optimizer.safetensors: is damaged"},
    {"damage(\"tokenizer.json\", 700)", "tokenizer.json: is damaged"},
    {"damage(\"config.yaml\", 0)", "config.yaml: is damaged"},
    {"drop(\"tokenizer.json\"); damage(\"tokenizer.json\", 700)",
     "it does not list tokenizer.json"},
    {"drop(\"config.yaml\")", "it does not list config.yaml"},
    {"del m[\"files\"]", "manifest.json: is not the manifest of"},
    {"m[\"files\"] = {}", "manifest.json: is not the manifest of"},
    {"m[\"files\"][0][\"name\"] = \"../../config.yaml\"", "it does not list model.safetensors"},
};
enum { NFAULTS = sizeof faults / sizeof *faults };

static const char *const readers[] = {"eval @/%s", "generate @/%s --tokens 3", "ckpt hash @/%s",
                                      "ckpt show @/%s", "ckpt verify @/%s"};
enum { NREADERS = sizeof readers / sizeof *readers };

static void shell(const char *what) {
    char line[4096];
    snprintf(line, sizeof line, "cd %s && %s", folder, what);
    if (system(line) != 0) fail_msg("%s", line);
}

static int make_base(void **state) {
    if (folder_make(state) != 0) return -1;
    expectf(0, NULL, START, "base", "");
    return 0;
}

static void copy_damaged(const char *run, const char *how) {
    char line[4096];
    snprintf(line, sizeof line, "rm -rf %s && cp -r base %s", run, run);
    shell(line);
    snprintf(line, sizeof line, PYTHON, folder, run, how);
    if (system(line) != 0) fail_msg("%s", line);
}

static void test_readers(void **state) {
    (void)state;
    char line[512], older[256], *output = NULL;
    snprintf(older, sizeof older, "; an older checkpoint is good: %s/bad/checkpoints/step-20\n",
             folder);
    for (int i = 0; i < NFAULTS; i++) {
        copy_damaged("bad", faults[i][0]);
        for (int k = 0; k < NREADERS; k++) {
            snprintf(line, sizeof line, readers[k], "bad");
            int code = run_program(line, &output);
            if (code != 1 || !strstr(output, faults[i][1]) || !strstr(output, older))
                fail_msg("%s: %s\nexit code %d:\n%s", faults[i][0], line, code, output);
            free(output);
        }
    }
    for (int k = 0; k < NREADERS; k++) { /* the named checkpoint is intact */
        expectf(0, NULL, readers[k], k == 0 ? "base" : "bad/checkpoints/step-20");
    }
}

/* No checkpoint is named if none is intact. */
static void test_none_older(void **state) {
    (void)state;
    char *output = NULL;
    copy_damaged("alone", "nans()");
    shell("rm -r alone/checkpoints/step-20");
    assert_int_equal(run_program("generate @/alone", &output), 1);
    assert_null(strstr(output, "older"));
    free(output);
    copy_damaged("both", "nans()");
    shell(": > both/checkpoints/step-20/config.yaml");
    assert_int_equal(run_program("generate @/both", &output), 1);
    assert_null(strstr(output, "older"));
    free(output);
}

static void test_resume(void **state) {
    (void)state;
    char want[256];
    hash_of("base", want);
    for (int i = 0; i < NFAULTS; i += 4) {
        copy_damaged("bad", faults[i][0]);
        expectf(0, faults[i][1], START, "bad", " --resume");
        assert_hash("bad", want);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_readers),
        cmocka_unit_test(test_none_older),
        cmocka_unit_test(test_resume),
    };
    return cmocka_run_group_tests(tests, make_base, folder_remove);
}
