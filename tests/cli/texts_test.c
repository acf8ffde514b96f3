/* texts_test.c - runs on directories of texts: documents with a token behind each, in an order
 * drawn with the seed, whole ones held out; the same bits for any number of workers and after a
 * resume.
 */
/* ctest: seconds=6 */
#include "cli/program.h"

static int make(void **state) {
    if (folder_make(state)) return -1;
    char line[900];
    snprintf(line, sizeof line,
             "cd %s && mkdir -p books/b && split -l 6 -d --additional-suffix=.md $OLDPWD/LICENSE "
             "books/b/part && mv books/b/part0[0-9].md books && printf '\\211PNG\\0' >books/x.png "
             "&& for f in books/*.md; do cat $f; echo; echo; done >whole.txt && printf "
             "'caf\\351' >books/b/latin.txt && cat >c.yaml <<'END'\n"
             "model: {kind: gpt2, layers: 1, width: 12, heads: 2, context: 16, vocab: 270}\n"
             "data: {path: %s/books, damaged: skip, val_fraction: 0.1}\n"
             "train: {steps: 12, batch: 6, virtual_workers: 6, eval_every: 0}\n"
             "optim: {warmup: 2, schedule: constant}\n"
             "END\n",
             folder, folder);
    return system(line);
}

static void assert_other(const char *run, const char *other) {
    char a[256], b[256];
    hash_of(run, a);
    hash_of(other, b);
    assert_string_not_equal(a, b);
}

/* What is read and what not is said; the same bits for any workers, without the files when it
 * resumes; the tokens are made again from them. */
static void test_directory(void **state) {
    (void)state;
    char *output = output_of("train @/c.yaml -n 1 -o @/one");
    assert_non_null(strstr(output, "files are read; not read: 1 .png"));
    assert_non_null(strstr(output, "latin.txt: is not UTF-8 at byte 3"));
    assert_non_null(strstr(output, "documents, a token <|endoftext|> behind each; "));
    assert_non_null(strstr(output, "of them are held out"));
    free(output);
    expect("train @/c.yaml -n 3 -o @/three --set train.steps=6", 0, NULL);
    shell_of_run("", "mv books away");
    expect("train --resume @/three -n 2 --set train.steps=12", 0, NULL);
    shell_of_run("", "mv away books");
    same_hash("one", "three");
    shell_of_run("one", "rm $r/tokens.bin");
    expect("train --resume @/one -n 1 --set train.steps=13", 0, "tokens.bin: was missing; made");
    expect("train @/c.yaml -n 1 -o @/other --set train.seed=2 --set train.steps=3", 0, NULL);
    expect("train @/c.yaml -n 1 -o @/joined --set data.documents=joined", 0, NULL);
    assert_other("one", "joined");
    expect("train --resume @/one --set data.documents=joined --set train.steps=14", 1,
           "data.documents is \"joined\", but the run began with \"apart\"");
}

/* Evaluated on files of any kind; its texts end by themselves, elsewhere too. */
static void test_use(void **state) {
    (void)state;
    expect("eval @/three", 0, "bits/byte");
    expect("eval @/three --data @/books", 0, "in whole contexts");
    expect("eval @/three --data @/books --json", 0, "\"bits_per_byte\"");
    expect("eval @/three --data @/**/part*.md", 0, "in whole contexts");
    expect("generate @/three --prompt a --tokens 5 --seed 1", 0, NULL);
    expect("export @/three --to safetensors -o @/exported", 0, NULL);
    shell_of_run("", "grep -q '\"eos_token_id\": 269' exported/config.json && "
                     "grep -q '\"eos_token\": \"<|endoftext|>\"' exported/tokenizer_config.json");
}

/* With one text nothing changes, unless it has documents. Zero bytes behind its beginning are
 * logged. */
static void test_one(void **state) {
    (void)state;
    expect("train @/c.yaml -n 1 -o @/text --set data.path=@/whole.txt", 0, NULL);
    shell_of_run("", "(cat whole.txt whole.txt; printf 'a\\0b\\0\\n') >zeros.txt");
    expect("train @/c.yaml -n 1 -o @/zeros --set data.path=@/zeros.txt --set train.steps=1 --set "
           "optim.warmup=0",
           0, "zeros.txt: has 2 zero bytes, the first at byte ");
    expect("train @/c.yaml -n 1 -o @/no --set data.path=@/whole.txt --set data.documents=joined", 1,
           "data.documents acts only with several documents");
    expect("train @/c.yaml -n 1 -o @/no --set data.path=@/whole.txt --set data.text=x", 1,
           "data.text acts only with files that end in .json, .jsonl or .ndjson");
    expect("train @/c.yaml -n 2 -o @/apart --set data.path=@/whole.txt --set "
           "data.separator=\\n\\n\\n",
           0, "documents, a token <|endoftext|> behind each");
    assert_other("text", "apart");
    expect("train @/c.yaml -n 1 -o @/no --set data.path=@/whole.txt --set data.separator=<x>", 1,
           "whole.txt: data.separator, \"<x>\", is nowhere in it");
    expect("train @/c.yaml -n 1 -o @/no --set data.documents=joined --set data.separator=x", 1,
           "data.separator acts only with");
    expect("train @/c.yaml -n 1 -o @/no --set train.from=@/text", 1,
           "tokenizer.json: has no token that ends a text");
    expect("train @/c.yaml -n 1 -o @/from --set train.from=@/three --set train.steps=2", 0, NULL);
}

/* What an evaluation says of the model. */
static void model_of(const char *line, char model[128]) {
    char *output = output_of("%s", line);
    const char *at = strstr(output, "\"model\": {");
    assert_non_null(at);
    snprintf(model, 128, "%.*s", (int)strcspn(at, "}"), at);
    free(output);
}

