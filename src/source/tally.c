/* tally.c - see tally.h. */
#include "source/tally.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json_records.h"
#include "base/log.h"
#include "chat/chat_lines.h"
#include "chat/preference.h"
#include "data/walk.h"
#include "source/ending.h"
#include "source/plain.h"
#include "source/text.h"
#include "source/text_files.h"

enum { LINES = 20 }; /* that damage is logged in */

/* ---- what files are ---- */

/* The key by which the first object of a file is a conversation, but for a text alone, which is one
 * of many fields in files of samples, too. NULL: it is none. */
static const char *chat_key_of(const char *path) {
    ls_plain file = {0};
    const char *key = NULL;
    if (!ls_text_files_is_json(path) || ls_plain_open_unhashed(path, &file, NULL) != LS_OK)
        return NULL;
    if (file.nbytes) key = ls_chat_lines_key((const char *)file.data, file.nbytes);
    ls_plain_close(&file);
    return key && strcmp(key, "text") == 0 ? NULL : key;
}

static bool has_text(const ls_json *object) {
    return ls_json_text(object) || ls_json_text(ls_json_get(object, "text")) ||
           ls_json_text(ls_json_get(object, "content"));
}

/* Does the first object of a file have a text, as objects of a corpus have? */
static bool is_text_json(const char *path) {
    ls_plain file = {0};
    if (!ls_text_files_is_json(path)) return false;
    if (ls_plain_open_unhashed(path, &file, NULL) != LS_OK) return false;
    ls_json *first = ls_chat_lines_first((const char *)file.data, file.nbytes);
    bool has = has_text(first);
    ls_json_free(first);
    ls_plain_close(&file);
    return has;
}

/* Corpora are published as arrays of texts, and seldom as lines. */
static bool is_text_array(const char *path) {
    static const char *const endings[] = {".json", NULL};
    return ls_ending_is_one_of(path, endings) && is_text_json(path);
}

static ls_tally_kind kind_of_file(const char *path) {
    return ls_text_files_is_plain(path) ? LS_TALLY_TEXTS
           : chat_key_of(path)          ? LS_TALLY_CHATS
           : is_text_array(path)        ? LS_TALLY_TEXTS
                                        : LS_TALLY_SAMPLES;
}

static bool is_picture_name(const char *path) {
    static const char *const endings[] = {".png",  ".jpg", ".jpeg", ".gif",  ".webp",
                                          ".heic", ".bmp", ".tif",  ".tiff", NULL};
    return ls_ending_is_one_of(path, endings);
}

/* Texts with some pictures beside them, as documents have, are not images with some texts. */
static ls_tally_kind kind_of_directory(const char *dir) {
    ls_walk w = {0};
    size_t ntexts = 0, npictures = 0;
    if (ls_walk_below(dir, &w, NULL) != LS_OK) return LS_TALLY_SAMPLES;
    for (size_t i = 0; i < w.files.n; i++) {
        ntexts += ls_text_files_is_plain(w.files.paths[i]);
        npictures += is_picture_name(w.files.paths[i]);
    }
    bool most = 2 * ntexts > w.files.n || (npictures && ntexts > npictures);
    ls_walk_free(&w);
    return most ? LS_TALLY_TEXTS : LS_TALLY_SAMPLES;
}

ls_tally_kind ls_tally_kind_of(const char *paths) {
    ls_files files = {0};
    if (strstr(paths, "://") || ls_files_find(paths, &files, NULL) != LS_OK)
        return LS_TALLY_SAMPLES;
    const char *first = files.n ? files.paths[0] : NULL;
    ls_tally_kind kind = !first                  ? LS_TALLY_SAMPLES
                         : ls_file_is_dir(first) ? kind_of_directory(first)
                                                 : kind_of_file(first);
    ls_files_free(&files);
    return kind;
}

