/* engine.c - see engine.h. */
#include "serve/engine.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "infer/infer.h"
#include "model/types.h"
#include "serve/lookup.h"
#include "serve/page_name.h"
#include "tensor/gemm.h"

/* Rows of a step, at most. NOTED_ROWS: of prompts whose logits are wanted; GUESSED_ROWS: of a step
 * that has guesses, without those of prompts. */
enum { PAGE = LS_KEPT_PAGE, NOTED_ROWS = 64, GUESSED_ROWS = 8 };

struct ls_engine {
    const ls_trained *t;
    ls_engine_options o;
    ls_infer infer;
    size_t infer_nbytes; /* of memory for activations; 0: a device has them */
    ls_sampler sampler;
    ls_pages *pages;
    float *logits;       /* [nlogits][V] */
    float *adapter_room; /* of what computes; NULL: there are no adapters */
    float *hidden;       /* [rows][width] */
    int64_t width;
    int64_t nlogits, V;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work;
    bool ends;
    ls_error failed; /* its code is LS_OK as long as nothing has */
    ls_reply **list; /* [n] those that have not ended; those that wait by their turns */
    size_t n;
    int64_t turn; /* the latest that has begun */
    ls_engine_counts counts;
};

/* A reply's part of a step. */
typedef struct part {
    ls_reply *reply;
    int64_t first, rows;           /* of the step */
    int64_t first_wanted, nwanted; /* of the step's logits */
    bool noted;                    /* its rows are those of a prompt that is noted */
    int64_t nguesses;              /* its last rows are guesses */
    int64_t first_shown, nshown;   /* of the rows whose values are summed */
} part;

typedef struct step {
    part *parts; /* [n] */
    ls_past_text *texts;
    int n;
    uint32_t *tokens; /* [rows] */
    int64_t *wanted;
    int64_t rows, nwanted, nshown;
    int64_t *shown;           /* [nshown] */
    uint32_t *sorted_tokens;  /* } room for a copy, while parts are sorted */
    part *sorted;             /* } */
    ls_adapted_rows *adapted; /* [nadapted] */
    int nadapted;
} step;

/* Are the prompt's tokens noted? */
static bool notes_prompt(const ls_reply *r) { return r->rule->echo && r->rule->top >= 0; }

/* Are all of the prompt's tokens computed, since something of each is wanted? */
static bool reads_prompt(const ls_reply *r) { return notes_prompt(r) || r->rule->embeds; }

/* ---- a reply's pages ---- */

static void give_back(ls_engine *g, ls_reply *r) {
    ls_page_view_clear(g->pages, &r->view);
    r->computed = 0;
    r->nnamed = 0;
    r->name = ls_page_name_start(r->adapter);
    r->state = LS_REPLY_WAITS;
}

static ls_page_name name_after(const ls_reply *r) {
    return ls_page_name_of(&r->name, r->tokens + r->nnamed * LS_PAGE_PART, LS_PAGE_PART);
}

/* The names of the text's next parts, at most a page's; at least one token is left to compute. */
static int names_after(const ls_reply *r, ls_page_name names[LS_PAGE_PARTS]) {
    ls_reply x = *r;
    int n = 0;
    for (; n < LS_PAGE_PARTS && (x.nnamed + 1) * LS_PAGE_PART < r->n; x.nnamed++, n++)
        x.name = names[n] = name_after(&x);
    return n;
}

static void has_parts(ls_reply *r, int n, const ls_page_name *last) {
    r->nnamed += n;
    r->name = *last;
}

/* Pages with the beginning of the text, and a copy of one that begins as the next one does. Where
 * the prompt's tokens are noted, all are computed. False: the system has no addresses for them. */