/* The loss of data.val_path is that of `eval --data` on the same files, for each form of them; the
 * tokenizer is that of the training part alone. */
static void test_validation(void **state) {
    (void)state;
    shell_of_run("", "mkdir held && mv books/b/part1[0-3].md held && mkdir lines && "
                     "printf '{\"body\": \"%s\"}\\n' one two 'three and a half' 'the fourth' | "
                     "gzip >lines/a.jsonl.gz && cp held/part10.md held-copy.md");
    expect("train @/c.yaml -n 1 -o @/own --set data.val_path=@/held --set data.val_fraction=0.2", 1,
           "data.val_fraction acts only with no data.val_path");
    shell_of_run("", "sed -i 's/, val_fraction: 0.1//' c.yaml");
    expect("train @/c.yaml -n 2 -o @/own --set data.val_path=@/held", 0,
           "held: 4 documents for validation");
    shell_of_run("own", "grep -q '\"validation\"' $r/corpus.json");
    char own[128], other[128];
    model_of("eval @/own --json", own);
    model_of("eval @/own --data @/held --json", other);
    assert_string_equal(own, other);
    expect("train --resume @/own -n 1 --set train.steps=13 --set data.val_path=@/books", 0,
           "data.val_path has changed, but the run has saved its tokens");
    shell_of_run("own", "cp $r/tokenizer.json was.json && rm $r/tokens.bin");
    expect("train --resume @/own -n 1 --set train.steps=14 --set data.val_path=@/held", 0,
           "tokens.bin: was missing; made");
    shell_of_run("own", "rm $r/tokens.bin && mv held away && mkdir held && cp away/*10.md held");
    expect("train --resume @/own -n 1 --set train.steps=15", 1,
           "is not the text that it was made from; put one of them back, or name the text with "
           "--set data.val_path=FILE");
    shell_of_run("", "rm -r held && mv away held");
    expect("train @/c.yaml -n 1 -o @/val-json --set data.val_path=@/lines --set data.text=body", 0,
           "lines: 4 documents for validation");
    shell_of_run("val-json", "cmp $r/tokenizer.json was.json");
    expect("train @/c.yaml -n 1 -o @/leak --set data.path=@/held --set data.val_path=@/held/*1.md "
           "--set data.val_path=@/held-copy.md",
           0, "warning: 1 of the 1 texts for validation");
    expect("train @/c.yaml -n 1 -o @/one-val --set data.path=@/whole.txt --set "
           "data.val_path=@/held",
           0, "held: 4 documents for validation, which are one text as the training part is");
    expect("train @/c.yaml -n 1 -o @/joined-val --set data.path=@/whole.txt --set "
           "data.val_path=@/held --set data.documents=joined",
           0, "held: 4 documents for validation, which are one text");
    expect_line("train @/c.yaml -n 1 -o @/no --set data.path=@/whole.txt --set "
                "data.val_path=@/books/b/latin.txt",
                1, "latin.txt: is not UTF-8 at byte 3");
    shell_of_run("", ": >empty.txt && echo short >short.txt");
    expect("train @/c.yaml -n 1 -o @/no --set data.val_path=@/empty.txt", 1,
           "empty.txt: is empty; data.val_path needs a text for validation");
    expect("train @/c.yaml -n 1 -o @/no --set data.val_path=@/short.txt", 1,
           "data.val_path needs at least 17 (model.context 16 + 1)");
}

/* `lockstep data` says of JSON and directories what training takes as texts. */
static void test_data(void **state) {
    (void)state;
    shell_of_run(
        "", "printf '[{\"text\": \"one\"}, {\"text\": \"two\"}]' >array.json && printf "
            "'{\"text\": \"a b\"}\\n{\"x\": 1}\\n{\"text\": \"c\"}\\n' >broken.jsonl && printf "
            "'{\"body\": \"a\", \"n\": 1}\\n{\"body\": \"b\", \"n\": 2}\\n' >body.jsonl");
    expect("plan @/c.yaml -n 1 --set data.path=@/gone", 0, "gone: is not there");
    expect("data @/books", 1, "latin.txt: is not UTF-8");
    expect("data @/books --skip-damaged", 0, "damaged    1, which are left out");
    expect("data @/array.json", 0, "samples    2 documents of 6 bytes");
    expect("data @/broken.jsonl", 1, "broken.jsonl:2: ");
    expect("data @/broken.jsonl --skip-damaged --format text", 0,
           "damaged    1, which are left out");
    expect("data @/body.jsonl --set data.text=body", 0, "body.jsonl\", text: \"body\"}");
    expect("data @/body.jsonl", 0, "format     jsonl");
    expect("data @/body.jsonl --set data.text=body --set data.na=[x]", 2,
           "texts and conversations have data.text alone");
    shell_of_run("", "mkdir some && echo story > some/a.txt && cp body.jsonl some/y.jsonl && "
                     "zstd -q --rm some/y.jsonl && echo '{\"no\": \"x\"}' > some/z.json");
    expect("data @/some", 0, "1 .jsonl without 'text' or 'content', 1 .json without 'text'");
    expect("data @/some --set data.text=body", 1, "z.json: is JSON, and its first object has no");
    shell_of_run("", "sed -i 's/body/text/' body.jsonl");
    expect("data @/body.jsonl", 0, "its objects have texts, too");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_directory), cmocka_unit_test(test_use), cmocka_unit_test(test_one),
        cmocka_unit_test(test_validation), cmocka_unit_test(test_data)};
    return cmocka_run_group_tests(tests, make, folder_remove);
}