ls_tally_kind ls_tally_kind_besides(const char *paths) {
    ls_text_files all = {0}, json = {0};
    if (strstr(paths, "://") || ls_text_files_find(paths, &all, NULL) != LS_OK)
        return LS_TALLY_SAMPLES;
    bool has_json = ls_text_files_find_json(paths, &json, NULL) == LS_OK && json.files.n;
    ls_tally_kind kind = all.nbelow ? LS_TALLY_TEXTS : LS_TALLY_SAMPLES;
    if (!all.nbelow && is_text_json(all.files.paths[0])) kind = LS_TALLY_TEXTS;
    if (all.nbelow && has_json && 2 * json.nbelow >= all.nbelow && chat_key_of(json.files.paths[0]))
        kind = LS_TALLY_CHATS;
    ls_text_files_free(&all);
    ls_text_files_free(&json);
    return kind;
}

/* ---- counting ---- */

static void count_messages(const ls_conversation *c, ls_tally *to) {
    for (size_t i = 0; i < ls_json_count(c->messages); i++) {
        to->nmessages++;
        to->nanswers += ls_message_is_answer(ls_json_at(c->messages, i));
    }
}

static void add_key(const char *key, ls_tally *to) {
    for (int i = 0; key && i < to->nkeys; i++)
        if (strcmp(to->keys[i], key) == 0) return;
    if (key && to->nkeys < LS_TALLY_KEYS) to->keys[to->nkeys++] = key;
}

static ls_status count_object(const ls_json *object, ls_tally *to, ls_error *e) {
    add_key(ls_chat_object_key(object), to);
    if (ls_preference_is(object)) {
        ls_preference p = {0};
        LS_TRY(ls_preference_read(object, &p, e));
        to->npairs++;
        ls_preference_free(&p);
        return LS_OK;
    }
    ls_conversation c = {0};
    LS_TRY(ls_conversation_read(object, &c, e));
    to->nchats++;
    count_messages(&c, to);
    ls_conversation_free(&c);
    return LS_OK;
}

static void log_damage(const char *path, const ls_json_records *r, const char *why, ls_tally *to) {
    ls_error e = {0};
    ls_json_records_fail(r, path, why, &e);
    if (to->ndamaged++ < LINES) ls_log("%s", e.msg);
}

static ls_status count_chats(const char *path, ls_tally *to, ls_error *e) {
    ls_plain file = {0};
    LS_TRY(ls_plain_open_unhashed(path, &file, e));
    ls_json_records r = ls_json_records_of((const char *)file.data, file.nbytes);
    while (ls_json_records_next(&r)) {
        ls_json *object = NULL;
        ls_error why = {0};
        ls_status s = ls_json_records_parse(&r, &object, &why);
        if (s == LS_OK) s = count_object(object, to, &why);
        ls_json_free(object);
        if (s != LS_OK) log_damage(path, &r, why.msg, to);
    }
    if (r.wrong) log_damage(path, &r, r.wrong, to);
    ls_plain_close(&file);
    return LS_OK;
}

ls_status ls_tally_read(const ls_tally_request *d, ls_tally_kind kind, ls_tally *to, ls_error *e) {
    *to = (ls_tally){0};
    ls_text_files f = {0};
    LS_TRY(
        (kind == LS_TALLY_CHATS ? ls_text_files_find_json : ls_text_files_find)(d->paths, &f, e));
    ls_status s = LS_OK;
    to->nfiles = f.files.n;
    for (size_t i = 0; s == LS_OK && i < f.files.n; i++) {
        struct stat st;
        if (stat(f.files.paths[i], &st) == 0) to->file_nbytes += (uint64_t)st.st_size;
        if (kind == LS_TALLY_CHATS) s = count_chats(f.files.paths[i], to, e);
    }
    if (kind == LS_TALLY_CHATS) ls_text_files_log(&f, d->paths, 0);
    if (s == LS_OK && to->ndamaged > LINES)
        ls_log("and %llu more damaged objects", (unsigned long long)(to->ndamaged - LINES));
    ls_text_files_free(&f);
    if (s != LS_OK || kind == LS_TALLY_CHATS) return s;
    ls_text t = {0};
    const ls_text_options o = {
        .column = d->column, .json = LS_TEXT_JSON_COLUMN, .skip_damaged = d->skips_damaged};
    LS_TRY(ls_text_open(d->paths, &o, &t, e));
    to->ndocuments = t.ndocuments;
    to->ndamaged = t.damage.n;
    to->nbytes = t.nbytes;
    ls_text_close(&t);
    return LS_OK;
}
