/* webdataset_test.c - tar archives of samples: those of GNU tar in all its kinds, packed or not,
 * archives that are made here member by member, and hostile ones. */
#include "source/pictures.h"
#include "source/samples.h"

enum { H = 16, W = 24, BLOCK = 512 };

/* ---- archives ---- */

/* A ustar header with the member's checksum, then the data. */
static void add_as(ls_buf *tar, const char *name, char type, const void *data, size_t nbytes) {
    static const char zeros[BLOCK];
    char h[BLOCK + 1] = {0};
    unsigned sum = 0;
    snprintf(h, 100, "%s", name);
    memcpy(h + 100, "0000644\0000000000\0000000000", 23);
    snprintf(h + 124, 12, "%011zo", nbytes);
    memcpy(h + 136, "00000000000\0        ", 20);
    h[156] = type;
    if (type == '1' || type == '2') memcpy(h + 157, "/etc/passwd", 11);
    memcpy(h + 257, "ustar\00000", 8);
    for (int i = 0; i < BLOCK; i++) sum += (unsigned char)h[i];
    snprintf(h + 148, 8, "%06o", sum);
    ls_buf_append(tar, h, BLOCK);
    if (nbytes) ls_buf_append(tar, data, nbytes);
    ls_buf_append(tar, zeros, (BLOCK - nbytes % BLOCK) % BLOCK);
}

static void add(ls_buf *tar, const char *name, const void *data, size_t nbytes) {
    add_as(tar, name, '0', data, nbytes);
}

static void add_text(ls_buf *tar, const char *name, const char *text) {
    add(tar, name, text, strlen(text));
}

static void add_picture(ls_buf *tar, const char *name, ls_image_shape s, int seed) {
    ls_buf b = {0};
    uint8_t pixels[H * W * 3];
    picture_fill(pixels, s, seed);
    if (strstr(name, ".png"))
        picture_png(&b, pixels, s);
    else
        picture_jpeg(&b, pixels, s, (picture_options){.sampling = 2});
    add(tar, name, b.data, b.len);
    ls_buf_free(&b);
}

/* Ends the archive, writes it to @a.tar, and frees it. */
static void put_archive(ls_buf *tar) {
    static const char zeros[2 * BLOCK];
    ls_buf_append(tar, zeros, sizeof zeros);
    put_file("@a.tar", tar->data, tar->len);
    ls_buf_free(tar);
}

static const ls_image_shape shape = {H, W, 3};

static void add_sample(ls_buf *tar, int i, int label) {
    char name[32], text[16];
    snprintf(name, sizeof name, "%04d.png", i);
    add_picture(tar, name, shape, i);
    snprintf(name, sizeof name, "%04d.cls", i);
    snprintf(text, sizeof text, "%d\n", label);
    add_text(tar, name, text);
}

static void assert_pixels(const uint8_t *sample, int seed) {
    uint8_t pixels[H * W * 3];
    picture_fill(pixels, shape, seed);
    assert_memory_equal(sample, pixels, sizeof pixels);
}

static int32_t label_of(const ls_source *s, const uint8_t *sample) {
    int32_t label;
    memcpy(&label, sample + s->fields[1].offset, sizeof label);
    return label;
}

/* ---- tests ---- */

/* Archives by GNU tar; names of more than 100 bytes take other members than plain headers. */
static void test_gnu_tar(void **state) {
    (void)state;
    static const char *const makes[] = {
        "--format=pax -cf ../a.tar .",
        "--format=gnu -cf ../a.tar .",
        "-czf ../a.tar.gz .",
        "--zstd -cf ../a.tar.zst .",
        "--format=ustar -cf ../a.tar short",
        "--format=v7 -cf ../a.tar short",
    };
    enum { SHORT = 4 }; /* the last two have no place for long names */
    ls_buf b = {0};
    uint8_t pixels[H * W * 3];
    picture_fill(pixels, shape, 0);
    picture_png(&b, pixels, shape);
    put_file("@p.png", b.data, b.len);
    ls_buf_free(&b);
    in_folder("long=d/$(printf %0120d 7)/$(printf %0120d 8) && mkdir -p d/short $long && "
              "for key in d/short/one d/short/two $long/three; do "
              "cp p.png $key.png && echo 41 > $key.cls || exit 1; done");
    for (int i = 0; i < (int)(sizeof makes / sizeof *makes); i++) {
        char command[160];
        uint64_t count = i < SHORT ? 3 : 2;
        snprintf(command, sizeof command, "rm -f a.tar* && cd d && tar --sort=name %s", makes[i]);
        in_folder(command);
        ls_source *s = opened("@a.tar*", NULL);
        assert_string_equal(s->format, "webdataset");
        assert_int_equal(s->count, count);
        for (uint64_t k = 0; k < count; k++) {
            uint8_t *sample = sample_of(s, k);
            assert_pixels(sample, 0);
            assert_int_equal(label_of(s, sample), 41);
            free(sample);
        }
        ls_source_close(s);
    }
}

