/* auto.c - see auto.h. */
#include "device/auto.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/device.h"

static bool opens(const char *name, ls_device_auto *out, ls_error *e) {
    ls_device *d = NULL;
    if (ls_device_open(name, &d, e) != LS_OK) return false;
    snprintf(out->name, sizeof out->name, "%s", name);
    snprintf(out->text, sizeof out->text, "%s", d->name);
    ls_device_close(d);
    return true;
}

/* The first GPU of OpenCL that opens. */
static bool finds_opencl(ls_device_auto *out, ls_error *e) {
    ls_device_seen list[LS_DEVICE_LIST];
    int n = 0;
    ls_fail(e, LS_EINVAL, "OpenCL has no GPU");
    if (ls_device_list("opencl", list, &n, e) != LS_OK) return false;
    for (int i = 0; i < n && !list[i].is_cores; i++) {
        char name[32] = "opencl"; /* the first one, or for several workers one each */
        if (i > 0) snprintf(name, sizeof name, "opencl:%d", list[i].number);
        if (opens(name, out, e)) return true;
    }
    return false;
}

/* GPUs, if there are any. */
static int count(const char *name) {
    ls_device_seen list[LS_DEVICE_LIST];
    int n = 0, gpus = 0;
    if (ls_device_list(name, list, &n, NULL) != LS_OK || n == 0 || list[0].id == 0) return 0;
    if (ls_device_is_numbered(name)) return 1;
    for (int i = 0; i < n; i++) gpus += !list[i].is_cores;
    return gpus ? gpus : n;
}

static void find(ls_device_auto *out) {
    ls_error cuda = {0}, opencl = {0};
    if (opens("cuda", out, &cuda) || finds_opencl(out, &opencl)) return;
    out->name[0] = 0;
    snprintf(out->text, sizeof out->text, "%s; %s", cuda.msg, opencl.msg);
}

/* The child's answer; false: it died, as drivers may make it. */
static bool read_answer(int from, pid_t child, ls_device_auto *out) {
    char *to = (char *)out;
    size_t got = 0;
    while (got < sizeof *out) {
        ssize_t n = read(from, to + got, sizeof *out - got);
        if (n == 0 || (n < 0 && errno != EINTR)) break;
        if (n > 0) got += (size_t)n;
    }
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) continue;
    return got == sizeof *out;
}

static void answer(int to, const char *name) {
    ls_device_auto out = {0};
    if (name)
        out.n = count(name);
    else
        find(&out);
    _exit(write(to, &out, sizeof out) != (ssize_t)sizeof out);
}

/* name: whose devices are counted; NULL: a device is looked for. */
static void look(const char *name, ls_device_auto *out) {
    int ends[2];
    bool answered = false;
    if (pipe(ends) == 0) {
        pid_t child = fork();
        if (child == 0) answer(ends[1], name);
        close(ends[1]);
        if (child > 0) answered = read_answer(ends[0], child, out);
        close(ends[0]);
    }
    if (answered) return;
    *out = (ls_device_auto){.text = "the process that looked for devices died"};
}

void ls_device_auto_find(ls_device_auto *out) { look(NULL, out); }

int ls_device_auto_count(const char *name) {
    ls_device_auto out;
    look(name, &out);
    return out.n;
}
