/* small_tokenizer.h - writes small tokenizer.json files of the kinds that published models have. */
#ifndef LS_TEST_SMALL_TOKENIZER_H
#define LS_TEST_SMALL_TOKENIZER_H

#include "base/mem.h"
#include "data/spelling.h"
#include "data/tokenizer.h"
#include "test.h"

typedef struct small_tokenizer {
    /* JSON of a key; NULL: null */
    const char *normalizer, *pre_tokenizer, *post_processor, *decoder, *added;
    const char *model;         /* more keys of model, each followed by a comma; or NULL */
    bool sentencepiece;        /* its tokens are 3 special ones and 256 bytes; else 256 bytes */
    const char *const *tokens; /* after those; spelt as in the file; ends with NULL */
    const char *const *merges; /* ends with NULL; the results are in tokens */
} small_tokenizer;

enum { SMALL_BYTES = 256, SMALL_SPECIAL = 3 }; /* SentencePiece's own tokens begin at 259 */

#define SMALL_BYTE_LEVEL                                                                           \
    "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true, "              \
    "\"use_regex\": true}"
#define SMALL_BYTES_ONLY                                                                           \
    "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true, "              \
    "\"use_regex\": false}"
#define SMALL_REPLACE                                                                              \
    "{\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, \"content\": \"" LS_SPACE_MARK "\"" \
    "}"
#define SMALL_PREPEND                                                                              \
    "{\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"Prepend\", \"prepend\": "             \
    "\"" LS_SPACE_MARK "\"}, " SMALL_REPLACE "]}"
#define SMALL_METASPACE(scheme, split)                                                             \
    "{\"type\": \"Metaspace\", \"replacement\": \"" LS_SPACE_MARK                                  \
    "\", \"prepend_scheme\": \"" scheme "\", \"split\": " split "}"
#define SMALL_DECODER                                                                              \
    "{\"type\": \"Sequence\", \"decoders\": [{\"type\": \"Replace\", \"pattern\": {\"String\": "   \
    "\"" LS_SPACE_MARK "\"}, \"content\": \" \"}, {\"type\": \"ByteFallback\"}, {\"type\": "       \
    "\"Fuse\"}, {\"type\": \"Strip\", \"content\": \" \", \"start\": 1, \"stop\": 0}]}"
#define SMALL_TEMPLATE(name, id)                                                                   \
    "{\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": \"" name          \
    "\", \"type_id\": 0}}, {\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}], \"pair\": [], "       \
    "\"special_tokens\": {\"" name "\": {\"id\": \"" name "\", \"ids\": [" id                      \
    "], \"tokens\": [\"" name "\"]}}}"

static inline void small_vocab(const small_tokenizer *s, ls_buf *out) {
    static const char *const special[] = {"<unk>", "<s>", "</s>"};
    uint32_t id = 0;
    for (int i = 0; s->sentencepiece && i < SMALL_SPECIAL; i++)
        ls_buf_printf(out, "\"%s\": %u, ", special[i], id++);
    for (unsigned byte = 0; byte < SMALL_BYTES; byte++) {
        ls_buf spelt = {0};
        uint8_t one = (uint8_t)byte;
        ls_spelling_write(&one, 1, &spelt);
        bool quoted = byte == '"' || byte == '\\';
        if (s->sentencepiece)
            ls_buf_printf(out, "\"<0x%02X>\": %u, ", byte, id++);
        else
            ls_buf_printf(out, "\"%s%s\": %u, ", quoted ? "\\" : "", spelt.data, id++);
        ls_buf_free(&spelt);
    }
    for (int i = 0; s->tokens && s->tokens[i]; i++)
        ls_buf_printf(out, "\"%s\": %u, ", s->tokens[i], id++);
    out->data[out->len -= 2] = 0; /* the last comma */
}

/* The caller frees the text. */
static inline char *small_json(const small_tokenizer *s) {
    ls_buf out = {0};
    const char *null = "null";
    ls_buf_printf(&out, "{\"version\": \"1.0\", \"added_tokens\": %s, \"normalizer\": %s, ",
                  s->added ? s->added : "[]", s->normalizer ? s->normalizer : null);
    ls_buf_printf(&out, "\"pre_tokenizer\": %s, \"post_processor\": %s, \"decoder\": %s, ",
                  s->pre_tokenizer ? s->pre_tokenizer : null,
                  s->post_processor ? s->post_processor : null, s->decoder ? s->decoder : null);
    ls_buf_printf(&out, "\"model\": {\"type\": \"BPE\", %s\"vocab\": {", s->model ? s->model : "");
    small_vocab(s, &out);
    ls_buf_printf(&out, "}, \"merges\": [");
    for (int i = 0; s->merges && s->merges[i]; i++)
        ls_buf_printf(&out, "%s\"%s\"", i ? ", " : "", s->merges[i]);
    ls_buf_printf(&out, "]}}");
    return out.data;
}

#endif