/* Shards in the order of their names; a sample is one place. */
static void test_shards(void **state) {
    (void)state;
    for (int shard = 0; shard < 3; shard++) {
        ls_buf tar = {0};
        char name[32];
        for (int i = 0; i < 4; i++) add_sample(&tar, 4 * shard + i, 100 + 4 * shard + i);
        put_archive(&tar);
        snprintf(name, sizeof name, "mv a.tar train-%d.tar", shard);
        in_folder(name);
    }
    in_folder("gzip train-1.tar && zstd -q --rm train-2.tar");
    ls_source *s = opened("@train-*", NULL);
    assert_int_equal(s->count, 12);
    assert_int_equal(s->nfiles, 3);
    assert_int_equal(s->nfields, 2);
    for (int i = 11; i >= 0; i--) {
        uint8_t *sample = sample_of(s, (uint64_t)i);
        assert_pixels(sample, i);
        assert_int_equal(label_of(s, sample), 100 + i);
        free(sample);
    }
    ls_source_close(s);
}

/* Pixels depend on the decoders: the hash is that of the shards' hashes and of their versions. */
static void test_hash(void **state) {
    (void)state;
    ls_mapped tar;
    ls_error e = {0};
    ls_buf b = {0};
    add_sample(&b, 1, 1);
    put_archive(&b);
    char *path = paths_of("@a.tar");
    assert_ls_ok(ls_file_map(path, &tar, &e), e);
    ls_hash hash = ls_hash_bytes(tar.data, tar.nbytes);
    ls_file_unmap(&tar);
    hash = ls_hash_bytes(&hash, sizeof hash);
    ls_buf_append(&b, &hash, sizeof hash);
    ls_buf_printf(&b, "%s", ls_image_decoders());
    ls_source *s = opened("@a.tar", NULL);
    assert_true(s->decodes);
    assert_true(ls_hash_same(s->hash, ls_hash_bytes(b.data, b.len)));
    ls_source_close(s);
    ls_buf_free(&b);
    free(path);
}

static double number_of(const ls_source *s, int f, const uint8_t *sample) {
    const uint8_t *p = sample + s->fields[f].offset;
    int64_t whole;
    float real;
    memcpy(&whole, p, s->fields[f].type == LS_I64 ? 8 : 0);
    memcpy(&real, p, s->fields[f].type == LS_F32 ? 4 : 0);
    return s->fields[f].type == LS_I64 ? (double)whole : (double)real;
}

static void test_json(void **state) {
    (void)state;
    ls_buf tar = {0};
    add_text(&tar, "d/a.json",
             "{\"label\": 3, \"id\": -9007199254740992, \"x\": 2, \"t\": \"text\"}");
    add_picture(&tar, "d/a.png", shape, 1);
    add_text(&tar, "d/a.txt", "a caption");
    add_picture(&tar, "d/b.png", shape, 2);
    add_text(&tar, "d/b.json", "{\"x\": 0.5, \"label\": 7, \"id\": 4}");
    put_archive(&tar);
    ls_source *s = opened("@a.tar", NULL);
    assert_int_equal(s->count, 2);
    assert_int_equal(s->nfields, 4);
    assert_true(has_shape(&s->fields[1], "label", LS_I32, 0, NULL));
    assert_true(has_shape(&s->fields[2], "id", LS_I64, 0, NULL));
    assert_true(has_shape(&s->fields[3], "x", LS_F32, 0, NULL));
    static const double want[2][3] = {{3, -9007199254740992.0, 2}, {7, 4, 0.5}};
    for (int i = 0; i < 2; i++) {
        uint8_t *sample = sample_of(s, (uint64_t)i);
        assert_pixels(sample, i + 1);
        assert_int_equal(label_of(s, sample), (int)want[i][0]);
        for (int f = 2; f < 4; f++) assert_true(number_of(s, f, sample) == want[i][f - 1]);
        free(sample);
    }
    ls_source_close(s);
}

