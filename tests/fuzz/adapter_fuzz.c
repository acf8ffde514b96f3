/* adapter_fuzz.c - an adapter_config.json from a stranger: a config that it is accepted for can be
 * written and read again. */
#include <ftw.h>

#include "base/file.h"
#include "base/intern.h"
#include "config/write_config.h"
#include "fuzz.h"
#include "storage/adapter_file.h"

static char folder[] = "/tmp/lockstep-fuzz-XXXXXX";

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at) {
    (void)st, (void)kind, (void)at;
    return remove(path);
}

static void remove_folder(void) { nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS); }

static void make_folder(void) {
    static int made;
    if (made) return;
    made = 1;
    FUZZ_CHECK(mkdtemp(folder));
    atexit(remove_folder);
}

static void check_again(const ls_config *c) {
    ls_config *again = LS_NEW(ls_config);
    ls_buf text = {0}, text_again = {0};
    ls_error e = {0};
    ls_config_write(c, &text);
    ls_status s = ls_config_read(fuzz_file((const uint8_t *)text.data, text.len), again, &e);
    if (s != LS_OK) fprintf(stderr, "%s\n", e.msg);
    FUZZ_CHECK(s == LS_OK);
    ls_config_write(again, &text_again);
    FUZZ_CHECK(strcmp(text.data, text_again.data) == 0);
    ls_buf_free(&text);
    ls_buf_free(&text_again);
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
    ls_error e = {0};
    make_folder();
    char *path = ls_format("%s/adapter_config.json", folder);
    FILE *f = fopen(path, "wb");
    FUZZ_CHECK(f && fwrite(data, 1, nbytes, f) == nbytes && fclose(f) == 0);
    free(path);
    ls_config *c = LS_NEW(ls_config);
    ls_config_defaults(c);
    c->model.adapter = ls_intern(folder);
    c->model.from = "/base";
    if (ls_adapter_file_adopt(c, &e) == LS_OK) {
        FUZZ_CHECK(c->lora.rank >= 1);
        check_again(c);
    } else {
        FUZZ_CHECK(e.msg[0]);
    }
    free(c);
    return 0;
}
