/* column_rules.c - see column_rules.h. */
#include "source/tables/column_rules.h"

#include <stdlib.h>
#include <string.h>

static ls_status fail_column(const ls_features *columns, const char *what, const char *key,
                             const char *name, ls_error *e) {
    ls_buf has = {0};
    for (size_t i = 0; i < columns->n && has.len < 300; i++)
        ls_buf_printf(&has, "%s'%.40s'", i ? ", " : "", columns->list[i].name);
    ls_status status = ls_fail(e, LS_EINVAL, "%s: %s: there is no column '%.80s'; it has %.340s",
                               what, key, name, has.data ? has.data : "none");
    ls_buf_free(&has);
    return status;
}

static ls_status check_names(const ls_features *columns, const ls_column_rules *r, ls_error *e) {
    for (size_t i = 0; i < r->rules->nrules; i++) {
        const char *name = r->rules->rules[i].column;
        if (strcmp(name, "*") != 0 && !ls_features_find(columns, name))
            return fail_column(columns, r->what, "data.missing", name, e);
    }
    for (const char *t = r->rules->texts; t && *t;) {
        char *name = ls_format("%.*s", (int)strcspn(t, "\n"), t);
        bool there = ls_features_find(columns, name) != NULL;
        if (!there) fail_column(columns, r->what, "data.csv: texts", name, e);
        free(name);
        if (!there) return LS_EINVAL;
        t += strcspn(t, "\n");
        t += *t == '\n';
    }
    return LS_OK;
}

ls_status ls_column_rules_find(const ls_features *columns, const ls_column_rules *r,
                               ls_column_rule **of_p, ls_error *e) {
    if (!r->may_lack) LS_TRY(check_names(columns, r, e));
    ls_column_rule *of = LS_NEW_ARRAY(ls_column_rule, columns->n);
    for (size_t i = 0; i < columns->n; i++)
        of[i].missing = ls_csv_rules_missing(r->rules, columns->list[i].name, r->other, &of[i].own);
    *of_p = of;
    return LS_OK;
}
