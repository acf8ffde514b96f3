/* file_kind.c - see file_kind.h. */
#include "base/file_kind.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

typedef struct known {
    const char *bytes; /* [n] at this offset; n = 0: the suffix alone tells */
    size_t n, at;
    const char *suffix; /* NULL: any */
    ls_file_kind kind;
} known;

#define BYTES(x)    (x), sizeof(x) - 1
#define ZIP(suffix) BYTES("PK\3\4"), 0, suffix

static const char array[] = "in Python, save each array, e.g. numpy.save(\"x.npy\", X)";
static const char hdf5[] =
    "in Python, save each array, e.g. numpy.save(\"x.npy\", h5py.File(\"FILE\")[\"NAME\"][:])";
static const char table[] =
    "in Python, lockstep.data.write(\"DIR\", TABLE) writes a data set that is read "
    "(docs/guide/python_data.md)";
static const char sheet[] = "save it as CSV, e.g. soffice --convert-to csv FILE (LibreOffice)";
static const char sound[] =
    "save what a model shall read of it, e.g. spectrograms, as arrays of NumPy (.npy)";
static const char weights[] = "it is no data: model.from reads models (docs/guide/pretrained.md)";
static const char torch[] =
    "it can run code; in Python, save its tensors: numpy.save(\"x.npy\", T.numpy())";
static const char pickle[] =
    "it can run code; in Python, save arrays by numpy.save(\"x.npy\", X), and "
    "tables by lockstep.data.write(\"DIR\", TABLE) (docs/guide/python_data.md)";
static const char arff[] =
    "its rows are CSV: set data.format: csv, and data.csv: {skip: N, header: no}, "
    "where N is the line of @data";
static const char r_table[] = "in R, write.csv(TABLE, \"t.csv\", row.names = FALSE)";

