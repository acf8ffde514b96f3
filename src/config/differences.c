/* differences.c - see differences.h. */
#include "config/differences.h"

#include <string.h>

#include "config/keys.h"
#include "config/relations.h"

/* Keys that a resumed run may change, since what changes is said then (relations.c). */
static bool changes_bits(const ls_config_key *k) {
    return k->resumed != LS_KEY_FREE || strcmp(k->name, "train.steps") == 0 ||
           strcmp(k->name, "parallel.reduce") == 0;
}

static ls_json *values_of(const ls_config *const *c, int n, const ls_config_key *k) {
    ls_json *values = ls_json_new_array();
    for (int i = 0; i < n; i++) {
        ls_buf text = {0};
        ls_config_key_write(c[i], k, &text);
        ls_json_push(values, ls_json_new_text(text.data));
        ls_buf_free(&text);
    }
    return values;
}

ls_json *ls_config_differences(const ls_config *const *c, int n) {
    ls_json *list = ls_json_new_array();
    const ls_config_key *k = NULL;
    for (int i = 0; (k = ls_config_key_at(i)); i++) {
        bool equal = true;
        for (int j = 1; j < n && equal; j++) equal = ls_config_key_is_equal(c[0], c[j], k);
        if (equal) continue;
        ls_json *one = ls_json_new_object();
        ls_json_set_text(one, "key", k->name);
        ls_json_set(one, "values", values_of(c, n, k));
        ls_json_set(one, "bits", ls_json_new_bool(changes_bits(k)));
        ls_json_push(list, one);
    }
    return list;
}

ls_json *ls_config_changes(const ls_config *was, const ls_config *now) {
    ls_json *o = ls_json_new_object();
    const ls_config *const both[] = {was, now};
    const ls_config_key *k = NULL;
    for (int i = 0; (k = ls_config_key_at(i)); i++)
        if (k->resumed == LS_KEY_STEERED && !ls_config_key_is_equal(was, now, k))
            ls_json_set(o, k->name, values_of(both, 2, k));
    return o;
}
