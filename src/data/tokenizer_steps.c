/* tokenizer_steps.c - reads the steps of a tokenizer.json. See tokenizer_steps.h.
 *
 * What is supported, with the keys and values that published models have:
 *
 *     normalizer       null, NFC; for SentencePiece Replace " " by U+2581, alone or after Prepend
 *                      U+2581
 *     pre_tokenizer    ByteLevel, which may come after Split (by a Regex or a String, Isolated, or
 *                      Removed and inverted by an expression that leaves nothing) and Digits; or,
 *                      for SentencePiece, Metaspace, or with that normalizer null, or a Split at
 *                      " ", which then finds none
 *     post_processor   null, ByteLevel (it changes no ids), TemplateProcessing
 *     decoder          ByteLevel or null; for SentencePiece Replace, ByteFallback, Fuse, Strip
 *
 * and Sequences of these. A key that is not known is refused, too: it may change the ids.
 */
#include "data/tokenizer_steps.h"

#include <stdlib.h>
#include <string.h>

#include "data/spelling.h"

enum { MOST_DEPTH = 4 };

const char *ls_json_show(const ls_json *j, char shown[LS_SHOWN]) {
    ls_buf b = {0};
    if (j)
        ls_json_write(j, 0, &b);
    else
        ls_buf_append(&b, "null", 4);
    size_t n = b.len < LS_SHOWN ? b.len : LS_SHOWN - 4;
    while (n < b.len && n > 0 && ((uint8_t)b.data[n] & 0xC0) == 0x80) n--;
    memcpy(shown, b.data, n);
    strcpy(shown + n, n < b.len ? "..." : "");
    ls_buf_free(&b);
    return shown;
}

ls_status ls_json_expect(const ls_json_place *p, const char *key, const char *value,
                         const char *or_value, ls_error *e) {
    char shown[LS_SHOWN];
    ls_json_show(ls_json_get(p->object, key), shown);
    if (strcmp(shown, value) == 0 || strcmp(shown, or_value) == 0) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: %s%s is %s; only %s is supported", p->what, p->path, key,
                   shown, value);
}

ls_status ls_json_expect_keys(const ls_json_place *p, const char *const *keys, ls_error *e) {
    const char *key = NULL;
    const ls_json *value = NULL;
    for (void *it = NULL; (it = ls_json_next(p->object, it, &key, &value));) {
        int i = 0;
        while (keys[i] && strcmp(keys[i], key) != 0) i++;
        if (!keys[i])
            return ls_fail(e, LS_EINVAL, "%s: %s%.64s is not supported", p->what, p->path, key);
    }
    return LS_OK;
}

/* ---- a step, and sequences of steps ---- */

typedef struct steps_reader {
    const char *what;
    ls_tokenizer *t;
    bool byte_level, metaspace, prepends, replaces;
    int npieces; /* decoders read so far */
    int depth;   /* of sequences */
} steps_reader;

/* One object with a type. */
typedef struct step_place {
    ls_json_place at;
    const char *type;
} step_place;

typedef ls_status step_fn(steps_reader *, const step_place *, ls_error *);

static ls_status unsupported(const steps_reader *r, const step_place *s, ls_error *e) {
    char shown[LS_SHOWN];
    return ls_fail(e, LS_EINVAL, "%s: %stype is %s, which is not supported here", r->what,
                   s->at.path, ls_json_show(ls_json_get(s->at.object, "type"), shown));
}

static ls_status step_read(steps_reader *r, const ls_json *j, const char *path, const char *list,
                           step_fn *fn, ls_error *e);

static ls_status sequence_read(steps_reader *r, const step_place *s, const char *list, step_fn *fn,
                               ls_error *e) {
    const ls_json *steps = ls_json_get(s->at.object, list);
    const char *const keys[] = {"type", list, NULL};
    LS_TRY(ls_json_expect_keys(&s->at, keys, e));
    if (!ls_json_is_array(steps) || r->depth == MOST_DEPTH)
        return ls_fail(e, LS_EINVAL, "%s: %s%s is %s", r->what, s->at.path, list,
                       ls_json_is_array(steps) ? "nested too deeply" : "missing, or not a list");
    ls_status status = LS_OK;
    r->depth++;
    for (size_t i = 0; status == LS_OK && i < ls_json_count(steps); i++) {
        char *path = ls_format("%s%s[%zu].", s->at.path, list, i);
        status = step_read(r, ls_json_at(steps, i), path, list, fn, e);
        free(path);
    }
    r->depth--;
    return status;
}