static bool find_pages(ls_engine *g, ls_reply *r) {
    int room = (int)((r->nprompt + r->rule->most + PAGE - 1) / PAGE);
    ls_error e;
    if (!r->view.memory && ls_page_view_open(g->pages, room, &r->view, &e) != LS_OK) return false;
    bool all = reads_prompt(r) && r->noted < r->nprompt;
    ls_page_name names[LS_PAGE_PARTS];
    int n = all ? 0 : names_after(r, names);
    for (; n == LS_PAGE_PARTS && ls_page_view_find(g->pages, &r->view, &names[n - 1]);
         n = names_after(r, names))
        has_parts(r, n, &names[n - 1]);
    while (n > 0 && !ls_page_view_copy(g->pages, &r->view, &names[n - 1])) n--;
    if (n > 0) has_parts(r, n, &names[n - 1]);
    r->computed = r->nnamed * LS_PAGE_PART;
    if (r->nfound) return true;
    r->nfound = r->computed < r->nprompt ? r->computed : r->nprompt - 1;
    g->counts.found_tokens += r->nfound;
    return true;
}

/* What has been computed can be found by others. */
static void name_parts(ls_engine *g, ls_reply *r) {
    while ((r->nnamed + 1) * LS_PAGE_PART <= r->computed) {
        ls_page_name name = name_after(r);
        ls_page_view_name(g->pages, &r->view, r->nnamed, &name);
        has_parts(r, 1, &name);
    }
}

/* Room for positions [0, n). Returns for how many there is. */
static int64_t make_room(ls_engine *g, ls_reply *r, int64_t n) {
    while ((int64_t)r->view.n * PAGE < n && ls_page_view_grow(g->pages, &r->view)) continue;
    int64_t room = (int64_t)r->view.n * PAGE;
    return room < n ? room : n;
}

/* The same; replies that came later give their pages back if there is no room. False: it has
 * none. */
static bool force_room(ls_engine *g, ls_reply *r, int64_t n) {
    for (size_t i = g->n; make_room(g, r, n) < n; g->counts.preempted++) {
        while (i > 0 && g->list[i - 1] != r && g->list[i - 1]->view.n == 0) i--;
        if (i == 0 || g->list[i - 1] == r) return false;
        give_back(g, g->list[--i]);
    }
    return true;
}

/* ---- what a step computes ---- */

static void add_part(step *s, ls_reply *r, int64_t rows) {
    bool read = reads_prompt(r) && r->computed < r->nprompt && r->computed >= r->noted;
    bool noted = read && !r->rule->embeds;
    bool whole = r->computed + rows == r->n;
    part *p = &s->parts[s->n];
    *p = (part){
        .reply = r, .first = s->rows, .rows = rows, .first_wanted = s->nwanted, .noted = noted};
    s->n++;
    memcpy(s->tokens + s->rows, r->tokens + r->computed, (size_t)rows * sizeof *r->tokens);
    for (int64_t i = 0; i < rows; i++)
        if (noted || (whole && i + 1 == rows && !r->rule->embeds))
            s->wanted[s->nwanted++] = s->rows + i;
    p->nwanted = s->nwanted - p->first_wanted;
    p->nshown = read && r->rule->embeds ? rows : 0;
    s->rows += rows;
}

static int count_running(const ls_engine *g) {
    int n = 0;
    for (size_t i = 0; i < g->n; i++) n += g->list[i]->state == LS_REPLY_RUNS;
    return n;
}

/* Guesses of the tokens after a reply's last one, which is the last part of the step. They take no
 * page from others, and the step stays as small as rows that take little longer than one. */
static int64_t add_guesses(ls_engine *g, step *s, ls_reply *r, int64_t room) {
    uint32_t guesses[GUESSED_ROWS];
    part *p = &s->parts[s->n - 1];
    int64_t most = r->nprompt + r->rule->most - r->n - 1;
    if (r->rests > 0 && r->rests-- > 0) return 0;
    if (most > g->o.guesses) most = g->o.guesses;
    if (most > room) most = room;
    if (most > g->o.rows - s->rows) most = g->o.rows - s->rows;
    int64_t n = most > 0 && r->n > 3 ? ls_lookup(r->tokens, r->n, most, guesses) : 0;
    if (n < 1) return 0;
    n = make_room(g, r, r->n + n) - r->n;
    for (int64_t i = 0; i < n; i++) {
        s->tokens[s->rows] = guesses[i];
        s->wanted[s->nwanted++] = s->rows++;
    }
    p->nguesses = n > 0 ? n : 0;
    p->rows += p->nguesses;
    p->nwanted += p->nguesses;
    return p->nguesses;
}

