/* cgroup.c - see cgroup.h.
 *
 * Source: Linux, Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst; cgroups(7) for
 * /proc/self/cgroup.
 */
#include "base/cgroup.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Version 1 expresses "no limit" as a number larger than any machine's memory. */
static const double NO_MACHINE = 1e18;

/* One group's limit, read from the files in its directory; 0: none. */
typedef double limit_fn(const char *folder);

static bool read_word(const char *folder, const char *name, char word[64]) {
    char *path = ls_format("%s/%s", folder, name);
    FILE *f = fopen(path, "re");
    free(path);
    bool good = f && fgets(word, 64, f);
    if (f) fclose(f);
    return good;
}

static double number(const char *text) { return strtod(text, NULL); /* "max" is 0 */ }

static double memory_of(const char *folder) {
    char word[64];
    bool there =
        read_word(folder, "memory.max", word) || read_word(folder, "memory.limit_in_bytes", word);
    double limit = there ? number(word) : 0;
    return limit < NO_MACHINE ? limit : 0;
}

static double cores_of(const char *folder) {
    char word[64], period[64];
    double quota = 0, per = 0;
    if (read_word(folder, "cpu.max", word)) {
        const char *second = strchr(word, ' ');
        quota = number(word);
        per = second ? number(second) : 0;
    } else if (read_word(folder, "cpu.cfs_quota_us", word) &&
               read_word(folder, "cpu.cfs_period_us", period)) {
        quota = number(word); /* -1: none */
        per = number(period);
    }
    return quota > 0 && per > 0 ? quota / per : 0;
}

static void take_less(double limit, double *least) {
    if (limit > 0 && (*least == 0 || limit < *least)) *least = limit;
}

/* From the group up to the root. A group that can't be seen is skipped: inside a container, the
 * visible root is the container's own group. */
static void walk_up(const char *root, const char *group, limit_fn *limit_of, double *least) {
    char *folder = ls_format("%s%s", root, group);
    size_t end = strlen(root);
    for (;;) {
        take_less(limit_of(folder), least);
        char *slash = strrchr(folder, '/');
        if (strlen(folder) <= end || !slash || slash < folder + end) break;
        *slash = 0;
    }
    free(folder);
}

/* True if the controller is in a list such as "cpu,cpuacct". */
static bool lists(const char *list, size_t n, const char *controller) {
    size_t length = strlen(controller);
    for (const char *at = list; at < list + n;) {
        size_t word = strcspn(at, ",:");
        if (word == length && strncmp(at, controller, length) == 0) return true;
        at += word + 1;
    }
    return false;
}

/* A line is "0::/GROUP" (version 2), or "4:memory:/GROUP" (version 1), whose files are below
 * ROOT/memory. */
static void take_line(const char *root, char *line, const char *controller, limit_fn *limit_of,
                      double *least) {
    char *list = strchr(line, ':'), *group = list ? strchr(list + 1, ':') : NULL;
    if (!group) return;
    group++;
    group[strcspn(group, "\n")] = 0;
    if (group[0] != '/' || strstr(group, "..")) return;
    size_t n = (size_t)(group - 1 - (list + 1));
    if (n == 0) {
        walk_up(root, group, limit_of, least);
    } else if (lists(list + 1, n, controller)) {
        char *below = ls_format("%s/%s", root, controller);
        walk_up(below, group, limit_of, least);
        free(below);
    }
}

static double least_of(const char *root, const char *self, const char *controller,
                       limit_fn *limit_of) {
    char line[4096];
    double least = 0;
    FILE *f = fopen(self, "re");
    while (f && fgets(line, sizeof line, f)) take_line(root, line, controller, limit_of, &least);
    if (f) fclose(f);
    return least;
}

double ls_cgroup_memory(const char *root, const char *self) {
    return least_of(root, self, "memory", memory_of);
}

double ls_cgroup_cores(const char *root, const char *self) {
    return least_of(root, self, "cpu", cores_of);
}