/* Calls fn() for a step, or for each step of a Sequence, whose list has the name `list`. */
static ls_status step_read(steps_reader *r, const ls_json *j, const char *path, const char *list,
                           step_fn *fn, ls_error *e) {
    const char *type = ls_json_text(ls_json_get(j, "type"));
    const step_place s = {{r->what, path, j}, type ? type : ""};
    if (strcmp(s.type, "Sequence") == 0) return sequence_read(r, &s, list, fn, e);
    return fn(r, &s, e);
}

static bool is_null(const ls_json *j) {
    char shown[LS_SHOWN];
    return strcmp(ls_json_show(j, shown), "null") == 0;
}

/* ---- normalizer ---- */

static ls_status space_to_mark(const step_place *s, bool reverse, ls_error *e) {
    static const char *const keys[] = {"type", "pattern", "content", NULL};
    const char *space = "{\"String\": \" \"}", *mark = "{\"String\": \"" LS_SPACE_MARK "\"}";
    LS_TRY(ls_json_expect_keys(&s->at, keys, e));
    LS_TRY(ls_json_expect(&s->at, "pattern", reverse ? mark : space, "", e));
    return ls_json_expect(&s->at, "content", reverse ? "\" \"" : "\"" LS_SPACE_MARK "\"", "", e);
}

static ls_status normalizer_read(steps_reader *r, const step_place *s, ls_error *e) {
    static const char *const nfc[] = {"type", NULL}, *const prepend[] = {"type", "prepend", NULL};
    if (strcmp(s->type, "NFC") == 0) {
        r->t->compose = true;
        return ls_json_expect_keys(&s->at, nfc, e);
    }
    if (strcmp(s->type, "Prepend") == 0 && !r->prepends && !r->replaces) {
        r->prepends = true;
        LS_TRY(ls_json_expect_keys(&s->at, prepend, e));
        return ls_json_expect(&s->at, "prepend", "\"" LS_SPACE_MARK "\"", "", e);
    }
    if (strcmp(s->type, "Replace") == 0 && !r->replaces) {
        r->replaces = true;
        return space_to_mark(s, false, e);
    }
    return unsupported(r, s, e);
}

/* ---- pre_tokenizer ---- */

/* Adds a step; regex: of LS_CUT_EXPRESSION, else NULL. */
static ls_status cut_add(steps_reader *r, const step_place *s, ls_cut_kind kind, const char *regex,
                         ls_error *e) {
    char *where = ls_format("%s: %s%s", r->what, s->at.path, regex ? "pattern" : "type");
    ls_status status = ls_pretokenizer_add(&r->t->pretokenizer, kind, regex, where, e);
    free(where);
    return status;
}

/* Appends a regular expression that matches the text. */
static void quote(const char *text, ls_buf *regex) {
    for (; *text; text++) {
        if (strchr(".\\[](){}*+?|^$", *text)) ls_buf_append(regex, "\\", 1);
        ls_buf_append(regex, text, 1);
    }
}

static ls_status split_read(steps_reader *r, const step_place *s, ls_error *e) {
    static const char *const keys[] = {"type", "pattern", "behavior", "invert", NULL};
    const ls_json *pattern = ls_json_get(s->at.object, "pattern");
    const char *regex = ls_json_text(ls_json_get(pattern, "Regex"));
    const char *text = ls_json_text(ls_json_get(pattern, "String"));
    char shown[LS_SHOWN];
    LS_TRY(ls_json_expect_keys(&s->at, keys, e));
    /* What does not match is removed: the same, for an expression that matches any text. */
    bool covers = ls_json_expect(&s->at, "behavior", "\"Removed\"", "", NULL) == LS_OK && regex &&
                  ls_pretokenizer_covers(regex);
    if (!covers) LS_TRY(ls_json_expect(&s->at, "behavior", "\"Isolated\"", "", e));
    LS_TRY(ls_json_expect(&s->at, "invert", covers ? "true" : "false", "", e));
    if (ls_json_count(pattern) != 1 || (!regex && !text))
        return ls_fail(e, LS_EINVAL, "%s: %spattern is %s; expected a Regex or a String", r->what,
                       s->at.path, ls_json_show(pattern, shown));
    ls_buf quoted = {0};
    ls_buf_append(&quoted, "", 0);
    if (text) quote(text, &quoted);
    ls_status status = cut_add(r, s, LS_CUT_EXPRESSION, regex ? regex : quoted.data, e);
    ls_buf_free(&quoted);
    return status;
}

