/* cmd_predict.c - lockstep predict RUN [DATA...] */
#include <stdlib.h>

#include "base/bar.h"
#include "base/cores.h"
#include "base/output.h"
#include "base/suffix.h"
#include "cli/device_option.h"
#include "cli/stream_text.h"
#include "cluster/workers.h"
#include "coll/virtual.h"
#include "infer/predicted.h"
#include "infer/rater.h"
#include "infer/recommend.h"
#include "train/worker_device.h"

enum {
    OUTPUT,
    JSON_LINES,
    CSV,
    TOP,
    LOGITS,
    VECTORS,
    USER,
    SIMILAR,
    SEEN,
    WORKERS,
    LABELS,
    EMA,
    SET,
    DEVICE
};
/* Samples that a worker predicts at a time, unless the batch of the predictor is larger. */
enum { ROWS = 64 };

/* What all workers of this process share. */
typedef struct work {
    const ls_args *args;
    int workers; /* threads of this process; 0: a launcher has started it */
    int64_t top;
    ls_predictor *predictor;
    ls_predicted *data;          /* } one of */
    ls_recommender *recommender; /* } these */
    ls_predictor_output outputs[LS_PREDICTIONS];
    ls_predictions form;
    cli_stream stream;
    ls_output *file; /* of -o, at worker 0 */
    const char *device;
    ls_worker_device own; /* under a launcher: this worker's */
} work;

/* ---- opening ---- */

/* CSV or JSON lines: as an option says, else as the file's name does. */
static bool is_json(const ls_args *a) {
    const char *file = cli_value(a, OUTPUT);
    if (cli_given(a, JSON_LINES) || cli_given(a, CSV)) return cli_given(a, JSON_LINES);
    return file && (ls_has_suffix(file, ".jsonl") || ls_has_suffix(file, ".json"));
}

/* A token's text; arg: the predictor. */
static void put_token(const void *arg, int64_t token, ls_buf *b) {
    const ls_predictor *p = arg;
    size_t n = 0;
    const uint8_t *bytes = ls_tokenizer_bytes(p->trained.tokenizer, (uint32_t)token, &n);
    ls_buf_append(b, bytes, n);
}

static ls_status set_form(work *w, ls_error *e) {
    const ls_args *a = w->args;
    w->form = (ls_predictions){.json = is_json(a),
                               .logits = cli_given(a, LOGITS),
                               .top = w->top,
                               .list = w->outputs,
                               .n = ls_predictor_noutputs(w->predictor)};
    for (int k = 0; k < w->form.n; k++) w->outputs[k] = ls_predicted_output(w->data, k);
    ls_predicted_set_keys(w->data, &w->form);
    if (w->predictor->is_text && w->predictor->trained.tokenizer) {
        w->form.put_class = put_token;
        w->form.arg = w->predictor;
    }
    return ls_predictions_check(&w->form, e);
}

/* Recommends items to users, in place of predictions of samples. */
static ls_status open_recommender(work *w, ls_error *e) {
    const ls_args *a = w->args;
    if (cli_given(a, USER) && cli_given(a, SIMILAR))
        return ls_fail(e, LS_EINVAL, "give --user or --similar, not both");
    ls_recommender_options o = {.users = a->options[USER].values,
                                .nusers = a->options[USER].n,
                                .items = a->options[SIMILAR].values,
                                .nitems = a->options[SIMILAR].n,
                                .seen = cli_given(a, SEEN),
                                .top = cli_given(a, TOP) ? w->top : 10,
                                .json = is_json(a)};
    return ls_recommender_open(w->predictor, &o, &w->recommender, e);
}

static ls_status check_for_samples(const work *w, ls_error *e) {
    const ls_args *a = w->args;
    if (!cli_given(a, USER) && !cli_given(a, SIMILAR) && !cli_given(a, SEEN)) return LS_OK;
    const char *name = cli_given(a, USER) ? "user" : cli_given(a, SIMILAR) ? "similar" : "seen";
    if (ls_rater_is_possible(w->predictor))
        return ls_fail(e, LS_EINVAL, "--%s recommends items; leave it out for the pairs of %s",
                       name, a->words[1]);
    return ls_fail(e, LS_EINVAL, "--%s is for runs that are trained on ratings (data.ratings)",
                   name);
}

static uint64_t count_of(const work *w) {
    return w->recommender ? ls_recommender_count(w->recommender) : ls_predicted_count(w->data);
}

static void begin(const work *w, ls_buf *b) {
    if (w->recommender)
        ls_recommender_begin(w->recommender, b);
    else
        ls_predictions_begin(&w->form, b);
}

static ls_status add_rows(const work *w, uint64_t first, uint64_t end, ls_buf *b, ls_error *e) {
    if (w->recommender) return ls_recommender_rows(w->recommender, first, end, b, e);
    return ls_predicted_rows(w->data, &w->form, first, end, b, e);
}