/* Members of a sample that stand apart, in the order of `find` or of `tar --sort=none`; a shard in
 * which a key occurs again with parts that its sample has already. */
static void test_apart(void **state) {
    (void)state;
    enum { N = 5 };
    ls_buf tar = {0};
    char name[32], text[32];
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof name, "d/%d.png", i);
        add_picture(&tar, name, shape, i);
    }
    for (int i = N; i-- > 0;) {
        snprintf(name, sizeof name, "d/%d.cls", i);
        snprintf(text, sizeof text, "%d", 10 + i);
        add_text(&tar, name, text);
        snprintf(name, sizeof name, "d/%d.json", i);
        snprintf(text, sizeof text, "{\"n\": %d}", 20 + i);
        add_text(&tar, name, text);
    }
    add_picture(&tar, "d/1.png", shape, 7);
    add_text(&tar, "d/1.cls", "17");
    add_text(&tar, "d/1.json", "{\"n\": 27}");
    put_archive(&tar);
    ls_source *s = opened("@a.tar", NULL);
    assert_int_equal(s->count, N + 1);
    for (int i = 0; i <= N; i++) {
        uint8_t *sample = sample_of(s, (uint64_t)i);
        int64_t n = 0, seed = i < N ? i : 7;
        assert_pixels(sample, (int)seed);
        assert_int_equal(label_of(s, sample), 10 + seed);
        memcpy(&n, sample + ls_source_field(s, "n")->offset, sizeof n);
        assert_int_equal(n, 20 + seed);
        free(sample);
    }
    ls_source_close(s);
}

static void add_json(ls_buf *tar, int i, const char *json) {
    char name[32];
    snprintf(name, sizeof name, "%d.png", i);
    add_picture(tar, name, shape, i);
    snprintf(name, sizeof name, "%d.json", i);
    add_text(tar, name, json);
}

/* All objects decide what is a field, and integers are exact. */
static void test_members(void **state) {
    (void)state;
    static const char *const json[] = {
        "{\"x\": null, \"n\": 9007199254740993, \"t\": \"b\", \"c\": \"one\", \"none\": null}",
        ("{\"x\": 0.5, \"n\": 9223372036854775807, \"t\": \"a\", \"none\": null, \"rare\": 1, "
         "\"box\": [{}]}"),
        "{\"x\": 1.5, \"n\": -9223372036854775808, \"t\": \"b\", \"c\": 3, \"none\": null}",
    };
    const ls_source_options skip = {.skip_damaged = true};
    ls_buf tar = {0};
    for (int i = 0; i < 3; i++) add_json(&tar, i, json[i]);
    put_archive(&tar);
    refuses("@a.tar", NULL, "member 0.json at offset 2048: 'x' is null, ");
    ls_source *s = opened("@a.tar", &skip);
    assert_int_equal(s->count, 2);
    assert_int_equal(s->damage.n, 1);
    assert_int_equal(s->nfields, 4); /* neither "c", nor "none", nor "rare" */
    assert_true(has_shape(ls_source_field(s, "x"), "x", LS_F32, 0, NULL));
    assert_true(has_shape(ls_source_field(s, "n"), "n", LS_I64, 0, NULL));
    assert_true(has_shape(ls_source_field(s, "t"), "t", LS_I32, 0, NULL));
    for (int i = 0; i < 2; i++) {
        uint8_t *sample = sample_of(s, (uint64_t)i);
        int64_t n = 0;
        int32_t t = 0;
        memcpy(&n, sample + ls_source_field(s, "n")->offset, sizeof n);
        memcpy(&t, sample + ls_source_field(s, "t")->offset, sizeof t);
        assert_true(n == (i ? INT64_MIN : INT64_MAX));
        assert_int_equal(t, i);
        free(sample);
    }
    ls_source_close(s);
}

/* Ten numbers, with long names, beside an image and a cls. */
static void test_many_members(void **state) {
    (void)state;
    ls_buf tar = {0}, json = {0};
    for (int i = 0; i < 10; i++)
        ls_buf_printf(&json, "%s\"a_name_of_more_than_thirty_one_bytes_%d\": %d", i ? ", " : "{", i,
                      i);
    ls_buf_printf(&json, ", \"label\": 3, \"class\": \"x\"}");
    add_sample(&tar, 1, 5);
    add_text(&tar, "0001.json", json.data);
    put_archive(&tar);
    ls_source *s = opened("@a.tar", NULL);
    assert_int_equal(s->nfields, 13);
    uint8_t *sample = sample_of(s, 0);
    assert_int_equal(label_of(s, sample), 5); /* the cls is the label */
    assert_non_null(ls_source_field(s, "class"));
    int64_t n = 0;
    memcpy(&n, sample + ls_source_field(s, "a_name_of_more_than_thirty_one_bytes_9")->offset,
           sizeof n);
    assert_int_equal(n, 9);
    free(sample);
    ls_source_close(s);
    ls_buf_free(&json);
}

