/* timeline_test.c - a timeline is read from its file as it was written; damaged files are refused;
 * the numbers of a small timeline, added up by hand; pictures are well-formed XML. */
#include "report/timeline.h"

#include <ctype.h>

#include "base/random.h"
#include "folder.h"
#include "networks/gpt2.h"
#include "report/frame_check.h"
#include "share/config.h"
#include "test.h"

typedef struct fixture {
    ls_model model;
    ls_plan plan;
    ls_timeline t;
} fixture;

/* Spans of random lengths, lane after lane. */
static void add_step(fixture *f, int step) {
    const ls_plan *p = &f->plan;
    ls_span *spans = LS_NEW_ARRAY(ls_span, (size_t)(p->nactions * p->share.nworkers));
    size_t n = 0;
    for (int w = 0; w < p->share.nworkers; w++) {
        int64_t now[LS_NLANES] = {w, 3 * w};
        for (int i = 0; i < p->nactions; i++) {
            uint32_t random[4];
            if (!ls_action_concerns(&p->actions[i], w)) continue;
            ls_random_words(9, LS_STREAM_FAKE, (uint64_t)(step * 100 + w), (uint64_t)i, random);
            ls_lane lane = ls_plan_lane(p, &p->actions[i]);
            int64_t begin = now[lane] + random[0] % 1000, end = begin + random[1] % 1000000;
            spans[n++] = (ls_span){i, w, lane, begin, end};
            now[lane] = end;
        }
    }
    ls_timeline_add(&f->t, p, step * INT64_C(7123456789), spans, n);
    free(spans);
}

static void set_up(fixture *f, int nworkers, int nsteps) {
    ls_error e = {0};
    ls_gpt_config c = {.layers = 2, .width = 24, .heads = 3, .context = 6, .vocab = 40};
    assert_ls_ok(ls_gpt_create(&c, &f->model, &e), e);
    ls_share_config p = {.model = &f->model,
                         .nworkers = nworkers,
                         .V = nworkers,
                         .batch = 2 * nworkers,
                         .micro_batch = 1,
                         .tree = true,
                         .bucket_nbytes = 20000,
                         .zero = 3,
                         .recompute = 2,
                         .prefetch = 1,
                         .compute = LS_F32,
                         .reduce = LS_F32};
    assert_ls_ok(ls_plan_make(&p, &f->plan, &e), e);
    ls_timeline_open(&f->t, &f->plan, "measured", "a \"machine\" <&> of µs, 2 cores", 2);
    for (int i = 0; i < nsteps; i++) add_step(f, i);
}

static void tear_down(fixture *f) {
    ls_timeline_free(&f->t);
    ls_plan_free(&f->plan);
    ls_model_free(&f->model);
}

static void assert_same(const ls_timeline *a, const ls_timeline *b) {
    assert_string_equal(a->label, b->label);
    assert_string_equal(a->machine, b->machine);
    assert_string_equal(a->plan, b->plan);
    assert_int_equal(a->nworkers, b->nworkers);
    assert_int_equal(a->nbuckets, b->nbuckets);
    assert_int_equal(a->first_step, b->first_step);
    assert_int_equal(a->nlayers, b->nlayers);
    for (int i = 0; i < a->nlayers; i++) assert_string_equal(a->layers[i], b->layers[i]);
    assert_int_equal(a->nsteps, b->nsteps);
    if (a->nsteps)
        assert_memory_equal(a->begins_ns, b->begins_ns, (size_t)a->nsteps * sizeof *a->begins_ns);
    assert_int_equal(a->nevents, b->nevents);
    for (size_t i = 0; i < a->nevents; i++) {
        const ls_timeline_event *v = &a->events[i], *w = &b->events[i];
        assert_int_equal(v->span.action, w->span.action);
        assert_int_equal(v->span.worker, w->span.worker);
        assert_int_equal(v->span.lane, w->span.lane);
        assert_int_equal(v->span.begin_ns, w->span.begin_ns);
        assert_int_equal(v->span.end_ns, w->span.end_ns);
        assert_int_equal(v->step, w->step);
        assert_int_equal(v->kind, w->kind);
        assert_int_equal(v->vw, w->vw);
        assert_int_equal(v->micro, w->micro);
        assert_int_equal(v->layer, w->layer);
        assert_int_equal(v->bucket, w->bucket);
        assert_int_equal(v->nbytes, w->nbytes);
    }
}