/* One token of each reply that is being written. */
static void plan_tokens(ls_engine *g, step *s) {
    int64_t room = GUESSED_ROWS - count_running(g);
    for (size_t i = 0; i < g->n && s->rows < g->o.rows; i++) {
        ls_reply *r = g->list[i];
        if (r->state != LS_REPLY_RUNS || r->computed + 1 != r->n) continue;
        if (!force_room(g, r, r->n)) {
            give_back(g, r);
            continue;
        }
        add_part(s, r, 1);
        room -= add_guesses(g, s, r, room);
    }
}

static int64_t rows_of(const ls_engine *g, const step *s, const ls_reply *r) {
    int64_t left = r->n - r->computed, room = g->o.rows - s->rows;
    int64_t logits = g->nlogits - s->nwanted;
    if (notes_prompt(r) && room > logits) room = logits;
    if (reads_prompt(r) && r->computed < r->noted && left > r->noted - r->computed)
        left = r->noted - r->computed;
    if (logits < 1) room = 0;
    return left < room ? left : room;
}

/* Parts of prompts, in their order. A reply that finds no room keeps its place. */
static void plan_prompts(ls_engine *g, step *s) {
    int running = count_running(g);
    int64_t preempted = g->counts.preempted;
    for (size_t i = 0; i < g->n && s->rows < g->o.rows; i++) {
        ls_reply *r = g->list[i];
        bool waits = r->state == LS_REPLY_WAITS;
        if (waits && running >= g->o.texts) return;
        if (!waits && r->computed + 1 == r->n) continue; /* plan_tokens() */
        if (waits && !find_pages(g, r)) return;
        int64_t rows = rows_of(g, s, r);
        if (rows < 1) return;
        rows = make_room(g, r, r->computed + rows) - r->computed;
        if (rows < 1 && !waits && force_room(g, r, r->computed + 1)) rows = 1;
        if (rows < 1) {
            if (waits) give_back(g, r);
            return;
        }
        running += waits;
        r->state = LS_REPLY_RUNS;
        if (r->turn > g->turn) g->turn = r->turn;
        add_part(s, r, rows);
        if (g->counts.preempted > preempted) return; /* those wait for the next step */
    }
}

/* Adds what part p has of the step before it was arranged: its rows, and those of them that are
 * wanted. */
static void move_part(step *s, part p, const int64_t *wanted) {
    int64_t by = s->rows - p.first;
    memcpy(s->sorted_tokens + s->rows, s->tokens + p.first, (size_t)p.rows * sizeof *s->tokens);
    for (int64_t k = 0; k < p.nwanted; k++)
        s->wanted[s->nwanted + k] = wanted[p.first_wanted + k] + by;
    p.first = s->rows;
    p.first_wanted = s->nwanted;
    p.first_shown = s->nshown;
    for (int64_t k = 0; k < p.nshown; k++) s->shown[s->nshown++] = p.first + k;
    s->texts[s->n] = (ls_past_text){.first = p.first,
                                    .n = p.reply->computed,
                                    .kept = (float *)(void *)p.reply->view.memory,
                                    .pages = p.reply->view.of};
    s->parts[s->n++] = p;
    s->rows += p.rows;
    s->nwanted += p.nwanted;
}

/* Texts with one adapter come one after the other. Replies whose pages were given back after they
 * had been planned are in no step. */
