/* text_test.c - which files make up a text, in which order, and in which documents. */
#include "source/text.h"

#include <sys/stat.h>
#include <unistd.h>

#include "folder.h"
#include "test.h"

static int make_files(void **state) {
    static const char *const files[][2] = {{"b.txt", "bee\n"},
                                           {"a.txt", "ay"},
                                           {"C.txt", "\xc3\xa4"},
                                           {"a[1].txt", "bracket\n"},
                                           {"empty", ""},
                                           {"bad", "ok\xff"},
                                           {"mark", "\xef\xbb\xbf"},
                                           {"wide", "\xfe\xff!!"},
                                           {"marked", "\xef\xbb\xbf"
                                                      "first\r\n"}};
    if (make_folder(state)) return -1;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char *path = ls_format("%s/%s", folder, files[i][0]);
        ls_status s = ls_file_write(path, files[i][1], strlen(files[i][1]), NULL);
        free(path);
        if (s != LS_OK) return -1;
    }
    return chdir(folder);
}

static int remove_files(void **state) { return chdir("/") || remove_folder(state); }

static const ls_text_options plain = {0};

static void check(const char *paths, const char *text, const char *name) {
    ls_text t;
    ls_error e = {0};
    assert_ls_ok(ls_text_open(paths, &plain, &t, &e), e);
    assert_int_equal(t.nbytes, strlen(text));
    if (t.nbytes) assert_memory_equal(t.data, text, t.nbytes);
    assert_string_equal(t.name, name);
    ls_text_close(&t);
}

static void test_order(void **state) {
    (void)state;
    check("b.txt", "bee\n", "b.txt");
    check("b.txt\na.txt", "bee\nay", "b.txt and 1 more file");
    check("[abC].txt",
          "\xc3\xa4"
          "aybee\n",
          "C.txt and 2 more files");
    check("a.txt\n*.txt",
          "ay\xc3\xa4"
          "bracket\nbee\n",
          "a.txt and 3 more files");
    check("a.txt\na.txt\nempty", "ay", "a.txt and 1 more file");
    check("a[1].txt", "bracket\n", "a[1].txt"); /* it exists, so it is not a pattern */
    check("empty", "", "empty");
}

static void refuses(const char *paths, ls_status code, const char *says) {
    ls_text t = {0};
    ls_error e;
    assert_ls_fails(ls_text_open(paths, &plain, &t, &e), code, says, e);
    assert_null(t.name);
}

static void test_refusals(void **state) {
    (void)state;
    refuses("absent.txt", LS_EIO, "absent.txt: can't be opened");
    refuses("a.txt\nabsent.txt", LS_EIO, "absent.txt: can't be opened");
    refuses("x*.txt", LS_EINVAL, "no file matches x*.txt");
    refuses("a.txt\nbad", LS_EINVAL,
            "bad: is not UTF-8 at byte 2 (line 1); convert it, e.g. with iconv, or leave such "
            "files out "
            "(data.damaged: skip)");
    assert_int_equal(system("yes | head -c 100000 | zstd -q | head -c 20 >cut.txt.zst"), 0);
    refuses("cut.txt.zst", LS_EINVAL, "cut.txt.zst: is truncated");
    assert_int_equal(system("tar czf all.tar.gz a.txt b.txt; tar cf all.tar a.txt; "
                            "cp all.tar other.txt; printf 'PK\\003\\004' >x.docx; "
                            "printf '\\3757zXZ\\0' >a.txt.xz"),
                     0);
    refuses("all.tar", LS_EINVAL, "all.tar: is a tar archive, not a text; unpack it");
    refuses("all.tar.gz", LS_EINVAL, "all.tar.gz: is a tar archive");
    refuses("a.txt\nother.txt", LS_EINVAL, "other.txt: is a tar archive");
    refuses("a.txt.xz", LS_EINVAL, "a.txt.xz: is packed by xz, not a text; unpack it: xz -d");
    refuses("x.docx", LS_EINVAL, "x.docx: is a ZIP archive, or a document in one");
    refuses("/dev/null", LS_EIO, "is not a regular file");
}

/* A file with a zero byte among its first ones is no text. One further on may be of a page from the
 * web. */
static void test_zeros(void **state) {
    (void)state;
    static const char says[] = "elf: is binary data, not a text: byte 4 is zero; if it is a text, "
                               "remove such bytes: tr -d '\\0' <FILE";
    assert_int_equal(system("printf 'ELF\\n\\0\\001\\n' >elf; printf '\\377\\376a\\0' >bom; "
                            "(yes | head -c 5000; printf '\\0b\\n') >late; "
                            "(yes | head -c 5000) >hole; truncate -s 512G hole"),
                     0);
    refuses("elf", LS_EINVAL, says);
    refuses("a.txt\nelf", LS_EINVAL, says);
    refuses("bom", LS_EINVAL,
            "bom: is UTF-16LE, not UTF-8; convert it: iconv -f UTF-16LE -t UTF-8");
    refuses("hole", LS_EINVAL, "on were never written: it is incomplete");
    refuses("a.txt\nhole", LS_EINVAL, "on were never written: it is incomplete");
    ls_text t;
    ls_error e = {0};
    assert_ls_ok(ls_text_open("late", &plain, &t, &e), e);
    assert_int_equal(t.nbytes, 5003);
    ls_text_close(&t);
}