static void test_comes_back(void **state) {
    (void)state;
    static const int workers[] = {1, 2, 3, 5, 8};
    for (size_t i = 0; i < sizeof workers / sizeof *workers; i++)
        for (int nsteps = 0; nsteps <= 3; nsteps++) {
            fixture f;
            ls_timeline again;
            ls_buf text = {0};
            ls_error e = {0};
            set_up(&f, workers[i], nsteps);
            ls_timeline_json(&f.t, &text);
            assert_ls_ok(ls_timeline_parse(text.data, text.len, "it", &again, &e), e);
            assert_same(&f.t, &again);
            ls_timeline_free(&again);
            ls_buf_free(&text);
            tear_down(&f);
        }
}

/* Long texts are cut between characters. */
static void test_long_texts(void **state) {
    (void)state;
    for (int n = 0; n < 4; n++) {
        fixture f;
        ls_timeline again;
        ls_buf text = {0}, name = {0};
        ls_error e = {0};
        set_up(&f, 1, 0);
        ls_timeline_free(&f.t);
        for (int i = 0; i < n; i++) ls_buf_printf(&name, "x");
        for (int i = 0; i < 60; i++) ls_buf_printf(&name, "\u20ac");
        ls_timeline_open(&f.t, &f.plan, name.data, name.data, 1);
        ls_timeline_json(&f.t, &text);
        assert_ls_ok(ls_timeline_parse(text.data, text.len, "it", &again, &e), e);
        assert_same(&f.t, &again);
        assert_true(strlen(again.label) > 10 && strlen(again.machine) > 120);
        ls_timeline_free(&again);
        ls_buf_free(&text);
        ls_buf_free(&name);
        tear_down(&f);
    }
}

static void test_files(void **state) {
    (void)state;
    fixture f;
    ls_timeline again;
    ls_error e = {0};
    char path[64];
    set_up(&f, 2, 1);
    snprintf(path, sizeof path, "%s/it.json", folder);
    assert_ls_ok(ls_timeline_write(&f.t, path, &e), e);
    assert_ls_ok(ls_timeline_write(&f.t, path, &e), e); /* replaces */
    assert_ls_ok(ls_timeline_read(path, &again, &e), e);
    assert_same(&f.t, &again);
    ls_timeline_free(&again);
    snprintf(path, sizeof path, "%s/it.svg", folder);
    assert_ls_ok(ls_timeline_write(&f.t, path, &e), e);
    assert_ls_fails(ls_timeline_read(path, &again, &e), LS_EINVAL, "it.svg", e);
    assert_ls_fails(ls_timeline_write(&f.t, "it.txt", &e), LS_EINVAL, "FILE.json", e);
    assert_ls_fails(ls_timeline_write(&f.t, ".json", &e), LS_EINVAL, "FILE.json", e);
    snprintf(path, sizeof path, "%s/it.svg/it.svg", folder);
    assert_ls_fails(ls_timeline_write(&f.t, path, &e), LS_EIO, "it.svg/it.svg", e);
    tear_down(&f);
}

/* ---- damaged files ---- */

