/* sliced.c - see sliced.h. */
#include "networks/sliced.h"

#include <stdio.h>

/* ---- what can be cut ---- */

ls_status ls_sliced_check(const ls_config *c, const ls_sliced_sizes *s, ls_error *e) {
    int64_t n = c->parallel.tensor_virtual, most = n;
    const char *what = NULL;
    if (n == 1) return LS_OK;
    if (!ls_config_has_tokens(c))
        return ls_fail(e, LS_EINVAL,
                       "parallel.tensor_virtual %lld: only models of kind gpt2 and llama are cut "
                       "into slices; set 1",
                       (long long)n);
    bool shares = n > s->kv_heads && n <= s->heads && n % s->kv_heads == 0;
    if (s->kv_heads < most && s->kv_heads < s->heads && !shares)
        return ls_fail(
            e, LS_EINVAL,
            "parallel.tensor_virtual %lld: the model has %lld heads of keys and values and "
            "%lld of queries, which slices divide, or share; set %lld or less, or a "
            "multiple of it up to %lld",
            (long long)n, (long long)s->kv_heads, (long long)s->heads, (long long)s->kv_heads,
            (long long)s->heads);
    if (s->heads < most) most = s->heads, what = "heads of keys and values";
    if (s->experts && s->experts < most) most = s->experts, what = "experts (model.experts)";
    if (s->ffn && s->ffn < most) most = s->ffn, what = "hidden units (model.ffn)";
    if (s->vocab < most) most = s->vocab, what = "tokens (model.vocab)";
    if (!what) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "parallel.tensor_virtual %lld: the model has %lld %s, and each slice needs one; "
                   "set %lld or less",
                   (long long)n, (long long)most, what, (long long)most);
}

/* ---- slices ---- */

void ls_sliced_begin(const ls_sliced *s) { ls_build_slice(s->m, s->k, s->n); }

ls_sliced_name ls_sliced_named(const ls_sliced *s, const char *name) {
    ls_sliced_name n;
    if (s->n == 1)
        snprintf(n.text, sizeof n.text, "%s", name);
    else
        snprintf(n.text, sizeof n.text, "%.40s.slice.%d", name, s->k);
    return n;
}

int64_t ls_sliced_first(const ls_sliced *s, int64_t all) { return all * s->k / s->n; }

int64_t ls_sliced_count(const ls_sliced *s, int64_t all) {
    return all * (s->k + 1) / s->n - ls_sliced_first(s, all);
}

void ls_sliced_set(const ls_sliced *s, const ls_value *v, ls_sliced_part p) {
    if (s->n == 1 || !ls_build_is_good(s->m)) return;
    const ls_layer *l = &s->m->layers[v->layer];
    s->m->params[l->params[p.param]].cut.part =
        (ls_tensor_part){.dim = p.dim,
                         .groups = p.groups,
                         .first = ls_sliced_first(s, p.units) * p.size,
                         .all = p.units * p.size};
}
