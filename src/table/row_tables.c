/* row_tables.c - see row_tables.h. */
#include "table/row_tables.h"

#include <string.h>
#include <sys/mman.h>

#include "base/round_up.h"

enum { PAGE = 4096 };

static size_t pages(size_t nbytes) { return ls_round_up(nbytes, PAGE); }

size_t ls_row_tables_nbytes(const ls_plan *p) {
    size_t tables = p->share.nbytes.tables;
    if (!tables) return 0;
    return PAGE + pages((size_t)ls_table_blocks(p->share.model)) + pages(tables);
}

ls_row_tables ls_row_tables_in(void *memory, const ls_plan *p) {
    char *at = memory;
    size_t here = pages((size_t)ls_table_blocks(p->share.model));
    return (ls_row_tables){.marks = memory,
                           .here = (unsigned char *)at + PAGE,
                           .values = (float *)(void *)(at + PAGE + here)};
}

void ls_row_tables_drop(const ls_row_tables *t, const ls_plan *p, const ls_table_block *b) {
    for (int k = 0; k < ls_optim_table_buffers(&p->share.optim); k++) {
        ls_optim_range r = ls_optim_table_block(&p->share.optim, p->share.model, b, k);
        char *begin = (char *)(t->values + r.first), *end = (char *)(t->values + r.end);
        char *first = begin + (PAGE - (uintptr_t)begin % PAGE) % PAGE;
        char *last = end - (uintptr_t)end % PAGE;
        if (first < last && madvise(first, (size_t)(last - first), MADV_REMOVE) == 0) {
            memset(begin, 0, (size_t)(first - begin));
            memset(last, 0, (size_t)(end - last));
        } else {
            memset(begin, 0, (size_t)(end - begin));
        }
    }
    t->here[b->number] = 0;
}