static ls_status digits_read(steps_reader *r, const step_place *s, ls_error *e) {
    static const char *const keys[] = {"type", "individual_digits", NULL};
    LS_TRY(ls_json_expect_keys(&s->at, keys, e));
    LS_TRY(ls_json_expect(&s->at, "individual_digits", "true", "false", e));
    bool each = ls_json_is_true(ls_json_get(s->at.object, "individual_digits"));
    return cut_add(r, s, each ? LS_CUT_DIGIT : LS_CUT_DIGITS, NULL, e);
}

static ls_status byte_level_read(steps_reader *r, const step_place *s, ls_error *e) {
    static const char *const keys[] = {"type", "add_prefix_space", "trim_offsets", "use_regex",
                                       NULL};
    LS_TRY(ls_json_expect_keys(&s->at, keys, e));
    LS_TRY(ls_json_expect(&s->at, "add_prefix_space", "false", "", e));
    r->byte_level = true;
    if (ls_json_expect(&s->at, "use_regex", "false", "", NULL) == LS_OK) return LS_OK;
    LS_TRY(ls_json_expect(&s->at, "use_regex", "true", "null", e));
    return cut_add(r, s, LS_CUT_GPT2, NULL, e);
}

static ls_status metaspace_read(steps_reader *r, const step_place *s, ls_error *e) {
    static const char *const keys[] = {
        "type", "replacement", "prepend_scheme", "add_prefix_space", "split", "str_rep", NULL};
    static const struct {
        const char *scheme;
        ls_space_rule rule;
    } schemes[] = {
        {"never", LS_SPACE_NEVER}, {"first", LS_SPACE_FIRST}, {"always", LS_SPACE_ALWAYS}};
    const ls_json *given = ls_json_get(s->at.object, "prepend_scheme");
    const char *scheme = given ? ls_json_text(given) : "always"; /* of older files */
    LS_TRY(ls_json_expect_keys(&s->at, keys, e));
    LS_TRY(ls_json_expect(&s->at, "replacement", "\"" LS_SPACE_MARK "\"", "", e));
    size_t i = 0;
    while (i < 3 && (!scheme || strcmp(schemes[i].scheme, scheme) != 0)) i++;
    if (i == 3)
        return ls_json_expect(&s->at, "prepend_scheme", "\"never\", \"first\" or \"always\"", "",
                              e);
    r->t->spaces = schemes[i].rule;
    r->metaspace = true;
    bool never = r->t->spaces == LS_SPACE_NEVER;
    LS_TRY(ls_json_expect(&s->at, "add_prefix_space", never ? "false" : "true", "null", e));
    if (ls_json_expect(&s->at, "split", "false", "", NULL) == LS_OK) return LS_OK;
    LS_TRY(ls_json_expect(&s->at, "split", "true", "null", e));
    return cut_add(r, s, LS_CUT_SPACE, NULL, e);
}

/* Gemma's, behind a normalizer that leaves no space. */
static bool finds_nothing(const steps_reader *r, const step_place *s) {
    const ls_json *o = s->at.object, *pattern = ls_json_get(o, "pattern");
    const char *text = ls_json_text(ls_json_get(pattern, "String"));
    return r->replaces && strcmp(s->type, "Split") == 0 && text && strcmp(text, " ") == 0 &&
           ls_json_count(pattern) == 1 && ls_json_count(o) == 4 &&
           ls_json_expect(&s->at, "behavior", "\"MergedWithPrevious\"", "", NULL) == LS_OK &&
           ls_json_expect(&s->at, "invert", "false", "", NULL) == LS_OK;
}