static void arrange(const ls_engine *g, step *s) {
    int n = s->n;
    memcpy(s->sorted, s->parts, (size_t)n * sizeof *s->parts);
    memcpy(s->wanted + g->nlogits, s->wanted, (size_t)s->nwanted * sizeof *s->wanted);
    s->n = s->nadapted = 0;
    s->rows = s->nwanted = s->nshown = 0;
    for (int adapter = 0; adapter <= g->o.nadapters; adapter++) {
        int64_t first = s->rows;
        for (int i = 0; i < n; i++)
            if (s->sorted[i].reply->adapter == adapter && s->sorted[i].reply->view.n > 0)
                move_part(s, s->sorted[i], s->wanted + g->nlogits);
        if (adapter > 0 && s->rows > first)
            s->adapted[s->nadapted++] =
                (ls_adapted_rows){first, s->rows, g->o.adapters[adapter - 1].of};
    }
    uint32_t *tokens = s->tokens;
    s->tokens = s->sorted_tokens;
    s->sorted_tokens = tokens;
}

static void remove_reply(ls_engine *g, size_t i) {
    ls_reply *r = g->list[i];
    ls_page_view_close(g->pages, &r->view);
    memmove(g->list + i, g->list + i + 1, (--g->n - i) * sizeof(ls_reply *));
    r->left(r->arg, r);
}

static void remove_ended(ls_engine *g) {
    for (size_t i = g->n; i-- > 0;)
        if (g->list[i]->dropped || g->list[i]->state == LS_REPLY_ENDED) remove_reply(g, i);
}

static void plan_step(ls_engine *g, step *s) {
    s->n = 0;
    s->rows = s->nwanted = 0;
    remove_ended(g);
    plan_tokens(g, s);
    plan_prompts(g, s);
    arrange(g, s);
}

/* ---- steps ---- */

static void compute(ls_engine *g, const step *s) {
    const ls_row_adapters adapters = {s->adapted, s->nadapted, s->rows, g->adapter_room};
    const ls_infer_together o = {.tokens = s->tokens,
                                 .T = s->rows,
                                 .texts = s->texts,
                                 .ntexts = s->n,
                                 .page = ls_pages_stride(g->pages) / sizeof(float),
                                 .wanted = s->wanted,
                                 .nwanted = s->nwanted,
                                 .kept = g->o.kept,
                                 .logits = g->logits,
                                 .shown = s->shown,
                                 .nshown = s->nshown,
                                 .hidden = g->hidden,
                                 .adapters = s->nadapted ? &adapters : NULL};
    ls_infer_texts(&g->infer, &o);
}

/* The token after a part's last one, and those after its guesses as long as these are right. */
static void write_tokens(ls_engine *g, const step *s, const part *p) {
    ls_reply *r = p->reply;
    int64_t first = p->nwanted - p->nguesses - 1, right = 0;
    const uint32_t *guesses = s->tokens + p->first + p->rows - p->nguesses;
    for (int64_t k = 0;; k++) {
        ls_reply_write(r, &g->sampler, g->logits + (p->first_wanted + first + k) * g->V);
        g->counts.written_tokens++;
        bool ended = r->state == LS_REPLY_ENDED;
        if (ended || k == p->nguesses || r->tokens[r->n - 1] != guesses[k]) break;
        right++;
    }
    r->computed += right;
    g->counts.guessed_tokens += p->nguesses;
    g->counts.right_tokens += right;
    if (p->nguesses == 0) return;
    r->wrong = right ? 0 : r->wrong + 1;
    r->rests = right ? 0 : 1 << (r->wrong < 6 ? r->wrong : 6);
}

