/* fetch.c - see fetch.h. */
#include "source/fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/curl.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"

enum { ATTEMPTS = 6, VALIDATOR = 256 };
static const int64_t FIRST_PAUSE_NS = 100000000;

typedef struct fetch {
    const char *url;
    char *path, *part, *from, *hash, *lock;
    const ls_curl *lib;
    CURL *curl;
    uint64_t most_nbytes;
    int fd;                    /* of the part */
    uint64_t begin, nbytes;    /* the part had `begin` bytes when this attempt began, has nbytes */
    char validator[VALIDATOR]; /* ETag or date of the part; empty: it can't be resumed */
    long status;               /* of the response whose headers are being read */
    uint64_t first;            /* where its bytes begin in the file */
    char detail[CURL_ERROR_SIZE];
    ls_error local; /* the disk's or a limit's: no attempt helps */
} fetch;

bool ls_is_url(const char *path) {
    return strncasecmp(path, "http://", 7) == 0 || strncasecmp(path, "https://", 8) == 0;
}

/* ---- one attempt ---- */

/* "Name: value\r\n": copies the value. */
static bool header_is(const char *line, size_t n, const char *name, char value[VALIDATOR]) {
    size_t m = strlen(name);
    if (n <= m || strncasecmp(line, name, m) != 0 || line[m] != ':') return false;
    const char *v = line + m + 1, *end = line + n;
    while (v < end && (*v == ' ' || *v == '\t')) v++;
    while (end > v && (end[-1] == '\r' || end[-1] == '\n' || end[-1] == ' ')) end--;
    size_t length = (size_t)(end - v);
    if (length >= VALIDATOR) length = 0;
    memcpy(value, v, length);
    value[length] = 0;
    return true;
}

static size_t take_header(char *line, size_t size, size_t count, void *context) {
    fetch *f = context;
    size_t n = size * count;
    char value[VALIDATOR];
    if (n > 5 && strncmp(line, "HTTP/", 5) == 0) { /* another response, after a redirection */
        f->status = 0;
        f->first = 0;
        f->lib->easy_getinfo(f->curl, CURLINFO_RESPONSE_CODE, &f->status);
        if (f->status != 206) f->validator[0] = 0;
    } else if (header_is(line, n, "Content-Range", value)) {
        unsigned long long first;
        if (sscanf(value, "bytes %llu-", &first) == 1) f->first = first;
    } else if (f->status != 206 && header_is(line, n, "ETag", value)) {
        if (strncmp(value, "W/", 2) != 0) memcpy(f->validator, value, sizeof value);
    } else if (f->status != 206 && !f->validator[0] && header_is(line, n, "Last-Modified", value)) {
        memcpy(f->validator, value, sizeof value);
    }
    return n;
}

/* The first bytes of a response: does it continue the part, or replace it? */
static bool begin_body(fetch *f) {
    if (f->status == 206 && f->first == f->begin) return true;
    if (f->status != 200 && f->status != 206) return false; /* an error's page */
    f->begin = f->nbytes = 0;
    bool whole = f->status == 200; /* else another range: the next attempt asks for all */
    if (ftruncate(f->fd, 0) == 0 &&
        (ls_file_replace(f->from, f->validator, strlen(f->validator), &f->local) == LS_OK))
        return whole;
    if (f->local.code == LS_OK)
        ls_fail(&f->local, LS_EIO, "%s: can't be written: %s", f->part, strerror(errno));
    return false;
}

static size_t take_body(char *data, size_t size, size_t count, void *context) {
    fetch *f = context;
    size_t n = size * count;
    if (f->nbytes == f->begin && !begin_body(f)) return 0;
    if (n > f->most_nbytes - f->nbytes) {
        ls_fail(&f->local, LS_EINVAL, "%s: is longer than %.1f MB, the limit", f->url,
                (double)f->most_nbytes / 1e6);
        return 0;
    }
    for (size_t done = 0; done < n;) {
        ssize_t put = pwrite(f->fd, data + done, n - done, (off_t)(f->nbytes + done));
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) {
            ls_fail(&f->local, LS_EIO, "%s: can't be written: %s", f->part, strerror(errno));
            return 0;
        }
        done += (size_t)put;
    }
    f->nbytes += n;
    return n;
}