static ls_status open_data(work *w, ls_error *e) {
    const ls_args *a = w->args;
    char *paths = cli_join(a->words + 1, a->nwords - 1);
    ls_status s = ls_predicted_open(w->predictor, paths, cli_value(a, LABELS), &w->data, e);
    free(paths);
    return s;
}

static ls_status open_work(work *w, ls_error *e) {
    const ls_args *a = w->args;
    int threads = w->workers > 1 ? ls_cores() / w->workers : 0;
    ls_predictor_options o = {.ema = cli_given(a, EMA),
                              .threads = w->workers > 1 && threads < 1 ? 1 : threads,
                              .logits = cli_given(a, LOGITS),
                              .vectors = cli_given(a, VECTORS),
                              .device = w->device};
    LS_TRY(ls_predictor_open_with(a->words[0], &o, a->options[SET].values, a->options[SET].n,
                                  &w->predictor, e));
    if (ls_rater_is_possible(w->predictor) && a->nwords == 1) return open_recommender(w, e);
    LS_TRY(check_for_samples(w, e));
    LS_TRY(open_data(w, e));
    return set_form(w, e);
}

static void close_work(work *w) {
    ls_predicted_close(w->data);
    ls_recommender_close(w->recommender);
    ls_predictor_close(w->predictor);
    ls_output_drop(w->file);
}

/* ---- output ---- */

static ls_status open_output(work *w, ls_error *e) {
    const char *path = cli_value(w->args, OUTPUT);
    return path ? ls_output_open(path, &w->file, e) : LS_OK;
}

static ls_status put(work *w, const ls_buf *rows, ls_error *e) {
    if (w->file) return ls_output_put(w->file, rows->data, rows->len, e);
    return cli_stream_write((const uint8_t *)rows->data, rows->len, &w->stream, e);
}

static ls_status end_output(work *w, ls_error *e) {
    ls_output *file = w->file;
    w->file = NULL;
    return file ? ls_output_end(file, e) : LS_OK;
}

/* Worker 0 gets the rows of all, in their order. Collective. */
static ls_status collect(ls_group *g, const ls_buf *own, ls_buf *all, ls_error *e) {
    int n = ls_group_size(g);
    size_t *counts = LS_NEW_ARRAY(size_t, (size_t)n);
    uint64_t mine = own->len, *sizes = LS_NEW_ARRAY(uint64_t, (size_t)n), sum = 0;
    ls_status s = ls_all_gather(g, &mine, sizes, 1, LS_U64, e);
    for (int i = 0; s == LS_OK && i < n; i++) sum += counts[i] = (size_t)sizes[i];
    ls_buf_free(all);
    if (s == LS_OK && ls_group_rank(g) == 0) all->data = ls_alloc((size_t)sum + 1);
    if (s == LS_OK) s = ls_gather_v(g, own->data, own->len, all->data, counts, LS_U8, 0, e);
    if (s == LS_OK && all->data) all->len = (size_t)sum;
    free(counts);
    free(sizes);
    return s;
}

/* ---- work ---- */

/* The rows of a worker in a round: few rows are divided among all. */
static uint64_t choose_rows(const work *w, uint64_t n, uint64_t size) {
    uint64_t most = w->predictor->batch > ROWS ? (uint64_t)w->predictor->batch : ROWS;
    uint64_t each = (n + size - 1) / size;
    return each < 1 ? 1 : each < most ? each : most;
}

/* Rounds in which each worker predicts the next samples; the same on all. */
static ls_status predict_all(work *w, ls_group *g, ls_error *e) {
    uint64_t n = count_of(w), size = (uint64_t)ls_group_size(g), rank = (uint64_t)ls_group_rank(g);
    uint64_t rows = choose_rows(w, n, size);
    ls_buf own = {0}, all = {0};
    if (rank == 0 && w->data) ls_predicted_log(w->data);
    ls_status s = ls_agree(g, rank == 0 ? open_output(w, e) : LS_OK, e);
    ls_bar bar = ls_bar_begin("predicting", n);
    if (rank == 0) begin(w, &own);
    for (uint64_t round = 0; s == LS_OK && round < n; round += size * rows) {
        uint64_t first = round + rank * rows, end = first + rows < n ? first + rows : n;
        if (first < end) s = add_rows(w, first, end, &own, e);
        s = ls_agree(g, s, e);
        if (s == LS_OK) s = collect(g, &own, &all, e);
        if (s == LS_OK && rank == 0) s = put(w, &all, e);
        own.len = 0;
        if (rank == 0) ls_bar_at(&bar, round + size * rows < n ? round + size * rows : n);
        if (ls_interrupted() && s == LS_OK) s = ls_fail(e, LS_EABORT, "stopped by a signal");
    }
    if (rank == 0) ls_bar_end(&bar);
    if (s == LS_OK && w->data) s = ls_agree(g, ls_predicted_verify(w->data, e), e);
    if (s == LS_OK && rank == 0) s = end_output(w, e);
    ls_buf_free(&own);
    ls_buf_free(&all);
    return s;
}

