/* file_kind_test.c - files of other programs are found by their first bytes, and by suffixes. */
#include "base/file_kind.h"

#include <string.h>

#include "test.h"

static void expect_kind(const char *path, const char *bytes, size_t n, const char *name) {
    const ls_file_kind *kind = ls_file_kind_of(path, (const uint8_t *)bytes, n);
    if (!name && kind) fail_msg("%s is %s", path, kind->name);
    if (!name) return;
    if (!kind || strcmp(kind->name, name) != 0)
        fail_msg("%s is %s, not %s", path, kind ? kind->name : "nothing", name);
    assert_true(strlen(kind->makes) > 0);
}

#define EXPECT(path, bytes, name) expect_kind(path, bytes, sizeof(bytes) - 1, name)

static void test_kinds(void **state) {
    (void)state;
    EXPECT("a.parquet", "PAR1\x15\0..", "a Parquet file");
    EXPECT("any", "\x89HDF\r\n\x1a\n..", "an HDF5 file");
    EXPECT("x.npz", "PK\3\4..", "an archive of arrays of NumPy");
    EXPECT("X.XLSX", "PK\3\4..", "a spreadsheet");
    EXPECT("t.csv", "PK\3\4..", "a ZIP archive");
    EXPECT("model.pt", "PK\3\4..", "a file of PyTorch");
    EXPECT("p.pkl", "\x80\x04\x95\0", "a pickle of Python");
    EXPECT("d.sav", "$FL2@(#)", "an SPSS file");
    EXPECT("d.dta", "r\2\1\0", "a Stata file");
    EXPECT("d.rda", "RDX3\nX\n", "data of R");
    EXPECT("s.wav", "RIFF\x24\x08\0\0WAVEfmt ", "a WAV file");
    EXPECT("m.onnx", "\x08\x07", "an ONNX graph");
    EXPECT("m.safetensors", "\x10\0\0\0\0\0\0\0{\"a", "a safetensors file of weights");
    EXPECT("t.arff", "% comment\n", "an ARFF file");
    EXPECT("t.dat", "@relation x\n", "an ARFF file");
    assert_true(ls_file_kind_of("t.arff", (const uint8_t *)"%", 1)->is_table);
}

static void test_others(void **state) {
    (void)state;
    EXPECT("t.csv", "a,b\n1,2\n", NULL);
    EXPECT("t.csv", "PK,b\n1,2\n", NULL);
    EXPECT("t.csv", "PAR1,PAR2\n1,2\n", NULL);
    EXPECT("t.csv", "FEA1\tFEA2\n1\t2\n", NULL);
    EXPECT("t.csv", "ID3,b\n1,2\n", NULL);
    EXPECT("t.csv", "", NULL);
    EXPECT("onnx", "", NULL);
    EXPECT(".onnx", "", NULL); /* a name that is a suffix alone */
    EXPECT("d.bin", "r\2\1\0", NULL);
    EXPECT("short", "PAR", NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kinds), cmocka_unit_test(test_others)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
