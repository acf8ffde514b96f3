/* table_blocks.c - see table_blocks.h. */
#include "model/table_blocks.h"

enum {
    ROWS = 1024, /* of a block: one float of each fills a page */
    BLOCKS = 64  /* of a table at least, if it has enough rows */
};

int64_t ls_table_block_rows(const ls_param *p) {
    if (p->window.rows >= (int64_t)ROWS * BLOCKS) return ROWS;
    return p->window.rows >= BLOCKS ? p->window.rows / BLOCKS : 1;
}

static int64_t blocks_of(const ls_param *p) {
    if (!p->window.rows) return 0;
    int64_t each = ls_table_block_rows(p);
    return (p->window.rows + each - 1) / each;
}

int64_t ls_table_blocks_before(const ls_model *m, int param) {
    int64_t n = 0;
    for (int i = 0; i < param; i++) n += blocks_of(&m->params[i]);
    return n;
}

int64_t ls_table_blocks(const ls_model *m) { return ls_table_blocks_before(m, m->nparams); }

bool ls_table_block_next(const ls_model *m, ls_table_block *b) {
    bool more = b->param >= 0 && b->end < m->params[b->param].window.rows;
    b->first = more ? b->end : 0;
    if (!more) b->param++;
    while (b->param < m->nparams && !m->params[b->param].window.rows) b->param++;
    if (b->param >= m->nparams) return false;
    const ls_param *p = &m->params[b->param];
    b->end = b->first + ls_table_block_rows(p);
    if (b->end > p->window.rows) b->end = p->window.rows;
    b->number++;
    return true;
}
