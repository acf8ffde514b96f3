/* not_text.c - see not_text.h. */
#include "source/not_text.h"

#include <string.h>

#include "base/utf8.h"
#include "source/plain.h"

typedef struct format {
    const char *bytes; /* [n] at this offset */
    size_t n, at;
    const char *name, *converter;
} format;

#define BYTES(x) (x), sizeof(x) - 1
static const format formats[] = {
    {BYTES("ustar"), 257, "a tar archive", "unpack it: tar xf FILE"},
    {BYTES("PK\3\4"), 0, "a ZIP archive, or a document in one",
     "unpack it: unzip FILE; of a document: pandoc FILE -o OUT.md"},
    {BYTES("7z\xbc\xaf\x27\x1c"), 0, "a 7z archive", "unpack it: 7z x FILE"},
    {BYTES("\xfd"
           "7zXZ"),
     0, "packed by xz", "unpack it: xz -d FILE (gzip and zstd are read as they are)"},
    {BYTES("1AY&SY"), 4, "packed by bzip2",
     "unpack it: bzip2 -d FILE (gzip and zstd are read as they are)"},
    {BYTES("%PDF-"), 0, "a PDF", "convert it, e.g. pdftotext FILE (package poppler-utils)"},
    {BYTES("%!PS"), 0, "PostScript", "convert it, e.g. ps2ascii FILE (package ghostscript)"},
    {BYTES("{\\rtf"), 0, "an RTF document", "convert it, e.g. unrtf --text FILE"},
    {BYTES("\xd0\xcf\x11\xe0"), 0, "an office document",
     "convert it, e.g. soffice --convert-to txt FILE (LibreOffice)"},
    {BYTES("PAR1"), 0, "a Parquet file",
     "in Python, lockstep.data.write(\"DIR\", \"FILE\") writes its texts as JSON lines "
     "(docs/guide/python_data.md)"},
    {BYTES("SQLite format 3"), 0, "an SQLite database", "write its texts as JSON lines"},
};

static const format *find(const uint8_t *first, size_t n) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        const format *f = &formats[i];
        if (n >= f->at + f->n && memcmp(first + f->at, f->bytes, f->n) == 0) return f;
    }
    return NULL;
}

bool ls_not_text(const uint8_t *first, size_t n) { return find(first, n) != NULL; }

ls_status ls_not_text_refuse(const char *path, const uint8_t *first, size_t n, ls_error *e) {
    const format *f = find(first, n);
    if (f) return ls_fail(e, LS_EINVAL, "%s: is %s, not a text; %s", path, f->name, f->converter);
    if (n > LS_PLAIN_FIRST) n = LS_PLAIN_FIRST;
    if (n) LS_TRY(ls_utf8_check_beginning((const char *)first, n, path, e));
    const uint8_t *zero = n ? memchr(first, 0, n) : NULL;
    if (!zero) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: is binary data, not a text: byte %zu is zero; if it is a text, remove such "
                   "bytes: tr -d '\\0' <FILE",
                   path, (size_t)(zero - first));
}
