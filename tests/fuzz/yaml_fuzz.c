/* yaml_fuzz.c - a YAML file. */
#include "base/yaml.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
    ls_yaml y = {0};
    ls_error e = {0};
    if (ls_yaml_read(fuzz_file(data, nbytes), &y, &e) != LS_OK) {
        FUZZ_CHECK(e.msg[0]);
        return 0;
    }
    for (size_t i = 0; i < y.nitems; i++)
        FUZZ_CHECK(y.items[i].key && y.items[i].value && y.items[i].line >= 1);
    ls_yaml_free(&y);
    return 0;
}
