/* process.c - see process.h. */
#include "base/process.h"

#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/shell_word.h"

/* MOST: processes below one; a tree that changes while it is read can't keep a reader busy. */
enum { PATH = 96, MOST = 8192 };

/* A clock that is set, and times in whole seconds. */
static const double SLACK_S = 3;

/* ---- one process ---- */

typedef struct stat_line {
    char state;
    int parent;
    double began_s; /* after the start of the machine */
} stat_line;

/* The name in parentheses may have any characters, also parentheses. */
static bool read_stat(int pid, stat_line *s_p) {
    char path[PATH], text[1024];
    unsigned long long began = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f) fclose(f);
    text[n] = 0;
    const char *after = strrchr(text, ')');
    if (!after || sscanf(after,
                         ") %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
                         "%*d %*d %*d %llu",
                         &s_p->state, &s_p->parent, &began) != 3)
        return false;
    s_p->began_s = (double)began / (double)sysconf(_SC_CLK_TCK);
    return true;
}

/* When the machine was started; 0: not known. */
static double boot_s(void) {
    char line[256];
    double s = 0;
    FILE *f = fopen("/proc/stat", "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "btime %lf", &s) == 1) break;
    if (f) fclose(f);
    return s;
}

/* A process that has ended may still have its number. */
static bool has_ended(const stat_line *s) { return s->state == 'Z' || s->state == 'X'; }

bool ls_process_was_there(int pid, double at_s) {
    stat_line s;
    if (pid <= 0 || !read_stat(pid, &s) || has_ended(&s)) return false;
    double boot = boot_s();
    return boot == 0 || boot + s.began_s <= at_s + SLACK_S;
}

bool ls_process_has_file(int pid, const struct stat *file, double at_s) {
    char path[PATH];
    struct stat st;
    bool has = false;
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *d = opendir(path);
    if (!d) return ls_process_was_there(pid, at_s);
    for (struct dirent *f; !has && (f = readdir(d));)
        has = fstatat(dirfd(d), f->d_name, &st, 0) == 0 && st.st_dev == file->st_dev &&
              st.st_ino == file->st_ino;
    closedir(d);
    return has;
}

/* ---- all processes of a command ---- */

typedef struct command {
    char text[4096]; /* [n] the words, each with a 0 */
    size_t n;
    char directory[PATH_MAX]; /* where it is; "": not known */
} command;

static command command_of(int pid) {
    char path[PATH];
    command c = {.n = 0};
    snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    FILE *f = fopen(path, "re");
    if (f) c.n = fread(c.text, 1, sizeof c.text, f);
    if (f) fclose(f);
    snprintf(path, sizeof path, "/proc/%d/cwd", pid);
    ssize_t n = readlink(path, c.directory, sizeof c.directory - 1);
    c.directory[n > 0 ? n : 0] = 0;
    return c;
}

static bool has_command(int pid, const command *c) {
    command of = command_of(pid);
    return c->n && of.n == c->n && memcmp(of.text, c->text, c->n) == 0 &&
           strcmp(of.directory, c->directory) == 0;
}

/* Calls use() for each child. */
static void each_child(int pid, void (*use)(int child, void *arg), void *arg) {
    char path[PATH];
    int child = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
    FILE *f = fopen(path, "re");
    for (int i = 0; f && i < MOST && fscanf(f, "%d", &child) == 1; i++) use(child, arg);
    if (f) fclose(f);
}

char *ls_process_own_command(void) {
    const command c = command_of((int)getpid());
    ls_buf b = {0};
    for (size_t at = 0; at < c.n;) {
        char word[sizeof c.text + 1];
        snprintf(word, sizeof word, "%.*s", (int)(c.n - at), c.text + at);
        if (at) ls_buf_append(&b, " ", 1);
        ls_shell_word(&b, word);
        at += strlen(word) + 1;
    }
    return b.data ? b.data : ls_strdup("");
}

typedef struct sum {
    const command *command;
    int64_t own, shared; /* the sum of what each has alone; the most that one shares with others */
    int n;
} sum;

static void add_tree(int pid, void *arg) {
    char path[PATH];
    long long resident = 0, shared = 0, page = sysconf(_SC_PAGESIZE);
    sum *s = arg;
    snprintf(path, sizeof path, "/proc/%d/statm", pid);
    FILE *f = fopen(path, "re");
    bool read = f && fscanf(f, "%*s %lld %lld", &resident, &shared) == 2;
    if (f) fclose(f);
    if (!read || s->n++ >= MOST) return;
    s->own += (resident - shared) * page;
    if (shared * page > s->shared) s->shared = shared * page;
    each_child(pid, add_tree, s);
}

static void add_if_same(int pid, void *arg) {
    sum *s = arg;
    if (has_command(pid, s->command)) add_tree(pid, s);
}

int64_t ls_process_command_nbytes(int pid) {
    stat_line at;
    if (pid <= 0 || !read_stat(pid, &at) || has_ended(&at)) return -1;
    command c = command_of(pid);
    sum s = {.command = &c};
    while (at.parent > 1 && has_command(at.parent, &c)) {
        pid = at.parent;
        if (!read_stat(pid, &at)) return -1;
    }
    if (at.parent > 0) each_child(at.parent, add_if_same, &s);
    if (!s.n) add_tree(pid, &s); /* the parent is another user's */
    return s.n ? s.own + s.shared : -1;
}

int64_t ls_process_proportional_nbytes(int pid) {
    char path[PATH], line[256];
    long long kb = -1;
    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", pid);
    FILE *f = pid > 0 ? fopen(path, "re") : NULL;
    while (f && kb < 0 && fgets(line, sizeof line, f)) sscanf(line, "Pss: %lld kB", &kb);
    if (f) fclose(f);
    return kb < 0 ? -1 : kb * 1024;
}

double ls_process_cpu_s(int pid) {
    char path[PATH], text[1024] = "";
    long long user = 0, system = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = pid > 0 ? fopen(path, "re") : NULL;
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f) fclose(f);
    text[n] = 0;
    const char *at = strrchr(text, ')'); /* the name may contain anything */
    if (!at || sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lld %lld", &user,
                      &system) != 2)
        return NAN;
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}