/* Members that can't be read, between two good samples: what is said, and that the good ones remain
 * with skip_damaged. */
typedef struct bad {
    const char *name, *text, *says;
    char type;
} bad;

static void test_hostile_members(void **state) {
    (void)state;
    static const bad all[] = {
        {"../5.cls", "1", "member ../5.cls is a path that points outside", '0'},
        {"a/../../5.cls", "1", "is a path that points outside", '0'},
        {"/5.cls", "1", "is a path that points outside", '0'},
        {"5.png", "", "member 5.png is a link", '2'},
        {"5.png", "", "member 5.png is a link", '1'},
        {"5.png", "", "is a device or another special file", '3'},
        {"5.cls", "x", "member 5.cls at offset ", '0'},
        {"5.cls", "-1", "is no whole number from 0 to 2147483647", '0'},
        {"5.cls", "2147483648", "is no whole number from 0 to 2147483647", '0'},
        {"5.cls", "99999999999999999999", "is no whole number", '0'},
        {"5.cls", "1 2", "is no whole number", '0'},
        {"5.cls", "", "is no whole number", '0'},
        {"5.cls", "1                                    ", "it is too long", '0'},
        {"5.cls", "1", "sample 5 has no image", '0'},
        {"5.png", "no image", "member 5.png at offset 3072: not a JPEG or PNG image", '0'},
        {"5.png", "", "the image is empty", '0'},
        {"5.jpg", "\xff\xd8\xff\xe0", "JPEG image: ", '0'},
        {"5.json", "{]", "member 5.json at offset ", '0'},
        {"5.json", "[1]", "is not a JSON object", '0'},
        {"5.\x1b[31m\n", "1", "5 has no image", '0'},
    };
    const ls_source_options skip = {.skip_damaged = true};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        ls_buf tar = {0};
        add_sample(&tar, 1, 1);
        add_as(&tar, all[i].name, all[i].type, all[i].text, strlen(all[i].text));
        add_sample(&tar, 2, 2);
        put_archive(&tar);
        ls_source *s = NULL;
        ls_error e = {0};
        assert_ls_fails(open_source("@a.tar", NULL, &s, &e), LS_EINVAL, all[i].says, e);
        assert_null(strchr(e.msg, '\n'));
        assert_non_null(strstr(e.msg, "/a.tar: "));
        s = opened("@a.tar", &skip);
        assert_int_equal(s->count, 2);
        assert_int_equal(s->damage.n, 1);
        for (int k = 0; k < 2; k++) {
            uint8_t *sample = sample_of(s, (uint64_t)k);
            assert_pixels(sample, k + 1);
            free(sample);
        }
        ls_source_close(s);
    }
}

/* Samples whose parts differ from the first one's. */
static void test_parts(void **state) {
    (void)state;
    ls_buf tar = {0};
    add_sample(&tar, 1, 1);
    add_picture(&tar, "2.png", shape, 2);
    put_archive(&tar);
    refuses("@a.tar", NULL, "sample 2 has no cls, the first sample has one");
    add_sample(&tar, 1, 1);
    add_sample(&tar, 2, 1);
    add_text(&tar, "0002.json", "{}");
    put_archive(&tar);
    refuses("@a.tar", NULL, "sample 0002 has a json, the first sample has none");
    add_sample(&tar, 1, 1);
    add_text(&tar, "0001.cls", "2");
    put_archive(&tar);
    refuses("@a.tar", NULL, "the sample has another member of this kind");
    add_sample(&tar, 1, 1);
    add_picture(&tar, "2.png", (ls_image_shape){H, W - 1, 3}, 2);
    put_archive(&tar);
    refuses("@a.tar", NULL, "sample 2 has no cls");
    add_picture(&tar, "1.png", shape, 2);
    add_text(&tar, "1.json", "{\"x\": 1}");
    add_picture(&tar, "2.png", shape, 2);
    add_text(&tar, "2.json", "{\"y\": 1}");
    put_archive(&tar);
    refuses("@a.tar", NULL, "member 1.json at offset 2048: 'y' is missing");
    add_picture(&tar, "1.png", shape, 2);
    add_picture(&tar, "2.png", (ls_image_shape){H, W - 1, 3}, 2);
    put_archive(&tar);
    ls_source *s = opened("@a.tar", NULL); /* scaled to squares: 16 is the shorter side */
    assert_true(has_shape(&s->fields[0], "image", LS_U8, 3, (int64_t[]){16, 16, 3}));
    for (uint64_t i = 0; i < 2; i++) free(sample_of(s, i));
    ls_source_close(s);
    add_text(&tar, "README", "nothing");
    put_archive(&tar);
    refuses("@a.tar", NULL, "has no samples: no member is an image");
    put_file("@a.tar", "", 0);
    refuses("@a.tar", NULL, "is empty (0 bytes)");
}