/* Byte order marks are no part of the text, of one file or of several. */
static void test_marks(void **state) {
    (void)state;
    check("marked", "first\r\n", "marked");
    check("b.txt\nmarked\na.txt\nmark", "bee\nfirst\r\nay", "b.txt and 3 more files");
    check("mark", "", "mark");
    refuses("a.txt\nwide", LS_EINVAL, "wide: is UTF-16BE, not UTF-8");
}

/* ---- documents ---- */

/* Documents of one text that another has, too. */
static void test_shared(void **state) {
    (void)state;
    ls_text all, some;
    ls_error e = {0};
    assert_ls_ok(ls_text_open("a.txt\nb.txt\nC.txt", &plain, &all, &e), e);
    assert_ls_ok(ls_text_open("marked\nb.txt\na.txt\na[1].txt", &plain, &some, &e), e);
    assert_int_equal(ls_text_count_shared(&all, &some), 2);
    assert_int_equal(ls_text_count_shared(&some, &all), 2);
    ls_text_close(&some);
    assert_ls_ok(ls_text_open("empty", &plain, &some, &e), e);
    assert_int_equal(ls_text_count_shared(&all, &some), 0);
    ls_text_close(&some);
    ls_text_close(&all);
}

static void put(const char *name, const char *text) {
    ls_error e = {0};
    assert_ls_ok(ls_file_write(name, text, strlen(text), &e), e);
}

/* The documents, with | between them. */
static void documents(const char *paths, const ls_text_options *o, const char *want) {
    ls_text t;
    ls_error e = {0};
    ls_buf got = {0};
    assert_ls_ok(ls_text_open(paths, o, &t, &e), e);
    for (size_t i = 0; i < t.ndocuments; i++) {
        assert_int_equal(t.documents[i].from, i ? t.documents[i - 1].to : 0);
        ls_buf_printf(&got, "%s%.*s", i ? "|" : "", (int)(t.documents[i].to - t.documents[i].from),
                      (const char *)t.data + t.documents[i].from);
    }
    if (t.ndocuments) assert_int_equal(t.documents[t.ndocuments - 1].to, t.nbytes);
    assert_string_equal(got.len ? got.data : "", want);
    ls_buf_free(&got);
    ls_text_close(&t);
}

static void refuses_with(const char *paths, const ls_text_options *o, const char *says) {
    ls_text t = {0};
    ls_error e;
    assert_ls_fails(ls_text_open(paths, o, &t, &e), LS_EINVAL, says, e);
}

/* Texts by their names or their contents, packed ones too; links in a circle end; what is hidden,
 * no text or no file is left out. Paths are in the order of their bytes: "d-/" is before "d/". */
static void test_directory(void **state) {
    (void)state;
    assert_int_equal(mkdir("tree", 0700) | mkdir("tree/d", 0700) | mkdir("tree/d-", 0700) |
                         mkdir("tree/.git", 0700),
                     0);
    put("tree/z.MD", "z");
    put("tree/d/b.txt", "b");
    put("tree/d-/c.py", "c");
    put("tree/README", "r");
    put("tree/.git/x.txt", "hidden");
    put("tree/.x.txt", "hidden");
    put("tree/picture.png", "\x89PNG\r\n\x1a\n");
    put("tree/numbers.json", "[1, 2]");
    put("tree/settings.json", "{\"name\": \"x\"}");
    put("tree/nothing.txt", "");
    put("tree/picture.svg", "<svg/>");
    put("tree/letters.pdf", "%PDF-1.4\n1 0 obj\n");
    put("tree/letters", "{\\rtf1 text}");
    put("tree/d/packed.txt", "packed");
    put("tree/d/other", "other");
    assert_int_equal(system("gzip tree/d/packed.txt; zstd -q --rm tree/d/other"), 0);
    assert_int_equal(symlink("..", "tree/d/loop") | symlink("absent", "tree/broken"), 0);
    documents("tree", &plain, "r|c|b|other|packed|z");
    documents("tree/", &plain, "r|c|b|other|packed|z");
    documents("tree/**/*.txt", &plain, "b");
    documents("tree/d/b.txt\ntree", &plain, "b|r|c|other|packed|z");
    assert_int_equal(symlink("c.py", "tree/d-/linked.py"), 0);
    documents("tree/d-\ntree/d/../d-/c.py\n./tree/d-/c.py", &plain, "c");
    documents("tree", &plain, "r|c|b|other|packed|z");
    assert_int_equal(mkdir("bare", 0700), 0);
    put("bare/picture.png", "\x89PNG\r\n\x1a\n");
    refuses_with("bare", &plain, "bare: has no texts below it, but 1 .png");
}

