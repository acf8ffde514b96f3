/* tensor_part.c - see tensor_part.h. */
#include "model/tensor_part.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char MARK[] = ".slice.";

/* The slice that the name says; -1: it is a tensor's own. */
static int slice_of(const char *name) {
    const char *mark = strstr(name, MARK);
    return mark ? atoi(mark + sizeof MARK - 1) : -1;
}

void ls_tensor_part_name(const ls_param *p, char name[LS_NAME]) {
    const char *mark = strstr(p->name, MARK);
    snprintf(name, LS_NAME, "%s", p->name);
    if (!mark) return;
    const char *rest = mark + sizeof MARK - 1;
    rest += strspn(rest, "0123456789");
    memmove(name + (mark - p->name), rest, strlen(rest) + 1);
}

int64_t ls_tensor_part_dim(const ls_param *p, int dim) {
    return p->cut.part.all && p->cut.part.dim == dim ? p->cut.part.groups * p->cut.part.all
                                                     : p->dims[dim];
}

static bool is_inside(const ls_param *p, const ls_part_range *r) {
    return p->cut.slice >= r->slice && p->cut.slice < r->slice_end && p->cut.chunk >= r->chunk &&
           p->cut.chunk < r->chunk_end;
}

/* The first expert of the parameter's, if they are in the range; -1: they are not, or it has
 * none. */
static int64_t first_expert(const ls_param *p, const ls_part_range *r) {
    return p->ndims >= 3 && p->cut.part.all && is_inside(p, r) ? p->cut.part.first : -1;
}

bool ls_tensor_part_experts(const ls_model *m, ls_part_range r, int64_t from, int64_t *first_p,
                            int64_t *end_p) {
    int64_t first = -1;
    for (int i = 0; i < m->nparams; i++) {
        int64_t at = first_expert(&m->params[i], &r);
        if (at >= from && (first < 0 || at < first)) first = at;
    }
    if (first < 0) return false;
    *first_p = *end_p = first;
    for (bool grows = true; grows;) {
        grows = false;
        for (int i = 0; i < m->nparams; i++) {
            if (first_expert(&m->params[i], &r) != *end_p) continue;
            *end_p += m->params[i].dims[0];
            grows = true;
        }
    }
    return true;
}

size_t ls_tensor_part_run(const ls_param *p, size_t i, size_t *at_p) {
    const ls_tensor_part *c = &p->cut.part;
    if (!c->all) {
        *at_p = i;
        return p->count - i;
    }
    int64_t width = (int64_t)p->count / p->dims[0], row = (int64_t)i / width;
    int64_t column = (int64_t)i % width;
    int64_t each = p->dims[c->dim] / c->groups, n = c->dim ? column : row, at = n % each;
    int64_t whole = n / each * c->all + c->first + at;
    *at_p = (size_t)(c->dim ? row * c->groups * c->all + whole : whole * width + column);
    return (size_t)(c->dim ? each - at : (each - at) * width - column);
}

/* The first slice of the tensor is before this parameter, not far. */
static int first_slice(const ls_model *m, int param) {
    char name[LS_NAME], other[LS_NAME];
    ls_tensor_part_name(&m->params[param], name);
    for (int i = param - 1; i >= 0; i--) {
        ls_tensor_part_name(&m->params[i], other);
        if (slice_of(m->params[i].name) == 0 && strcmp(name, other) == 0) return i;
    }
    return param;
}

void ls_tensor_part_number(ls_model *m) {
    int tensors = 0;
    for (int i = 0; i < m->nparams; i++) {
        int first = slice_of(m->params[i].name) > 0 ? first_slice(m, i) : i;
        m->params[i].cut.part.tensor = first < i ? m->params[first].cut.part.tensor : ++tensors;
    }
}