/* With the lock. */
static void take_results(ls_engine *g, const step *s) {
    for (int i = 0; i < s->n; i++) {
        const part *p = &s->parts[i];
        ls_reply *r = p->reply;
        const float *logits = g->logits + p->first_wanted * g->V;
        int64_t first = r->computed;
        r->computed += p->rows - p->nguesses;
        if (first < r->nprompt) g->counts.prompt_tokens += p->rows - p->nguesses;
        for (int64_t k = 0; k < p->rows && p->noted; k++)
            ls_reply_note_prompt(r, g->sampler.V, first + k, logits + k * g->V);
        for (int64_t k = 0; k < p->nshown; k++)
            ls_reply_sum(r, g->width, first + k, g->hidden + (p->first_shown + k) * g->width);
        if (r->computed == r->n && !r->dropped && r->rule->most == 0)
            ls_reply_finish(r, LS_END_LENGTH);
        else if (r->computed == r->n && !r->dropped)
            write_tokens(g, s, p);
        name_parts(g, r);
    }
    g->counts.steps++;
}

/* Replies that wait while none is written can only wait for memory of the system. */
static void wait_for_work(ls_engine *g) {
    struct timespec end;
    if (g->n == 0) {
        pthread_cond_wait(&g->work, &g->lock);
        return;
    }
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec++;
    pthread_cond_timedwait(&g->work, &g->lock, &end);
}

static step make_step(const ls_engine *g) {
    size_t rows = (size_t)g->o.rows;
    return (step){.parts = LS_NEW_ARRAY(part, rows),
                  .texts = LS_NEW_ARRAY(ls_past_text, rows),
                  .tokens = LS_NEW_ARRAY(uint32_t, rows),
                  .wanted = LS_NEW_ARRAY(int64_t, 2 * (size_t)g->nlogits),
                  .shown = LS_NEW_ARRAY(int64_t, rows),
                  .sorted_tokens = LS_NEW_ARRAY(uint32_t, rows),
                  .sorted = LS_NEW_ARRAY(part, rows),
                  .adapted = LS_NEW_ARRAY(ls_adapted_rows, (size_t)g->o.nadapters + 1)};
}

static void free_step(step *s) {
    free(s->parts), free(s->texts), free(s->tokens), free(s->wanted);
    free(s->sorted_tokens), free(s->sorted), free(s->adapted), free(s->shown);
}

static void remove_all(ls_engine *g) {
    while (g->n) {
        g->list[g->n - 1]->dropped = true;
        remove_reply(g, g->n - 1);
    }
}

/* What needs no lock: a step, and strips of one matrix. False: there is nothing to do, and the lock
 * was held. */
static bool work(ls_engine *g, const step *s) {
    if (s->n == 0 && !g->o.strips) return false;
    pthread_mutex_unlock(&g->lock);
    if (s->n) compute(g, s);
    bool more = g->o.strips && ls_strips_next(g->o.strips);
    pthread_mutex_lock(&g->lock);
    if (!more) g->o.strips = NULL;
    return true;
}

/* What is computed of lost bytes, or by a device that has failed, is worthless. */
static bool is_lost(ls_engine *g) {
    ls_error e = {0};
    if (ls_infer_check(&g->infer, &e) != LS_OK) g->failed = e;
    return g->failed.code != LS_OK;
}

static void give_results(ls_engine *g, const step *s) {
    if (!is_lost(g)) take_results(g, s);
    remove_ended(g);
    pthread_mutex_unlock(&g->lock);
    g->o.progress(g->o.arg);
    pthread_mutex_lock(&g->lock);
}

static void *engine_main(void *arg) {
    ls_engine *g = arg;
    step s = make_step(g);
    pthread_mutex_lock(&g->lock);
    while (!g->ends) {
        if (g->failed.code != LS_OK) {
            pthread_cond_wait(&g->work, &g->lock);
            continue;
        }
        plan_step(g, &s);
        if (!work(g, &s))
            wait_for_work(g);
        else if (s.n || is_lost(g))
            give_results(g, &s);
    }
    remove_all(g);
    pthread_mutex_unlock(&g->lock);
    free_step(&s);
    return NULL;
}

/* ---- opening ---- */