/* Cut at any block and in it: an error, or the whole samples before. */
static void test_truncated(void **state) {
    (void)state;
    ls_buf tar = {0};
    size_t ends[4] = {0};
    for (int i = 1; i <= 3; i++) {
        add_sample(&tar, i, i);
        ends[i] = tar.len;
    }
    static const char zeros[2 * BLOCK];
    ls_buf_append(&tar, zeros, sizeof zeros);
    const ls_source_options skip = {.skip_damaged = true};
    for (size_t n = BLOCK; n < tar.len; n += n < ends[1] ? 312 : 100) {
        ls_source *s = NULL;
        ls_error e = {0};
        put_file("@a.tar", tar.data, n);
        assert_int_equal(open_source("@a.tar", NULL, &s, &e), LS_EINVAL);
        if (!strstr(e.msg, "truncated") && !strstr(e.msg, "damaged")) fail_msg("%s", e.msg);
        if (open_source("@a.tar", &skip, &s, &e) != LS_OK) {
            assert_non_null(strstr(e.msg, "has no samples"));
            assert_true(n < ends[2]);
            continue;
        }
        assert_int_equal(s->damage.n, 1);
        assert_true(s->count <= 3 && ends[s->count] <= n);
        ls_source_close(s);
    }
    tar.data[ends[1] + 3] ^= 1; /* the checksum of a header */
    put_file("@a.tar", tar.data, tar.len);
    refuses("@a.tar", NULL, "the tar archive is damaged near offset ");
    ls_buf_free(&tar);
}

static void test_bomb(void **state) {
    (void)state;
    in_folder("(head -c 60000000 /dev/zero) | gzip -9 > a.tar.gz");
    const ls_source_options small = {.most_nbytes = 1 << 20};
    refuses("@a.tar.gz", &small, "unpacks to more than 1.0 MB, the most that is unpacked here");
}

/* Concatenated archives: no sample is lost. */
static void test_concatenated(void **state) {
    (void)state;
    ls_buf tar = {0};
    add_sample(&tar, 1, 1);
    put_archive(&tar);
    in_folder("cp a.tar one.tar");
    add_sample(&tar, 2, 2);
    put_archive(&tar);
    in_folder("cat one.tar a.tar > both.tar");
    ls_source *s = opened("@both.tar", NULL);
    assert_int_equal(s->count, 2);
    ls_source_close(s);
}

/* 1,000 JPEGs like photographs, read in another order than they were written. */
static void test_many(void **state) {
    (void)state;
    enum { N = 1000 };
    ls_buf tar = {0};
    for (int i = 0; i < N; i++) {
        char name[32], text[16];
        snprintf(name, sizeof name, "%06d.jpg", i);
        add_picture(&tar, name, shape, i);
        snprintf(name, sizeof name, "%06d.cls", i);
        snprintf(text, sizeof text, "%d", i % 10);
        add_text(&tar, name, text);
    }
    put_archive(&tar);
    ls_source *s = opened("@a.tar", NULL);
    assert_int_equal(s->count, N);
    for (int k = 0; k < N; k++) {
        int i = k * 7 % N;
        uint8_t *sample = sample_of(s, (uint64_t)i), pixels[H * W * 3];
        int64_t error = 0;
        picture_fill(pixels, shape, i);
        for (int p = 0; p < H * W * 3; p++) error += abs(sample[p] - pixels[p]);
        assert_true(error < 20 * H * W * 3);
        assert_int_equal(label_of(s, sample), i % 10);
        free(sample);
    }
    ls_source_close(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_gnu_tar, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_shards, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_hash, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_json, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_apart, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_members, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_many_members, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_hostile_members, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_parts, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_truncated, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_bomb, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_concatenated, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_many, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