static ls_status pretokenizer_read(steps_reader *r, const step_place *s, ls_error *e) {
    bool last = r->byte_level || r->metaspace; /* these change what later steps would see */
    if (finds_nothing(r, s)) return LS_OK;
    if (!last && strcmp(s->type, "ByteLevel") == 0) return byte_level_read(r, s, e);
    if (!last && strcmp(s->type, "Split") == 0) return split_read(r, s, e);
    if (!last && strcmp(s->type, "Digits") == 0) return digits_read(r, s, e);
    if (!last && strcmp(s->type, "Metaspace") == 0 && r->t->pretokenizer.nsteps == 0)
        return metaspace_read(r, s, e);
    return unsupported(r, s, e);
}

/* ---- decoder ---- */

/* Of SentencePiece: Replace, ByteFallback, Fuse, Strip, of which only the last may be missing. */
static ls_status decoder_read(steps_reader *r, const step_place *s, ls_error *e) {
    static const char *const order[] = {"Replace", "ByteFallback", "Fuse", "Strip"};
    static const char *const type[] = {"type", NULL};
    static const char *const strip[] = {"type", "content", "start", "stop", NULL};
    if (r->byte_level && strcmp(s->type, "ByteLevel") == 0) return LS_OK; /* it has no choice */
    if (r->byte_level || r->npieces == 4 || strcmp(s->type, order[r->npieces]) != 0)
        return unsupported(r, s, e);
    if (r->npieces++ == 0) return space_to_mark(s, true, e);
    if (r->npieces < 4) return ls_json_expect_keys(&s->at, type, e);
    r->t->strip = true;
    LS_TRY(ls_json_expect_keys(&s->at, strip, e));
    LS_TRY(ls_json_expect(&s->at, "content", "\" \"", "", e));
    LS_TRY(ls_json_expect(&s->at, "start", "1", "", e));
    return ls_json_expect(&s->at, "stop", "0", "", e);
}

static ls_status steps_check(const steps_reader *r, ls_error *e) {
    const char *what = r->what;
    bool spaces = r->replaces || r->metaspace;
    if (r->byte_level && spaces)
        return ls_fail(e, LS_EINVAL, "%s: normalizer: Replace with ByteLevel is not supported",
                       what);
    if (!r->byte_level && !spaces)
        return ls_fail(e, LS_EINVAL,
                       "%s: pre_tokenizer has no ByteLevel, and nothing spells spaces as "
                       "SentencePiece does; other tokenizers are not supported",
                       what);
    if (r->prepends && !r->replaces)
        return ls_fail(e, LS_EINVAL, "%s: normalizer: Prepend without Replace is not supported",
                       what);
    if (r->replaces && (r->metaspace || r->t->pretokenizer.nsteps))
        return ls_fail(e, LS_EINVAL,
                       "%s: pre_tokenizer: only null is supported with this normalizer", what);
    if (!r->byte_level && r->t->compose)
        return ls_fail(e, LS_EINVAL, "%s: normalizer: NFC without ByteLevel is not supported",
                       what);
    r->t->byte_level = r->byte_level;
    if (r->replaces) r->t->spaces = r->prepends ? LS_SPACE_PREPEND : LS_SPACE_AS_IS;
    return LS_OK;
}

static ls_status group_read(steps_reader *r, const ls_json *root, const char *key, const char *list,
                            step_fn *fn, ls_error *e) {
    const ls_json *j = ls_json_get(root, key);
    if (is_null(j)) return LS_OK;
    char *path = ls_format("%s.", key);
    ls_status s = step_read(r, j, path, list, fn, e);
    free(path);
    return s;
}

static ls_status steps_read(steps_reader *r, const ls_json *root, ls_error *e) {
    LS_TRY(group_read(r, root, "normalizer", "normalizers", normalizer_read, e));
    LS_TRY(group_read(r, root, "pre_tokenizer", "pretokenizers", pretokenizer_read, e));
    LS_TRY(steps_check(r, e));
    LS_TRY(group_read(r, root, "decoder", "decoders", decoder_read, e));
    if (r->byte_level || r->npieces >= 3) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: decoder: only Replace, ByteFallback, Fuse and Strip are supported",
                   r->what);
}

