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

/* The text of a tree is one. */
static void check_tree(const ls_yaml_item *item) {
    ls_yaml_node *root = NULL;
    ls_error e = {0};
    ls_status s = ls_yaml_parse_tree(item->value, "x", item->line, &root, &e);
    FUZZ_CHECK(s == LS_OK || strstr(e.msg, "occurs twice"));
    ls_yaml_node_free(root);
}

static bool is_tree(const char *key) { return key[0] == 'm'; }

static void check_items(ls_yaml *y, int lists) {
    for (size_t i = 0; i < y->nitems; i++) {
        const ls_yaml_item *item = &y->items[i];
        FUZZ_CHECK(item->key && item->value && item->line >= 1);
        FUZZ_CHECK(lists || !item->is_list);
        FUZZ_CHECK(item->is_list || !item->has_maps);
        if (item->has_maps) check_maps(item->value);
        if (item->is_tree) check_tree(item);
    }
    ls_yaml_free(y);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
    static ls_config c;
    const char *path = fuzz_file(data, nbytes);
    for (int lists = 0; lists < 3; lists++) {
        ls_yaml y = {0};
        ls_error e = {0};
        ls_status s = lists ? ls_yaml_read_lists(path, lists == 2 ? is_tree : NULL, &y, &e)
                            : ls_yaml_read(path, &y, &e);
        if (s == LS_OK)
            check_items(&y, lists);
        else
            FUZZ_CHECK(e.msg[0]);
    }
    ls_error e = {0};
    if (ls_config_load(path, NULL, 0, &c, &e) != LS_OK) FUZZ_CHECK(e.msg[0]);
    return 0;
}