/* The text with the first `from` replaced. */
static char *replaced(const char *text, const char *from, const char *to) {
    const char *at = strstr(text, from);
    if (!at) fail_msg("no %s in the timeline", from);
    return ls_format("%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

static void test_damaged(void **state) {
    (void)state;
    static const struct {
        const char *from, *to, *says;
    } cases[] = {
        {"\"lockstep timeline\"", "\"another\"", "otherData.format"},
        {"\"version\": 1", "\"version\": 2", "otherData.version"},
        {"\"measured\"", "\"a label that is too long\"", "otherData.label"},
        {"\"measured\"", "\"\\u001b[2J\"", "otherData.label"},
        {"\"machine\": \"a", "\"machine\": 3, \"x\": \"a", "otherData.machine"},
        {"\"plan\": \"", "\"plan\": \"zz", "otherData.plan"},
        {"\"nworkers\": 2", "\"nworkers\": 0", "otherData.nworkers"},
        {"\"nworkers\": 2", "\"nworkers\": 99999999999", "otherData.nworkers"},
        {"\"nbuckets\": ", "\"nbuckets\": -", "otherData.nbuckets"},
        {"\"first_step\": 2", "\"first_step\": 2.5", "otherData.first_step"},
        {"\"begins_ns\": [0", "\"begins_ns\": [-1", "otherData.begins_ns"},
        {"\"begins_ns\": [0", "\"begins_ns\": [0.5", "otherData.begins_ns"},
        {"\"layers\": [", "\"layers\": [7, ", "otherData.layers"},
        {"\"layers\": [", "\"layers\": [\"\\n\", ", "otherData.layers"},
        {"\"otherData\"", "\"other\"", "no otherData"},
        {"\"traceEvents\"", "\"events\"", "no traceEvents"},
        {"\"ph\":\"X\"", "\"ph\":1", "bad ph"},
        {"\"cat\":\"Forward\"", "\"cat\":\"Forwards\"", "bad cat"},
        {"\"X\",\"pid\":1", "\"X\",\"pid\":2", "bad pid"},
        {"\"X\",\"pid\":0,\"tid\":0", "\"X\",\"pid\":0,\"tid\":2", "bad tid"},
        {"\"ts\":", "\"ts\":1e300,\"x\":", "bad ts"},
        {"\"ts\":", "\"ts\":\"now\",\"x\":", "bad ts"},
        {"\"dur\":", "\"dur\":-", "bad dur"},
        {"\"args\":{\"action\":", "\"args\":{\"action\":-1,\"x\":", "bad args.action"},
        {"\"step\":2", "\"step\":3", "bad args.step"},
        {"\"vw\":0", "\"vw\":-1", "bad args.vw"},
        {"\"micro\":0", "\"micro\":\"0\"", "bad args.micro"},
        {"\"layer\":0", "\"layer\":99", "bad args.layer"},
        {"\"bucket\":0", "\"bucket\":4096", "bad args.bucket"},
        {"\"bytes\":", "\"bytes\":1e3,\"x\":", "bad args.bytes"},
        {"\"args\":{\"action\"", "\"args\":[],\"more\":{\"action\"", "bad args.action"},
    };
    fixture f;
    ls_timeline again;
    ls_buf text = {0};
    ls_error e = {0};
    set_up(&f, 2, 1);
    ls_timeline_json(&f.t, &text);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *bad = replaced(text.data, cases[i].from, cases[i].to);
        assert_ls_fails(ls_timeline_parse(bad, strlen(bad), "it", &again, &e), LS_EINVAL,
                        cases[i].says, e);
        assert_null(strchr(e.msg, '\n'));
        free(bad);
    }
    static const char *const others[] = {"", "[]", "{}", "null", "{\"traceEvents\":[]}", "{"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_ls_fails(ls_timeline_parse(others[i], strlen(others[i]), "it", &again, &e),
                        LS_EINVAL, "it", e);
    ls_buf_free(&text);
    tear_down(&f);
}

/* A file cut short at any byte is refused; one with any byte changed is refused or read. */
static void test_damaged_anywhere(void **state) {
    (void)state;
    fixture f;
    ls_buf text = {0};
    ls_error e = {0};
    set_up(&f, 1, 1);
    f.t.nevents = 20;
    ls_timeline_json(&f.t, &text);
    for (size_t i = 0; i + 2 < text.len; i++) {
        ls_timeline again;
        assert_int_equal(ls_timeline_parse(text.data, i, "it", &again, &e), LS_EINVAL);
        char was = text.data[i];
        uint32_t random[4];
        ls_random_words(4, LS_STREAM_FAKE, 0, i, random);
        text.data[i] = "0-9e,:{}[]\"."[random[1] % 12];
        if (random[0] % 2) text.data[i] = (char)(random[1] % 256);
        if (ls_timeline_parse(text.data, text.len, "it", &again, &e) == LS_OK) {
            ls_buf out = {0};
            ls_timeline_svg(&again, &out);
            ls_timeline_diff(&again, &f.t, &out);
            ls_buf_free(&out);
            ls_timeline_free(&again);
        }
        text.data[i] = was;
    }
    ls_buf_free(&text);
    tear_down(&f);
}

/* ---- numbers ---- */

static int find(const ls_plan *p, ls_action_kind kind) {
    for (int i = 0; i < p->nactions; i++)
        if (p->actions[i].kind == kind) return i;
    fail();
    return -1;
}

/* Worker 0 computes 0-4 and 6-9, communicates 3-7; worker 1 computes 0-2, communicates 8-10. */
static void test_measure(void **state) {
    (void)state;
    fixture f;
    ls_timeline_times m;
    set_up(&f, 2, 0);
    int forward = find(&f.plan, LS_FORWARD), backward = find(&f.plan, LS_BACKWARD);
    int reduce = find(&f.plan, LS_REDUCE_SCATTER);
    const ls_span spans[] = {{backward, 0, LS_LANE_COMPUTE, 6000, 9000},
                             {forward, 0, LS_LANE_COMPUTE, 0, 4000},
                             {reduce, 0, LS_LANE_COMM, 3000, 7000},
                             {forward, 1, LS_LANE_COMPUTE, 0, 2000},
                             {reduce, 1, LS_LANE_COMM, 8000, 10000},
                             {reduce, 1, LS_LANE_COMM, 8500, 9500}}; /* at the same time */
    for (int i = 0; i < 2; i++) ls_timeline_add(&f.t, &f.plan, i * 10000, spans, 6);
    for (int step = -1; step < 2; step++) {
        ls_timeline_measure(&f.t, step, &m);
        assert_true(m.step == 10000);
        assert_true(m.busy[LS_LANE_COMPUTE] == (7000 + 2000) / 2.0);
        assert_true(m.busy[LS_LANE_COMM] == (4000 + 2000) / 2.0);
        assert_true(m.exposed == (2000 + 2000) / 2.0);
        assert_true(m.kinds[LS_FORWARD] == (4000 + 2000) / 2.0);
        assert_true(m.kinds[LS_BACKWARD] == 3000 / 2.0);
        assert_true(m.kinds[LS_REDUCE_SCATTER] == (4000 + 2000) / 2.0);
        assert_true(m.counts[LS_FORWARD] == 2);
        assert_true(m.counts[LS_BACKWARD] == 1);
        assert_true(m.counts[LS_LOAD] == 0);
    }
    tear_down(&f);
}

/* Worker 0 waits from 1 to 5 for worker 1, and from 2 to 6 for it with another message; both move
 * at the same time. The third one is of worker 0 alone. */
static void test_waiting(void **state) {
    (void)state;
    fixture f;
    ls_timeline_times m;
    ls_buf svg = {0};
    set_up(&f, 2, 0);
    int one = find(&f.plan, LS_REDUCE_SCATTER), two = one + 1;
    while (f.plan.actions[two].kind != LS_REDUCE_SCATTER) two++;
    const ls_span spans[] = {{one, 0, LS_LANE_COMM, 1000, 8000},
                             {two, 0, LS_LANE_COMM, 2000, 9000},
                             {find(&f.plan, LS_ALL_GATHER), 0, LS_LANE_COMM, 9500, 10000},
                             {one, 1, LS_LANE_COMM, 5000, 8000},
                             {two, 1, LS_LANE_COMM, 6000, 9000}};
    ls_timeline_add(&f.t, &f.plan, 0, spans, 5);
    ls_timeline_measure(&f.t, 0, &m);
    assert_true(m.busy[LS_LANE_COMM] == (8000 + 500 + 4000) / 2.0);
    assert_true(m.waiting == 4000 / 2.0);
    assert_true(m.kinds[LS_REDUCE_SCATTER] == (8000 + 4000) / 2.0);
    assert_true(m.moving[LS_REDUCE_SCATTER] == (4000 + 4000) / 2.0);
    assert_true(m.moving[LS_ALL_GATHER] == 500 / 2.0);
    ls_timeline_svg(&f.t, &svg);
    frame_check(svg.data);
    assert_non_null(strstr(svg.data, ">ReduceScatter 40.0%<"));
    assert_non_null(strstr(svg.data, ">waiting for other workers 20.0%<"));
    assert_non_null(strstr(svg.data, ", of which it waits 4 "));
    ls_buf_free(&svg);
    tear_down(&f);
}

static void test_diff(void **state) {
    (void)state;
    fixture f, g;
    ls_buf out = {0};
    set_up(&f, 2, 0);
    set_up(&g, 2, 0);
    int forward = find(&f.plan, LS_FORWARD), reduce = find(&f.plan, LS_REDUCE_SCATTER);
    ls_span spans[] = {{forward, 0, LS_LANE_COMPUTE, 0, 4000000},
                       {reduce, 0, LS_LANE_COMM, 4000000, 8000000}};
    ls_timeline_add(&f.t, &f.plan, 0, spans, 2);
    spans[0].end_ns = 5000000;
    spans[1].begin_ns = 5000000;
    ls_timeline_add(&g.t, &g.plan, 0, spans, 2);
    ls_timeline_diff(&f.t, &g.t, &out);
    assert_null(strstr(out.data, "the plans differ"));
    assert_non_null(strstr(out.data, "  Forward             1      2.000   25.0%       1      2.500"
                                     "   31.2%     +0.500\n"));
    const char *name = strstr(out.data, "largest differences, ms");
    assert_non_null(name);
    assert_non_null(strstr(name, "\n  Forward "));
    assert_non_null(strstr(name, "+25.0%"));
    assert_non_null(strstr(name, "\n  ReduceScatter bucket "));
    ls_buf_free(&out);
    memcpy(g.t.plan, "0000", 4);
    ls_timeline_diff(&f.t, &g.t, &out);
    assert_non_null(strstr(out.data, "the plans differ"));
    ls_buf_free(&out);
    tear_down(&f);
    tear_down(&g);
}

/* ---- XML ---- */

/* Elements nest, attributes are quoted, & begins a reference, control characters don't occur. */
static void assert_xml(const char *s) {
    char names[16][16];
    int depth = 0;
    for (; *s; s++) {
        assert_true((unsigned char)*s >= 0x20 || *s == '\n');
        if (*s == '&') {
            assert_true(s[1] == '#' && isdigit((unsigned char)s[2]) && strchr(s, ';'));
        } else if (*s == '<') {
            bool closes = s[1] == '/', quoted = false;
            const char *name = s + 1 + closes, *end = name;
            size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz");
            assert_true(n > 0 && n < 16);
            for (; *end && (quoted || *end != '>'); end++) {
                if (*end == '"') quoted = !quoted;
                assert_true(*end != '<');
            }
            assert_true(*end == '>');
            if (closes) {
                assert_true(depth > 0);
                depth--;
                assert_true(strlen(names[depth]) == n && strncmp(names[depth], name, n) == 0);
            } else if (end[-1] != '/') {
                assert_true(depth < 16);
                memcpy(names[depth], name, n);
                names[depth++][n] = 0;
            }
            s = end;
        } else {
            assert_true(*s != '>');
        }
    }
    assert_int_equal(depth, 0);
}

static void test_svg(void **state) {
    (void)state;
    static const int workers[] = {1, 2, 3, 8, 20, 64};
    for (size_t i = 0; i < sizeof workers / sizeof *workers; i++)
        for (int nsteps = 0; nsteps <= 2; nsteps++) {
            fixture f;
            ls_buf out = {0};
            set_up(&f, workers[i], nsteps);
            ls_timeline_svg(&f.t, &out);
            assert_int_equal(strncmp(out.data, "<svg ", 5), 0);
            assert_null(strstr(out.data, "(null)")); /* each kind has a colour */
            assert_xml(out.data);
            frame_check(out.data);
            char last[16];
            snprintf(last, sizeof last, ">w%d", workers[i] < 8 ? workers[i] - 1 : 0);
            assert_non_null(strstr(out.data, last));
            assert_non_null(strstr(out.data, ">idle<"));
            if (nsteps) assert_non_null(strstr(out.data, "<title>Backward h.1.mlp vw 0 micro 0: "));
            ls_buf_free(&out);
            tear_down(&f);
        }
}

/* Very many narrow actions are drawn together. */
static void test_svg_has_a_limit(void **state) {
    (void)state;
    enum { N = 200000 };
    fixture f;
    ls_buf out = {0};
    set_up(&f, 1, 0);
    ls_span *spans = LS_NEW_ARRAY(ls_span, N);
    int forward = find(&f.plan, LS_FORWARD);
    for (int i = 0; i < N; i++)
        spans[i] = (ls_span){forward, 0, LS_LANE_COMPUTE, 10 * i, 10 * i + 9};
    ls_timeline_add(&f.t, &f.plan, 0, spans, N);
    ls_timeline_svg(&f.t, &out);
    assert_xml(out.data);
    frame_check(out.data);
    assert_non_null(strstr(out.data, "200000 times Forward"));
    assert_true(out.len < 20000);
    free(spans);
    ls_buf_free(&out);
    tear_down(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_comes_back),
        cmocka_unit_test_setup_teardown(test_files, make_folder, remove_folder),
        cmocka_unit_test(test_long_texts),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_damaged_anywhere),
        cmocka_unit_test(test_measure),
        cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_diff),
        cmocka_unit_test(test_svg),
        cmocka_unit_test(test_svg_has_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