/* In the order in which they are asked: those with a suffix before those without. */
static const known all[] = {
    {BYTES("PAR1"),
     0,
     NULL,
     {"a Parquet file",
      "in Python, lockstep.data.write(\"DIR\", \"FILE\") writes a "
      "data set that is read (docs/guide/python_data.md)",
      false}},
    {BYTES("ARROW1"), 0, NULL, {"an Arrow file", table, false}},
    {BYTES("\xff\xff\xff\xff"), 0, ".arrow", {"a stream of Arrow", table, false}},
    {BYTES("\xff\xff\xff\xff"), 0, ".arrows", {"a stream of Arrow", table, false}},
    {BYTES("FEA1"), 0, NULL, {"a Feather file", table, false}},
    {BYTES("ORC"), 0, ".orc", {"an ORC file", table, false}},
    {BYTES("\x89HDF\r\n\x1a\n"), 0, NULL, {"an HDF5 file", hdf5, false}},
    {ZIP(".npz"),
     {"an archive of arrays of NumPy",
      "in Python, save each: numpy.save(\"x.npy\", "
      "numpy.load(\"FILE\")[\"NAME\"])",
      false}},
    {ZIP(".xlsx"), {"a spreadsheet", sheet, false}},
    {ZIP(".xlsm"), {"a spreadsheet", sheet, false}},
    {ZIP(".ods"), {"a spreadsheet", sheet, false}},
    {ZIP(".pt"), {"a file of PyTorch", torch, false}},
    {ZIP(".pth"), {"a file of PyTorch", torch, false}},
    {ZIP(".ckpt"), {"a file of PyTorch", torch, false}},
    {ZIP(".bin"), {"a file of PyTorch", torch, false}},
    {ZIP(".keras"), {"a model of Keras", weights, false}},
    {ZIP(NULL), {"a ZIP archive", "unpack it: unzip FILE", false}},
    {BYTES("\xd0\xcf\x11\xe0"), 0, ".xls", {"a spreadsheet", sheet, false}},
    {BYTES("\x80\x02"), 0, NULL, {"a pickle of Python", pickle, false}},
    {BYTES("\x80\x03"), 0, NULL, {"a pickle of Python", pickle, false}},
    {BYTES("\x80\x04\x95"), 0, NULL, {"a pickle of Python", pickle, false}},
    {BYTES("\x80\x05\x95"), 0, NULL, {"a pickle of Python", pickle, false}},
    {BYTES("SQLite format 3"),
     0,
     NULL,
     {"an SQLite database",
      "write a table as CSV, e.g. sqlite3 -header "
      "-csv FILE \"select * from TABLE\" >t.csv",
      false}},
    {BYTES("RDX2\n"), 0, NULL, {"data of R", r_table, false}},
    {BYTES("RDX3\n"), 0, NULL, {"data of R", r_table, false}},
    {BYTES("X\n\0\0\0"), 0, NULL, {"data of R", r_table, false}},
    {BYTES("<stata_dta>"), 0, NULL, {"a Stata file", table, false}},
    {BYTES("\1\0"), 1, ".dta", {"a Stata file", table, false}},
    {BYTES("\2\1"), 1, ".dta", {"a Stata file", table, false}},
    {BYTES("\1\1"), 1, ".dta", {"a Stata file", table, false}},
    {BYTES("$FL2"), 0, NULL, {"an SPSS file", table, false}},
    {BYTES("\xc2\xea\x81\x60\xb3\x14\x11\xcf"), 12, NULL, {"a SAS file", table, false}},
    {BYTES("MATLAB 5.0"), 0, NULL, {"a file of MATLAB", array, false}},
    {BYTES("SIMPLE  ="), 0, NULL, {"a FITS file", array, false}},
    {BYTES("CDF\1"), 0, NULL, {"a NetCDF file", array, false}},
    {BYTES("CDF\2"), 0, NULL, {"a NetCDF file", array, false}},
    {BYTES("GGUF"), 0, NULL, {"a GGUF file of weights", weights, false}},
    {BYTES("\0{\""), 7, ".safetensors", {"a safetensors file of weights", weights, false}},
    {NULL, 0, 0, ".onnx", {"an ONNX graph", weights, false}},
    {BYTES("%PDF-"),
     0,
     NULL,
     {"a PDF", "convert it, e.g. pdftotext FILE (package poppler-utils)", false}},
    {BYTES("7z\xbc\xaf\x27\x1c"), 0, NULL, {"a 7z archive", "unpack it: 7z x FILE", false}},
    {BYTES("\xfd"
           "7zXZ"),
     0,
     NULL,
     {"packed by xz", "unpack it: xz -d FILE (gzip and zstd are read as they are)", false}},
    {BYTES("1AY&SY"),
     4,
     NULL,
     {"packed by bzip2", "unpack it: bzip2 -d FILE (gzip and zstd are read as they are)", false}},
    {BYTES("WAVE"), 8, NULL, {"a WAV file", sound, false}},
    {BYTES("fLaC"), 0, NULL, {"a FLAC file", sound, false}},
    {BYTES("OggS"), 0, NULL, {"an Ogg file", sound, false}},
    {BYTES("ID3"), 0, NULL, {"an MP3 file", sound, false}},
    {BYTES("ftyp"),
     4,
     ".mp4",
     {"a film", "save its frames as images, e.g. ffmpeg -i FILE DIR/%05d.png", false}},
    {NULL, 0, 0, ".arff", {"an ARFF file", arff, true}},
    {BYTES("@relation"), 0, NULL, {"an ARFF file", arff, true}},
    {BYTES("<!DOCTYPE html"), 0, NULL, {"an HTML page", table, false}},
    {BYTES("<html"), 0, NULL, {"an HTML page", table, false}},
    {BYTES("<?xml"), 0, NULL, {"an XML file", table, false}},
};

static int ends_in(const char *path, const char *suffix) {
    size_t n = strlen(path), m = strlen(suffix);
    return n > m && strcasecmp(path + n - m, suffix) == 0;
}

/* Letters and digits may begin the header of a table, too. */
static bool is_word(const known *k) {
    for (size_t i = 0; i < k->n; i++)
        if (!isalnum((unsigned char)k->bytes[i])) return false;
    return k->n > 0;
}

/* No text has bytes below the tabulator. */
static bool is_binary(const uint8_t *first, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (first[i] < '\t') return true;
    return false;
}

const ls_file_kind *ls_file_kind_of(const char *path, const uint8_t *first, size_t n) {
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const known *k = &all[i];
        if (k->suffix && !ends_in(path, k->suffix)) continue;
        if (is_word(k) && !is_binary(first, n)) continue;
        if (n >= k->at + k->n && (k->n == 0 || memcmp(first + k->at, k->bytes, k->n) == 0))
            return &k->kind;
    }
    return NULL;
}
