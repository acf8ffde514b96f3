/* damage_kinds_test.c - formats and kinds of damage: each is refused with its place, or with
 * data.damaged: skip left out, named and counted, and the run has the bits of the data without it.
 */
/* ctest: seconds=8 */
#include "cli/program.h"

#define TRAIN "train: {steps: 3, batch: 4, virtual_workers: 2, eval_every: 0}\noptim: {warmup: 1}\n"

enum { LINES = 40 };

/* A format: a good line (its number for %d), and what is above them. */
static const struct {
    const char *name, *config, *above, *line;
} formats[] = {
    {"t.csv", "model: {kind: mlp, hidden: [4]}\n", "x,label\n", "%d.5,1\n"},
    {"t.jsonl", "model: {kind: mlp, hidden: [4]}\n", "", "{\"x\": %d.5, \"label\": 1}\n"},
    {"texts.jsonl", "model: {kind: gpt2, layers: 1, width: 8, heads: 1, context: 8, vocab: 258}\n",
     "", "{\"text\": \"it is %d and no more\"}\n"},
    {"r.csv", "model: {kind: factors, width: 4, loss: {bpr: {target: clicked}}}\n",
     "user,item,rating\n", "%d,%d,3\n"},
    {"c.csv",
     "model: {kind: wide_deep, width: 4, hidden: [4], loss: {binary_cross_entropy: {target: "
     "clicked}}}\n",
     "clicked,shop,price\n", "1,s%d,2\n"},
};

static const char *data_of(const char *name) {
    return name[0] == 'r'   ? ", ratings: {user: user, item: item, rating: rating, negatives: 2}"
           : name[0] == 'c' ? ", clicks: {clicked: clicked, ids: [shop], numbers: [price]}"
                            : "";
}

/* Damaged lines of each format: one bad line, and what is said of it. */
static const struct {
    const char *name, *bad, *says;
} kinds[] = {
    {"t.csv", "no,1\n", "column 1, 'x', has the text 'no'"},
    {"t.csv", "1\n", "has 1 column, the first line 2"},
    {"t.csv", "\"1,1\n", "has a quote that is not closed"},
    {"t.csv", "1,1,1\n", "has 3 columns, the first line 2"},
    {"t.jsonl", "{\"x\": 1\n", "is not valid JSON"},
    {"t.jsonl", "{\"x\": \"a\", \"label\": 1}\n", "'x'"},
    {"t.jsonl", "{\"x\": 1}\n", "'label'"},
    {"t.jsonl", "[1]\n", "t.jsonl:21"},
    {"texts.jsonl", "{\"text\": \"a\n", "is not valid JSON"},
    {"texts.jsonl", "{\"text\": [1]}\n", "has no text 'text'"},
    {"texts.jsonl", "{\"text\": \"caf\xe9\"}\n", "is not valid JSON"},
    {"r.csv", "1,1\n", "has 2 columns"},
    {"r.csv", "1,1,x\n", "rating"},
    {"c.csv", "1,s\n", "has 2 columns"},
    {"c.csv", "1,s,x\n", "price"},
};

static void write_data(size_t f, const char *bad) {
    ls_buf text = {0};
    ls_buf_printf(&text, "%s", formats[f].above);
    for (int i = 0; i < LINES; i++) {
        if (i == 20 - (*formats[f].above != 0)) ls_buf_printf(&text, "%s", bad);
        ls_buf_printf(&text, formats[f].line, i % 5, i % 9);
    }
    write_file(formats[f].name, text.data, text.len);
    ls_buf_free(&text);
}

static size_t format_of(const char *name) {
    size_t f = 0;
    while (strcmp(formats[f].name, name) != 0) f++;
    return f;
}

static void test_kinds(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        size_t f = format_of(kinds[k].name);
        char config[512], good[256], bad[256], *output = NULL;
        int n =
            snprintf(config, sizeof config, "%sdata: {path: %s/%s, val_fraction: 0.2%s}\n" TRAIN,
                     formats[f].config, folder, formats[f].name, data_of(formats[f].name));
        write_file("c.yaml", config, (size_t)n);
        write_data(f, "");
        expect("train @/c.yaml -n 1 -o @/good", 0, NULL);
        write_data(f, kinds[k].bad);
        assert_int_equal(run_program("train @/c.yaml -n 1 -o @/bad", &output), 1);
        if (!strstr(output, kinds[k].says) || !strstr(output, ":21"))
            fail_msg("%s, %s: %s", kinds[k].name, kinds[k].bad, output);
        free(output);
        assert_int_equal(
            run_program("train @/c.yaml -n 1 -o @/bad --set data.damaged=skip", &output), 0);
        if (!strstr(output, "skipped: ") || !strstr(output, kinds[k].says))
            fail_msg("%s, %s: %s", kinds[k].name, kinds[k].bad, output);
        free(output);
        hash_of("good", good);
        hash_of("bad", bad);
        assert_string_equal(good, bad);
        shell_of_run("", "rm -r good bad");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kinds)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
