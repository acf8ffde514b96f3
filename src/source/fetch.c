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

#include "base/bar.h"
#include "base/cache.h"
#include "base/curl.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "data/braces.h"
#include "source/index.h"
#include "source/response.h"

enum { ATTEMPTS = 6 };
static const int64_t FIRST_PAUSE_NS = 100000000;

typedef struct fetch {
    const char *url;
    char *path, *part, *from, *hash, *lock;
    const ls_curl *lib;
    CURL *curl;
    uint64_t most_nbytes;
    int fd;                 /* the file that receives the part */
    uint64_t begin, nbytes; /* the part had `begin` bytes when this attempt began, has nbytes */
    ls_response response;   /* its validator is the part's, also before there is a response */
    char detail[CURL_ERROR_SIZE];
    ls_error local; /* the disk's or a limit's: no attempt helps */
    ls_bar bar;
} fetch;

bool ls_is_url(const char *path) {
    return strncasecmp(path, "http://", 7) == 0 || strncasecmp(path, "https://", 8) == 0;
}

/* ---- one attempt ---- */

static size_t take_header(char *line, size_t size, size_t count, void *context) {
    fetch *f = context;
    ls_response_add(&f->response, line, size * count);
    return size * count;
}

/* The first bytes of a response: does it continue the part, or replace it? */
static bool begin_body(fetch *f) {
    if (f->response.status == 206 && f->response.first == f->begin) return true;
    if (f->response.status != 200 && f->response.status != 206) return false; /* an error's page */
    f->begin = f->nbytes = 0;
    bool whole = f->response.status == 200; /* else another range: the next attempt asks for all */
    if (ftruncate(f->fd, 0) == 0 &&
        (ls_file_replace(f->from, f->response.validator, strlen(f->response.validator),
                         &f->local) == LS_OK))
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
        ls_fail(&f->local, LS_EINVAL, "%s: is longer than %.1f MB, the most that is fetched",
                f->url, (double)f->most_nbytes / 1e6);
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

static int show_progress(void *context, curl_off_t all, curl_off_t done, curl_off_t up_all,
                         curl_off_t up) {
    fetch *f = context;
    (void)up_all, (void)up;
    if (all <= 0 || done <= 0) return 0; /* the length is not known yet */
    if (!f->bar.all) f->bar = ls_bar_begin("downloading: bytes", (uint64_t)all);
    ls_bar_at(&f->bar, (uint64_t)done);
    return 0;
}

/* range: of the bytes that are left, if there is a part. */
static void set_options(fetch *f, struct curl_slist *headers, const char *range) {
    const ls_curl *lib = f->lib;
    ls_curl_set_up(lib, f->curl, "http,https", getenv("SSL_CERT_FILE"), f->detail);
    lib->easy_setopt(f->curl, CURLOPT_URL, f->url);
    lib->easy_setopt(f->curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    lib->easy_setopt(f->curl, CURLOPT_FOLLOWLOCATION, 1L);
    lib->easy_setopt(f->curl, CURLOPT_MAXREDIRS, 5L);
    lib->easy_setopt(f->curl, CURLOPT_CONNECTTIMEOUT, 30L);
    lib->easy_setopt(f->curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    lib->easy_setopt(f->curl, CURLOPT_LOW_SPEED_TIME, 60L);
    lib->easy_setopt(f->curl, CURLOPT_USERAGENT, "lockstep");
    lib->easy_setopt(f->curl, CURLOPT_HEADERFUNCTION, take_header);
    lib->easy_setopt(f->curl, CURLOPT_HEADERDATA, f);
    lib->easy_setopt(f->curl, CURLOPT_WRITEFUNCTION, take_body);
    lib->easy_setopt(f->curl, CURLOPT_WRITEDATA, f);
    lib->easy_setopt(f->curl, CURLOPT_NOPROGRESS, 0L);
    lib->easy_setopt(f->curl, CURLOPT_XFERINFOFUNCTION, show_progress);
    lib->easy_setopt(f->curl, CURLOPT_XFERINFODATA, f);
    lib->easy_setopt(f->curl, CURLOPT_HTTPHEADER, headers);
    if (f->begin) lib->easy_setopt(f->curl, CURLOPT_RANGE, range);
}

/* The part's length and validator, from an earlier attempt or an earlier process. */
static void look_at_part(fetch *f) {
    ls_buf b = {0};
    struct stat st;
    f->begin = f->nbytes = 0;
    f->response.validator[0] = 0;
    if (fstat(f->fd, &st) == 0 && st.st_size > 0 &&
        ls_file_read(f->from, LS_VALIDATOR - 1, &b, NULL) == LS_OK && b.len) {
        f->begin = f->nbytes = (uint64_t)st.st_size;
        memcpy(f->response.validator, b.data, b.len + 1);
    }
    ls_buf_free(&b);
}

typedef enum outcome { DONE, AGAIN, FAILED } outcome;

static outcome attempt(fetch *f, ls_error *e) {
    struct curl_slist *headers = NULL;
    char range[32];
    look_at_part(f);
    f->detail[0] = 0;
    f->response.status = 0;
    f->response.first = 0;
    f->curl = f->lib->easy_init();
    if (!f->curl) return ls_fail(e, LS_EIO, "%s: libcurl can't be set up", f->url), FAILED;
    if (f->begin) {
        char *line = ls_format("If-Range: %s", f->response.validator);
        headers = f->lib->slist_append(NULL, line);
        free(line);
    }
    snprintf(range, sizeof range, "%llu-", (unsigned long long)f->begin);
    set_options(f, headers, range);
    f->bar = (ls_bar){0};
    CURLcode code = f->lib->easy_perform(f->curl);
    ls_bar_end(&f->bar);
    const char *why = f->detail[0] ? f->detail : f->lib->easy_strerror(code);
    outcome o = DONE;
    if (f->local.code != LS_OK) {
        ls_fail(e, f->local.code, "%s", f->local.msg);
        o = FAILED;
    } else if (f->response.status >= 400) {
        bool passing =
            f->response.status >= 500 || f->response.status == 408 || f->response.status == 429;
        if (f->response.status == 416 && f->begin) passing = ftruncate(f->fd, 0) == 0;
        ls_fail(e, LS_EIO, "%s: the server answers with status %ld", f->url, f->response.status);
        o = passing ? AGAIN : FAILED;
    } else if (code == CURLE_OK && f->nbytes == f->begin && f->response.status == 200 &&
               !begin_body(f)) {
        ls_fail(e, LS_EIO, "%s", f->local.msg); /* an empty file */
        o = FAILED;
    } else if (code != CURLE_OK) {
        bool stranger = code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE;
        ls_fail(e, LS_EIO, "%s: can't be downloaded: %s%s", f->url, why,
                stranger ? "; SSL_CERT_FILE=FILE names the certificates of authorities to trust"
                         : "");
        bool hopeless = stranger || code == CURLE_URL_MALFORMAT ||
                        code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_TOO_MANY_REDIRECTS;
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

/* The bytes of the file, its hash, and its state when that was found. */
typedef struct record {
    ls_hash hash;
    ls_stamp stamp;
} record;

static ls_status look_at(const char *path, ls_stamp *s_p, ls_error *e) {
    struct stat st;
    if (stat(path, &st) != 0)
        return ls_fail(e, LS_EIO, "%s: can't be looked at: %s", path, strerror(errno));
    *s_p = ls_stamp_of(&st);
    return LS_OK;
}

static ls_status read_record(const char *path, record *r_p, ls_error *e) {
    LS_TRY(look_at(path, &r_p->stamp, e));
    return ls_file_hash(path, &r_p->hash, NULL, e);
}

static ls_status write_record(const fetch *f, const record *r, ls_error *e) {
    char text[LS_HASH_TEXT];
    ls_buf b = {0};
    ls_hash_text(r->hash, text);
    ls_buf_printf(&b, "%llu %s %llu %lld %lld\n", (unsigned long long)r->stamp.nbytes, text,
                  (unsigned long long)r->stamp.inode, (long long)r->stamp.mtime_ns,
                  (long long)r->stamp.ctime_ns);
    ls_status s = ls_file_replace(f->hash, b.data, b.len, e);
    ls_buf_free(&b);
    return s;
}

typedef struct recorded {
    char hash[LS_HASH_TEXT];
    ls_stamp stamp;
} recorded;

static bool read_recorded(const fetch *f, recorded *r_p) {
    ls_buf b = {0};
    unsigned long long nbytes = 0, inode = 0;
    long long mtime = 0, ctime = 0;
    bool good = ls_file_read(f->hash, 200, &b, NULL) == LS_OK &&
                sscanf(b.data, "%20llu %32[0-9a-f] %20llu %20lld %20lld", &nbytes, r_p->hash,
                       &inode, &mtime, &ctime) == 5;
    r_p->stamp = (ls_stamp){nbytes, inode, mtime, ctime};
    ls_buf_free(&b);
    return good;
}

/* A complete file has the recorded length and hash, which is found again only if the file was
 * touched; another one is removed. */
static ls_status check_cached(const fetch *f, bool *there_p, ls_error *e) {
    record now = {0};
    recorded then = {0};
    char text[LS_HASH_TEXT];
    *there_p = false;
    if (!ls_file_exists(f->path)) return LS_OK;
    LS_TRY(look_at(f->path, &now.stamp, e));
    bool known = read_recorded(f, &then);
    if (known && ls_stamp_same(&now.stamp, &then.stamp)) {
        *there_p = true;
        return LS_OK;
    }
    LS_TRY(read_record(f->path, &now, e));
    ls_hash_text(now.hash, text);
    if (known && now.stamp.nbytes == then.stamp.nbytes && strcmp(text, then.hash) == 0) {
        *there_p = true;
        return write_record(f, &now, e);
    }
    ls_log("%s: is not the file that was downloaded; it is downloaded again", f->path);
    unlink(f->path);
    return LS_OK;
}

static ls_status complete(fetch *f, ls_error *e) {
    record r = {0};
    if (fsync(f->fd) != 0)
        return ls_fail(e, LS_EIO, "%s: can't be written: %s", f->part, strerror(errno));
    LS_TRY(read_record(f->part, &r, e));
    LS_TRY(write_record(f, &r, e));
    LS_TRY(ls_file_rename(f->part, f->path, e));
    unlink(f->from);
    LS_TRY(look_at(f->path, &r.stamp, e)); /* renamed: its times changed */
    return write_record(f, &r, e);
}

static ls_status fetch_locked(fetch *f, ls_error *e) {
    bool there = false;
    LS_TRY(check_cached(f, &there, e));
    if (there) return LS_OK;
    LS_TRY(ls_curl_load(&f->lib, e));
    f->fd = open(f->part, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (f->fd < 0) return ls_fail(e, LS_EIO, "%s: can't be opened: %s", f->part, strerror(errno));
    ls_status s = download(f, e);
    if (s == LS_OK) s = complete(f, e);
    close(f->fd);
    return s;
}

/* ---- names ---- */

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
    char *dir = ls_cache_dir(cache, "downloads");
    fetch f = {.url = url, .most_nbytes = most_nbytes, .fd = -1};
    f.path = ls_format("%s/%.16s-%s", dir, hash, name);
    f.part = ls_format("%s.part", f.path);
    f.from = ls_format("%s.from", f.path);
    f.hash = ls_format("%s.hash", f.path);
    f.lock = ls_format("%s.lock", f.path);
    ls_status s = ls_file_make_dirs(dir, e);
    int lock = s == LS_OK ? open(f.lock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666) : -1;
    if (s == LS_OK && (lock < 0 || flock(lock, LOCK_EX) != 0))
        s = ls_fail(e, LS_EIO, "%s: can't be locked: %s", f.lock, strerror(errno));
    if (s == LS_OK) s = fetch_locked(&f, e);
    if (lock >= 0) close(lock);
    if (s == LS_OK) *path_p = ls_strdup(f.path);
    free(f.path), free(f.part), free(f.from), free(f.hash), free(f.lock);
    free(dir);
    return s;
}

/* The addresses that one stands for: appends their files, one a line. */
static ls_status fetch_all(const char *url, const char *cache, uint64_t most_nbytes, ls_buf *b,
                           ls_error *e) {
    ls_buf urls = {0};
    ls_status s = ls_braces_expand(url, &urls, e);
    for (char *rest = urls.data, *one; s == LS_OK && rest && *rest;) {
        char *local = NULL;
        bool first = rest == urls.data;
        one = strsep(&rest, "\n");
        s = ls_fetch(one, cache, most_nbytes, &local, e);
        if (s == LS_OK) ls_buf_printf(b, "%s%s", first ? "" : "\n", local);
        free(local);
    }
    ls_buf_free(&urls);
    return s;
}

ls_status ls_fetch_paths(const char *paths, const char *cache, uint64_t most_nbytes, char **local_p,
                         ls_error *e) {
    ls_buf b = {0};
    ls_status s = LS_OK;
    ls_buf_append(&b, "", 0);
    for (const char *line = paths; *line && s == LS_OK;) {
        size_t n = strcspn(line, "\n");
        char *path = ls_format("%.*s", (int)n, line);
        if (!ls_is_url(path))
            ls_buf_printf(&b, "%s", path);
        else
            s = fetch_all(path, cache, most_nbytes, &b, e);
        free(path);
        if (line[n]) ls_buf_printf(&b, "\n");
        line += n + (line[n] == '\n');
    }
    if (s == LS_OK)
        *local_p = b.data;
    else
        ls_buf_free(&b);
    return s;
}

char *ls_paths_from(const char *paths, const char *dir) {
    ls_buf b = {0};
    char *all = ls_strdup(paths), *rest = *paths ? all : NULL;
    for (char *one; (one = strsep(&rest, "\n"));) {
        bool moves = dir && *one && *one != '/' && !ls_is_url(one);
        ls_buf_printf(&b, "%s%s%s%s", b.len ? "\n" : "", moves ? dir : "", moves ? "/" : "", one);
    }
    free(all);
    if (!b.data) ls_buf_append(&b, "", 1);
    return b.data;
}