/* range: of the bytes that are left, if there is a part. */
static void set_options(fetch *f, struct curl_slist *headers, const char *range) {
    const ls_curl *lib = f->lib;
    lib->easy_setopt(f->curl, CURLOPT_URL, f->url);
    lib->easy_setopt(f->curl, CURLOPT_PROTOCOLS_STR, "http,https");
    lib->easy_setopt(f->curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    lib->easy_setopt(f->curl, CURLOPT_FOLLOWLOCATION, 1L);
    lib->easy_setopt(f->curl, CURLOPT_MAXREDIRS, 5L);
    lib->easy_setopt(f->curl, CURLOPT_NOSIGNAL, 1L);
    lib->easy_setopt(f->curl, CURLOPT_CONNECTTIMEOUT, 30L);
    lib->easy_setopt(f->curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    lib->easy_setopt(f->curl, CURLOPT_LOW_SPEED_TIME, 60L);
    lib->easy_setopt(f->curl, CURLOPT_USERAGENT, "lockstep");
    lib->easy_setopt(f->curl, CURLOPT_ERRORBUFFER, f->detail);
    lib->easy_setopt(f->curl, CURLOPT_HEADERFUNCTION, take_header);
    lib->easy_setopt(f->curl, CURLOPT_HEADERDATA, f);
    lib->easy_setopt(f->curl, CURLOPT_WRITEFUNCTION, take_body);
    lib->easy_setopt(f->curl, CURLOPT_WRITEDATA, f);
    lib->easy_setopt(f->curl, CURLOPT_HTTPHEADER, headers);
    if (f->begin) lib->easy_setopt(f->curl, CURLOPT_RANGE, range);
}

/* The part's length and validator, from an earlier attempt or an earlier process. */
static void look_at_part(fetch *f) {
    ls_buf b = {0};
    struct stat st;
    f->begin = f->nbytes = 0;
    f->validator[0] = 0;
    if (fstat(f->fd, &st) == 0 && st.st_size > 0 &&
        ls_file_read(f->from, VALIDATOR - 1, &b, NULL) == LS_OK && b.len) {
        f->begin = f->nbytes = (uint64_t)st.st_size;
        memcpy(f->validator, b.data, b.len + 1);
    }
    ls_buf_free(&b);
}

typedef enum outcome { DONE, AGAIN, FAILED } outcome;

static outcome attempt(fetch *f, ls_error *e) {
    struct curl_slist *headers = NULL;
    char range[32];
    look_at_part(f);
    f->detail[0] = 0;
    f->status = 0;
    f->curl = f->lib->easy_init();
    if (!f->curl) return ls_fail(e, LS_EIO, "%s: libcurl can't be set up", f->url), FAILED;
    if (f->begin) {
        char *line = ls_format("If-Range: %s", f->validator);
        headers = f->lib->slist_append(NULL, line);
        free(line);
    }
    snprintf(range, sizeof range, "%llu-", (unsigned long long)f->begin);
    set_options(f, headers, range);
    CURLcode code = f->lib->easy_perform(f->curl);
    f->lib->easy_getinfo(f->curl, CURLINFO_RESPONSE_CODE, &f->status);
    const char *why = f->detail[0] ? f->detail : f->lib->easy_strerror(code);
    outcome o = DONE;
    if (f->local.code != LS_OK) {
        ls_fail(e, f->local.code, "%s", f->local.msg);
        o = FAILED;
    } else if (f->status >= 400) {
        bool passing = f->status >= 500 || f->status == 408 || f->status == 429;
        if (f->status == 416 && f->begin) passing = ftruncate(f->fd, 0) == 0;
        ls_fail(e, LS_EIO, "%s: the server answers with status %ld", f->url, f->status);
        o = passing ? AGAIN : FAILED;
    } else if (code == CURLE_OK && f->nbytes == f->begin && f->status == 200 && !begin_body(f)) {
        ls_fail(e, LS_EIO, "%s", f->local.msg); /* an empty file */
        o = FAILED;
    } else if (code != CURLE_OK) {
        ls_fail(e, LS_EIO, "%s: can't be downloaded: %s", f->url, why);
        bool hopeless = code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL ||
                        code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_TOO_MANY_REDIRECTS;
        o = hopeless ? FAILED : AGAIN;
    }
    f->lib->easy_cleanup(f->curl);
    f->lib->slist_free_all(headers);
    return o;
}

/* ---- a download ---- */

static void pause_ns(int64_t ns) {
    struct timespec t = {ns / 1000000000, ns % 1000000000};
    nanosleep(&t, NULL);
}

/* Attempts that bring bytes are not counted. */
static ls_status download(fetch *f, ls_error *e) {
    int64_t pause = FIRST_PAUSE_NS;
    for (int failed = 0; failed < ATTEMPTS;) {
        uint64_t before = f->nbytes;
        outcome o = attempt(f, e);
        if (o == DONE) return LS_OK;
        if (o == FAILED) return f->local.code != LS_OK ? f->local.code : LS_EIO;
        if (f->nbytes > before) {
            failed = 0;
            pause = FIRST_PAUSE_NS;
            continue;
        }
        if (++failed == ATTEMPTS) break;
        pause_ns(pause);
        pause *= 2;
    }
    return LS_EIO;
}

static ls_status hash_file(const char *path, ls_buf *b, ls_error *e) {
    ls_mapped m;
    char text[LS_HASH_TEXT];
    LS_TRY(ls_file_map(path, &m, e));
    ls_hash_text(ls_hash_bytes(m.data, m.nbytes), text);
    ls_buf_printf(b, "%zu %s\n", m.nbytes, text);
    ls_file_unmap(&m);
    return LS_OK;
}

/* A complete file has the recorded length and hash; another one is removed. */
static ls_status check_cached(const fetch *f, bool *there_p, ls_error *e) {
    ls_buf now = {0}, then = {0};
    *there_p = false;
    if (!ls_file_exists(f->path)) return LS_OK;
    ls_status s = hash_file(f->path, &now, e);
    if (s == LS_OK && ls_file_read(f->hash, 128, &then, NULL) == LS_OK && now.len == then.len &&
        memcmp(now.data, then.data, now.len) == 0) {
        *there_p = true;
    } else if (s == LS_OK) {
        ls_log("%s: is not the file that was downloaded; it is downloaded again", f->path);
        unlink(f->path);
    }
    ls_buf_free(&now);
    ls_buf_free(&then);
    return s;
}

static ls_status complete(fetch *f, ls_error *e) {
    ls_buf b = {0};
    if (fsync(f->fd) != 0)
        return ls_fail(e, LS_EIO, "%s: can't be written: %s", f->part, strerror(errno));
    LS_TRY(hash_file(f->part, &b, e));
    ls_status s = ls_file_replace(f->hash, b.data, b.len, e);
    ls_buf_free(&b);
    if (s == LS_OK) s = ls_file_rename(f->part, f->path, e);
    if (s == LS_OK) unlink(f->from);
    return s;
}

static ls_status fetch_locked(fetch *f, ls_error *e) {
    bool there = false;
    LS_TRY(check_cached(f, &there, e));
    if (there) return LS_OK;
    LS_TRY(ls_curl_load(&f->lib, e));
    f->fd = open(f->part, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (f->fd < 0) return ls_fail(e, LS_EIO, "%s: can't be opened: %s", f->part, strerror(errno));
    ls_status s = download(f, e);
    if (s == LS_OK) s = complete(f, e);
    close(f->fd);
    return s;
}

/* ---- names ---- */

static char *default_cache(void) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && *cache) return ls_format("%s/lockstep", cache);
    return ls_format("%s/.cache/lockstep", home && *home ? home : "/var/tmp");
}

/* The last part of the address, without a query; only characters that are plain in a file name. */
static void name_of(const char *url, char name[64]) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    size_t end = strcspn(url, "?#"), begin = end, n = 0;
    while (begin > 0 && url[begin - 1] != '/') begin--;
    if (end - begin > 63) begin = end - 63; /* the suffix tells the format */
    for (; begin < end; begin++) name[n++] = strchr(plain, url[begin]) ? url[begin] : '_';
    name[n] = 0;
}