ls_status ls_tokenizer_read_steps(const ls_json *root, const char *what, ls_tokenizer **t_p,
                                  ls_error *e) {
    steps_reader r = {.what = what, .t = ls_bpe_create(true)};
    ls_status s = steps_read(&r, root, e);
    if (s == LS_OK)
        *t_p = r.t;
    else
        ls_tokenizer_free(r.t);
    return s;
}

/* ---- post_processor ---- */

/* Appends the ids of a special token of a template. */
static ls_status ids_read(const step_place *s, const char *name, const ls_tokenizer *t,
                          ls_end_tokens *out, ls_error *e) {
    const ls_json *token = ls_json_get(ls_json_get(s->at.object, "special_tokens"), name);
    const ls_json *ids = ls_json_get(token, "ids");
    size_t n = ls_json_count(ids);
    if (!ls_json_is_array(ids) || n == 0 || n > (size_t)(LS_MAX_ENDS - out->n))
        return ls_fail(e, LS_EINVAL, "%s: %sspecial_tokens has no 1 to %d ids for \"%.64s\"",
                       s->at.what, s->at.path, LS_MAX_ENDS, name);
    for (size_t i = 0; i < n; i++) {
        int64_t id = 0;
        if (!ls_json_integer(ls_json_at(ids, i), &id) || id < 0 || id >= t->tokens.n)
            return ls_fail(e, LS_EINVAL, "%s: %sspecial_tokens: an id of \"%.64s\" is no token",
                           s->at.what, s->at.path, name);
        out->ids[out->n++] = (uint32_t)id;
    }
    return LS_OK;
}

/* Puts `more` before or after those that are in the list already. */
static ls_status ends_add(const step_place *s, const ls_end_tokens *more, bool before,
                          ls_end_tokens *list, ls_error *e) {
    int n = more->n, at = before ? 0 : list->n;
    if (n > LS_MAX_ENDS - list->n)
        return ls_fail(e, LS_EINVAL, "%s: %ssingle adds more than %d tokens", s->at.what,
                       s->at.path, LS_MAX_ENDS);
    memmove(list->ids + at + n, list->ids + at, (size_t)(list->n - at) * sizeof *list->ids);
    memcpy(list->ids + at, more->ids, (size_t)n * sizeof *list->ids);
    list->n += n;
    return LS_OK;
}

/* A later template of a Sequence is put around the earlier ones. */
static ls_status template_read(steps_reader *r, const step_place *s, ls_error *e) {
    static const char *const keys[] = {"type", "single", "pair", "special_tokens", NULL};
    const ls_json *single = ls_json_get(s->at.object, "single");
    ls_end_tokens ids = {.n = 0};
    int sequences = 0;
    LS_TRY(ls_json_expect_keys(&s->at, keys, e));
    for (size_t i = 0; i < ls_json_count(single); i++) {
        const ls_json *piece = ls_json_at(single, i);
        const char *name = ls_json_text(ls_json_get(ls_json_get(piece, "SpecialToken"), "id"));
        const char *which = ls_json_text(ls_json_get(ls_json_get(piece, "Sequence"), "id"));
        if (name) {
            LS_TRY(ids_read(s, name, r->t, &ids, e));
        } else if (which && strcmp(which, "A") == 0 && sequences++ == 0) {
            LS_TRY(ends_add(s, &ids, true, &r->t->begin, e));
            ids.n = 0;
        } else {
            sequences = 2;
        }
    }
    if (sequences == 1) return ends_add(s, &ids, false, &r->t->end, e);
    return ls_fail(e, LS_EINVAL, "%s: %ssingle must be a list of special tokens and one Sequence A",
                   r->what, s->at.path);
}

static ls_status end_read(steps_reader *r, const step_place *s, ls_error *e) {
    if (strcmp(s->type, "ByteLevel") == 0) return LS_OK; /* of offsets alone */
    if (strcmp(s->type, "TemplateProcessing") == 0) return template_read(r, s, e);
    return unsupported(r, s, e);
}

ls_status ls_tokenizer_read_ends(const ls_json *root, const char *what, ls_tokenizer *t,
                                 ls_error *e) {
    steps_reader r = {.what = what, .t = t};
    return group_read(&r, root, "post_processor", "processors", end_read, e);
}