static void test_separator(void **state) {
    (void)state;
    ls_text_options o = {.separator = "\n\n\n"};
    put("three", "\xef\xbb\xbfone\n\n\ntwo\n\n\n\n\n\n\nthree\n");
    documents("three", &o, "one|two|\nthree\n");
    o.separator = "\\n\\n\\n"; /* as a shell passes it on */
    documents("three", &o, "one|two|\nthree\n");
    o.separator = "<|x|>";
    put("marks", "<|x|>a<|x|>b<|x|><|x|>");
    documents("marks\nthree", &o, "a|b|one\n\n\ntwo\n\n\n\n\n\n\nthree\n");
}

/* Lines, arrays, an object over several lines, and texts themselves. */
static void test_json(void **state) {
    (void)state;
    ls_text_options o = {0};
    put("lines.jsonl", "{\"id\": 1, \"content\": \"a\\n\"}\n\n{\"content\": \"\\u00e4\"}\n");
    put("array.json",
        "[{\"text\": \"a\", \"content\": \"no\"},\n {\"text\": \"\"},{\"text\": \"b\"}]");
    put("object.json", "{\n  \"text\": \"whole\",\n  \"n\": 1\n}\n");
    put("texts.json", "[\"a\", \"b\"]");
    documents("lines.jsonl", &o, "a\n|\xc3\xa4");
    documents("array.json\nobject.json\ntexts.json", &o, "a|b|whole|a|b");
    o.column = "content";
    documents("lines.jsonl", &o, "a\n|\xc3\xa4");
    refuses_with("array.json", &o, "array.json:2: element 2 has no text 'content'");
    refuses_with("object.json", &o,
                 "object.json: is JSON, and its first object has no text "
                 "'content', but 'text'");
    put("other.jsonl", "{\"id\": 1, \"story\": \"a\"}\n");
    refuses_with("other.jsonl", &plain, "has no text 'text' or 'content', but 'story'");
    o.column = "story";
    documents("other.jsonl", &o, "a");
    documents("other.jsonl", &(ls_text_options){.json = LS_TEXT_JSON_AS_IS},
              "{\"id\": 1, \"story\": \"a\"}\n");
    put("chat.jsonl", "{\"messages\": [], \"text\": \"a\"}\n");
    refuses_with("chat.jsonl", &plain, "chat.jsonl: is JSON with \"messages\": set data.format");
    o.column = "text";
    documents("chat.jsonl", &o, "a");
}

/* Files in another encoding, lines that are no JSON or have no text: refused with their place, or
 * left out and counted. */
static void test_damage(void **state) {
    (void)state;
    static const struct {
        const char *file, *text, *says, *left;
        int n;
    } cases[] = {
        {"latin.txt", "caf\xe9", "latin.txt: is not UTF-8 at byte 3", "bee\n", 1},
        {"utf16.txt",
         "\xff\xfe"
         "a",
         "utf16.txt: is UTF-16LE, not UTF-8", "bee\n", 1},
        {"l.jsonl", "{\"text\": \"a\"}\n{\"text\": 3}\n{\"text\"\n{\"text\": \"b\"}\n",
         "l.jsonl:2: has no text 'text'", "bee\n|a|b", 2},
        {"first.jsonl", "{\"tex\n{\"text\": \"a\"}\n", "first.jsonl:1: is not valid JSON",
         "bee\n|a", 1},
        {"end.json", "[{\"text\": \"a\"}", "end.json:1: the array of objects has no end", "bee\n|a",
         1},
        {"zip.txt.gz", "\x1f\x8b\x08no", "zip.txt.gz: ", "bee\n", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char paths[64];
        ls_text t;
        ls_error e = {0};
        ls_text_options o = {.skip_damaged = true};
        put(cases[i].file, cases[i].text);
        snprintf(paths, sizeof paths, "b.txt\n%s", cases[i].file);
        refuses_with(paths, &plain, cases[i].says);
        documents(paths, &o, cases[i].left);
        assert_ls_ok(ls_text_open(paths, &o, &t, &e), e);
        assert_int_equal(t.damage.n, cases[i].n);
        assert_non_null(strstr(t.damage.named[0], cases[i].says));
        ls_text_close(&t);
    }
    refuses_with("bad\nwide", &(ls_text_options){.skip_damaged = true},
                 "bad and 1 more file: all 2 texts are damaged; the first: bad: is not UTF-8");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),     cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_zeros),     cmocka_unit_test(test_marks),
        cmocka_unit_test(test_shared),    cmocka_unit_test(test_directory),
        cmocka_unit_test(test_separator), cmocka_unit_test(test_json),
        cmocka_unit_test(test_damage)};
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