static ls_status work_main(ls_group *g, ls_board_slot *me, void *arg, ls_error *e) {
    work *w = arg;
    (void)me;
    if (w->workers) return predict_all(w, g, e);
    if (w->device) {
        LS_TRY(ls_worker_device_choose(g, w->device, &w->own, e));
        w->device = w->own.name;
    }
    ls_status s = ls_agree(g, open_work(w, e), e);
    return s == LS_OK ? predict_all(w, g, e) : s;
}

static ls_status check(const ls_args *a, ls_error *e) {
    const char *file = cli_value(a, OUTPUT);
    if (cli_given(a, JSON_LINES) && cli_given(a, CSV))
        return ls_fail(e, LS_EINVAL, "give --json or --csv, not both");
    if (cli_given(a, VECTORS) && (cli_given(a, TOP) || cli_given(a, LOGITS)))
        return ls_fail(e, LS_EINVAL,
                       "--vectors: there are no classes; leave --top and --logits out");
    return file ? ls_output_check(file, e) : LS_OK;
}

static ls_status run_work(work *w, ls_error *e) {
    bool started = false;
    int n = 0;
    LS_TRY(ls_workers_started(&started, &n, e));
    if (started && cli_given(w->args, WORKERS))
        return ls_fail(e, LS_EINVAL, "-n: a launcher has started the workers; leave it out");
    if (started) w->workers = 0;
    if (!started) LS_TRY(open_work(w, e));
    return ls_workers_run(
        &(ls_workers){.n = started ? n : w->workers, .transport = started ? NULL : "thread"},
        work_main, w, e);
}

static int run(const ls_args *a) {
    ls_error e = {0};
    work w = {.args = a, .top = 1, .stream = cli_stream_open()};
    int64_t workers = 1;
    if (!cli_integer(&cmd_predict, a, TOP, 1, LS_PREDICTED_TOP, &w.top) ||
        !cli_integer(&cmd_predict, a, WORKERS, 1, 1024, &workers))
        return CLI_USAGE;
    if (check(a, &e) != LS_OK) {
        cli_fail(&e);
        return CLI_USAGE;
    }
    w.workers = (int)workers;
    w.device = cli_device(a, DEVICE);
    ls_status s = run_work(&w, &e);
    close_work(&w);
    return s == LS_OK ? 0 : cli_fail(&e);
}

const ls_command cmd_predict = {
    .name = "predict",
    .words = "RUN|CHECKPOINT|MODEL [DATA...]",
    .min_words = 1,
    .max_words = CLI_MAX_WORDS,
    .is_worker = true,
    .summary = "predict with a trained model",
    .about =
        "Writes what the model predicts of each sample of DATA: the most probable class with its\n"
        "probability, or numbers. DATA, files or directories, is read as the run's own data are\n"
        "(docs/reference/data.md); it needs no labels. Without DATA: the validation part of the\n"
        "run's data.\n"
        "\n"
        "A language model reads the lines of a text, or the members text, prompt or content of\n"
        "JSON lines, and predicts the token that follows; without a tokenizer, rows of tokens.\n"
        "\n"
        "For a run on ratings, DATA has pairs in the columns of users and items, and each pair\n"
        "gets a rating or a score. Without DATA it recommends items: to all users, or to those of\n"
        "--user, without the ones that they have chosen in the training data; or by --similar.\n"
        "\n"
        "The output is CSV, with a line for each sample: the number of its row in the data, the\n"
        "name of its file where it has one, and a column for each prediction; or JSON lines. It\n"
        "is the same for any number of workers and threads.",
    .options = {[OUTPUT] = {"output", 'o', "FILE",
                            "write this file anew: JSON lines if it ends in .jsonl, else CSV"},
                [JSON_LINES] = {"json", 0, NULL, "JSON lines (docs/reference/json.md)"},
                [CSV] = {"csv", 0, NULL, "CSV (the default)"},
                [TOP] = {"top", 0, "K", "the K most probable classes (default 1)"},
                [LOGITS] = {"logits", 0, NULL, "logits in place of probabilities"},
                [VECTORS] = {"vectors", 0, NULL,
                             "in place of predictions the vector that the last layer reads; of a "
                             "language model the mean over the tokens"},
                [USER] = {"user", 0, "ID",
                          "of a run on ratings: the items for this user, of all users without it "
                          "(repeatable; --top, default 10)"},
                [SIMILAR] = {"similar", 0, "ID",
                             "the items that are most similar to this one "
                             "(repeatable)"},
                [SEEN] = {"seen", 0, NULL, "also items that the user has chosen"},
                [WORKERS] = {"workers", 'n', "N",
                             "divide the samples among N workers of this host (default 1, which "
                             "uses all cores)"},
                [LABELS] = {"labels", 0, "FILE",
                            "files of labels, where the format has them apart; not needed"},
                [EMA] = {"ema", 0, NULL, "use the average of the weights (optim.ema)"},
                [SET] = {"set", 0, "KEY=VALUE",
                         "override a key of the run's config, e.g. data.format; repeatable"},
                [DEVICE] = CLI_DEVICE_OPTION},
    .run = run,
};