static ls_status check_url(const char *url, ls_error *e) {
    const char *host = strstr(url, "//") + 2;
    size_t n = strcspn(host, "/?#");
    if (n == 0) return ls_fail(e, LS_EINVAL, "%s: names no host", url);
    if (memchr(host, '@', n))
        return ls_fail(e, LS_EINVAL,
                       "an address with a user or password (before the @) is refused");
    return LS_OK;
}

ls_status ls_fetch(const char *url, const char *cache, uint64_t most_nbytes, char **path_p,
                   ls_error *e) {
    char hash[LS_HASH_TEXT], name[64];
    LS_TRY(check_url(url, e));
    ls_hash_text(ls_hash_bytes(url, strlen(url)), hash);
    name_of(url, name);
    char *root = cache ? ls_strdup(cache) : default_cache();
    char *dir = ls_format("%s/downloads", root);
    fetch f = {.url = url, .most_nbytes = most_nbytes, .fd = -1};
    f.path = ls_format("%s/%.16s-%s", dir, hash, name);
    f.part = ls_format("%s.part", f.path);
    f.from = ls_format("%s.from", f.path);
    f.hash = ls_format("%s.hash", f.path);
    f.lock = ls_format("%s.lock", f.path);
    ls_status s = ls_file_make_dirs(dir, e);
    int lock = s == LS_OK ? open(f.lock, O_RDWR | O_CREAT | O_CLOEXEC, 0666) : -1;
    if (s == LS_OK && (lock < 0 || flock(lock, LOCK_EX) != 0))
        s = ls_fail(e, LS_EIO, "%s: can't be locked: %s", f.lock, strerror(errno));
    if (s == LS_OK) s = fetch_locked(&f, e);
    if (lock >= 0) close(lock);
    if (s == LS_OK) *path_p = ls_strdup(f.path);
    free(f.path), free(f.part), free(f.from), free(f.hash), free(f.lock);
    free(dir);
    free(root);
    return s;
}

ls_status ls_fetch_paths(const char *paths, const char *cache, uint64_t most_nbytes, char **local_p,
                         ls_error *e) {
    ls_buf b = {0};
    ls_status s = LS_OK;
    ls_buf_append(&b, "", 0);
    for (const char *line = paths; *line && s == LS_OK;) {
        size_t n = strcspn(line, "\n");
        char *path = ls_format("%.*s", (int)n, line), *local = NULL;
        if (ls_is_url(path)) s = ls_fetch(path, cache, most_nbytes, &local, e);
        ls_buf_printf(&b, "%s%s", local ? local : path, line[n] ? "\n" : "");
        free(local);
        free(path);
        line += n + (line[n] == '\n');
    }
    if (s == LS_OK)
        *local_p = b.data;
    else
        ls_buf_free(&b);
    return s;
}