/* As many of n pages as the device has memory for, at least those of one text. */
static ls_status open_pages_there(ls_engine *g, ls_device *d, size_t page, int n, ls_error *e) {
    int least = (int)((g->o.context + PAGE - 1) / PAGE), most = n;
    ls_error why = {0};
    while (ls_pages_open(d, page, n, &g->pages, &why) != LS_OK) {
        if (why.code != LS_ENOMEM || n == least) return ls_fail(e, why.code, "%s", why.msg);
        n = n - n / 8 - 1 > least ? n - n / 8 - 1 : least;
    }
    if (n < most)
        ls_log("keys and values: the device has memory for %d of %d pages of %d tokens, %.1f MB", n,
               most, PAGE, (double)n * (double)page / 1e6);
    return LS_OK;
}

static ls_status open_pages(ls_engine *g, ls_error *e) {
    size_t page = ls_infer_page_floats(&g->t->model, g->o.kept) * sizeof(float);
    int64_t context = (g->o.context + PAGE - 1) / PAGE;
    if (page == 0)
        return ls_fail(e, LS_EINVAL, "%s: its layers do not continue texts, so it can't be served",
                       g->t->path);
    size_t most = g->o.memory_nbytes / page, texts = (size_t)context * (size_t)g->o.texts;
    int64_t n = (int64_t)(most < texts ? most : texts);
    if (n < context)
        return ls_fail(
            e, LS_EINVAL,
            "keys and values of one text of %lld tokens need %.1f MB, and there are %.1f "
            "(--cache-mb); or give a shorter --context",
            (long long)g->o.context, (double)context * (double)page / 1e6,
            (double)g->o.memory_nbytes / 1e6);
    ls_device *d = g->infer.compute->device;
    return d ? open_pages_there(g, d, page, (int)n, e)
             : ls_pages_open(NULL, page, (int)n, &g->pages, e);
}

/* Where what layers compute is: of cores in memory of the engine's own. */
static ls_status open_infer(ls_engine *g, ls_error *e) {
    const ls_trained *t = g->t;
    if (t->device) {
        g->infer = t->infer;
        return ls_infer_open_room(&g->infer, g->o.rows, g->o.texts, g->nlogits, e);
    }
    ls_dtype type = ls_config_compute(&t->config);
    g->infer = (ls_infer){.model = &t->model,
                          .compute = &t->compute,
                          .dtype = type,
                          .params = t->params,
                          .n = 1,
                          .frozen = t->infer.frozen};
    g->infer_nbytes = ls_infer_nbytes(&t->model, type, 1);
    return ls_map(g->infer_nbytes, "activations", &g->infer.memory, e);
}

static ls_status open_adapter_room(ls_engine *g, ls_error *e) {
    ls_device *d = g->infer.compute->device;
    int64_t rank = 0;
    void *there = NULL;
    for (int i = 0; i < g->o.nadapters; i++)
        if (g->o.adapters[i].rank > rank) rank = g->o.adapters[i].rank;
    size_t floats = (size_t)(g->o.rows * rank);
    if (!floats) return LS_OK;
    if (!d) {
        g->adapter_room = LS_NEW_ARRAY(float, floats);
        return LS_OK;
    }
    LS_TRY(ls_device_alloc(d, floats * sizeof(float), "adapters", &there, e));
    g->adapter_room = there;
    return LS_OK;
}

static ls_status open_memory(ls_engine *g, ls_error *e) {
    const ls_trained *t = g->t;
    g->V = ls_infer_nlogits(&t->model);
    g->width = ls_infer_width(&t->model);
    g->nlogits = g->o.texts > NOTED_ROWS ? g->o.texts : NOTED_ROWS;
    LS_TRY(open_infer(g, e));
    LS_TRY(open_pages(g, e));
    g->hidden = LS_NEW_ARRAY(float, (size_t)(g->o.rows * g->width));
    g->logits = LS_NEW_ARRAY(float, (size_t)(g->nlogits * g->V));
    LS_TRY(open_adapter_room(g, e));
    size_t tokens = ls_tokenizer_used(t->tokenizer);
    g->sampler = ls_sampler_create(tokens < (size_t)g->V ? tokens : (size_t)g->V, t->compute.k);
    return LS_OK;
}

