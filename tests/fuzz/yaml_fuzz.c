/* yaml_fuzz.c - a YAML file: without lists, with lists, and as a config. */
#include <string.h>

#include "base/yaml.h"
#include "config/relations.h"
#include "fuzz.h"

/* Each line of a list of maps is empty, or pairs with a '=' each, separated by tabs. */
static void check_maps(const char *value) {
    for (const char *pair = value; *pair; pair += strcspn(pair, "\t\n"), pair += *pair != 0)
        FUZZ_CHECK(*pair == '\n' || memchr(pair, '=', strcspn(pair, "\t\n")));
}

static void check_items(ls_yaml *y, bool lists) {
    for (size_t i = 0; i < y->nitems; i++) {
        const ls_yaml_item *item = &y->items[i];
        FUZZ_CHECK(item->key && item->value && item->line >= 1);
        FUZZ_CHECK(lists || !item->is_list);
        FUZZ_CHECK(item->is_list || !item->has_maps);
        if (item->has_maps) check_maps(item->value);
    }
    ls_yaml_free(y);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
    static ls_config c;
    const char *path = fuzz_file(data, nbytes);
    for (int lists = 0; lists < 2; lists++) {
        ls_yaml y = {0};
        ls_error e = {0};
        if ((lists ? ls_yaml_read_lists : ls_yaml_read)(path, &y, &e) == LS_OK)
            check_items(&y, lists);
        else
            FUZZ_CHECK(e.msg[0]);
    }
    ls_error e = {0};
    if (ls_config_load(path, NULL, 0, &c, &e) != LS_OK) FUZZ_CHECK(e.msg[0]);
    return 0;
}