static void free_engine(ls_engine *g) {
    ls_infer_close_room(&g->infer);
    if (g->infer_nbytes) ls_unmap(g->infer.memory, g->infer_nbytes);
    ls_pages_close(g->pages);
    if (g->logits) ls_sampler_free(&g->sampler);
    free(g->logits);
    if (g->infer.compute && g->infer.compute->device)
        ls_device_free(g->infer.compute->device, g->adapter_room);
    else
        free(g->adapter_room);
    free(g->hidden);
    free(g->list);
    free(g);
}

ls_status ls_engine_open(const ls_trained *t, const ls_engine_options *o, ls_engine **g_p,
                         ls_error *e) {
    int64_t context = t->config.model.context;
    if (o->context > context)
        return ls_fail(e, LS_EINVAL,
                       "--context %lld: the model reads %lld tokens; a published model reads as "
                       "many as --set model.context=%lld says, if it was made for them",
                       (long long)o->context, (long long)context, (long long)o->context);
    ls_engine *g = LS_NEW(ls_engine);
    *g = (ls_engine){.t = t, .o = *o};
    if (!g->o.context) g->o.context = context;
    if (g->o.rows > context) g->o.rows = context;
    ls_status s = open_memory(g, e);
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->work, NULL);
    int failed = s == LS_OK ? pthread_create(&g->thread, NULL, engine_main, g) : 0;
    if (failed)
        s = ls_fail(e, LS_EIO, "the engine's thread can't be started: %s", ls_thread_why(failed));
    if (s == LS_OK)
        *g_p = g;
    else
        free_engine(g);
    return s;
}

void ls_engine_close(ls_engine *g) {
    if (!g) return;
    ls_engine_lock(g);
    g->ends = true;
    pthread_cond_signal(&g->work);
    ls_engine_unlock(g);
    pthread_join(g->thread, NULL);
    pthread_mutex_destroy(&g->lock);
    pthread_cond_destroy(&g->work);
    free_engine(g);
}

int64_t ls_engine_context(const ls_engine *g) { return g->o.context; }

void ls_engine_lock(ls_engine *g) { pthread_mutex_lock(&g->lock); }
void ls_engine_unlock(ls_engine *g) { pthread_mutex_unlock(&g->lock); }

/* One that has begun, and given back its pages, has had an earlier turn. */
static bool waits_longer(const ls_reply *r, const ls_reply *than) {
    return r->state == LS_REPLY_WAITS && r->turn > than->turn;
}

void ls_engine_add(ls_engine *g, ls_reply *r) {
    r->begun_ns = ls_clock_ns();
    r->name = ls_page_name_start(r->adapter);
    r->turn = g->turn + (int64_t)r->number;
    g->list = ls_grow(g->list, g->n, sizeof(ls_reply *));
    size_t at = g->n++;
    for (; at > 0 && waits_longer(g->list[at - 1], r); at--) g->list[at] = g->list[at - 1];
    g->list[at] = r;
    pthread_cond_signal(&g->work);
}

int ls_engine_waiting(const ls_engine *g, int n) {
    int waiting = 0;
    for (size_t i = 0; i < g->n; i++)
        waiting += g->list[i]->state == LS_REPLY_WAITS && g->list[i]->turn < g->turn + n;
    return waiting;
}

bool ls_engine_failed(const ls_engine *g, ls_error *e) {
    if (g->failed.code != LS_OK && e) *e = g->failed;
    return g->failed.code != LS_OK;
}

ls_engine_counts ls_engine_count(const ls_engine *g) {
    ls_engine_counts c = g->counts;
    c.running = count_running(g);
    c.waiting = (int)g->n - c.running;
    c.pages = ls_pages_count(g->pages);
    c.pages_used = ls_pages_used(g->pages);
    return c;
}
