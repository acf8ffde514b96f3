/* events.c - see events.h. */
#include "report/events.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/mem.h"

struct ls_events {
    char *path;
    FILE *file;
    bool failed;                  /* a write was lost: the file is incomplete */
    ls_buf event, value, summary; /* messages under construction */
};

/* ---- protocol buffers ---- */

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

static void put_varint(ls_buf *b, uint64_t v) {
    uint8_t byte;
    for (; v >= 0x80; v >>= 7) {
        byte = (uint8_t)(v | 0x80);
        ls_buf_append(b, &byte, 1);
    }
    byte = (uint8_t)v;
    ls_buf_append(b, &byte, 1);
}

static void put_key(ls_buf *b, int field, int type) {
    put_varint(b, (uint64_t)(field << 3 | type));
}

static void put_bytes(ls_buf *b, int field, const void *data, size_t nbytes) {
    put_key(b, field, BYTES);
    put_varint(b, nbytes);
    ls_buf_append(b, data, nbytes);
}

static void put_double(ls_buf *b, int field, double v) {
    put_key(b, field, FIXED64);
    ls_buf_append(b, &v, sizeof v); /* little-endian, as the machine is */
}

/* ---- records ---- */

static uint32_t masked_crc(const void *data, size_t nbytes) {
    uint32_t c = ls_crc32c(data, nbytes);
    return (c >> 15 | c << 17) + 0xa282ead8u;
}

static ls_status write_failed(ls_events *ev, ls_error *e) {
    ev->failed = true;
    return ls_fail(e, LS_EIO, "%s: can't be written: %s", ev->path, strerror(errno));
}

static ls_status put_record(ls_events *ev, const ls_buf *data, ls_error *e) {
    uint64_t length = data->len;
    uint32_t length_crc = masked_crc(&length, sizeof length);
    uint32_t data_crc = masked_crc(data->data, data->len);
    FILE *f = ev->file;
    bool ok = fwrite(&length, sizeof length, 1, f) == 1 &&
              fwrite(&length_crc, sizeof length_crc, 1, f) == 1 &&
              fwrite(data->data, 1, data->len, f) == data->len &&
              fwrite(&data_crc, sizeof data_crc, 1, f) == 1;
    return ok ? LS_OK : write_failed(ev, e);
}

static void begin_event(ls_events *ev) {
    ev->event.len = ev->value.len = ev->summary.len = 0;
    put_double(&ev->event, 1, ls_clock_wall_s());
}

/* ---- the writer ---- */

static ls_status open_file(const char *folder, ls_events *ev, ls_error *e) {
    char host[128] = "localhost";
    gethostname(host, sizeof host - 1);
    long long now = (long long)ls_clock_wall_s();
    for (int i = 0; i < 1000; i++) {
        char number[16] = "";
        if (i) snprintf(number, sizeof number, ".%d", i);
        free(ev->path);
        ev->path = ls_format("%s/events.out.tfevents.%010lld.%s%s", folder, now, host, number);
        int fd = open(ev->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        ev->file = fd < 0 ? NULL : fdopen(fd, "wb");
        if (ev->file || errno != EEXIST) break;
    }
    if (!ev->file) return ls_fail(e, LS_EIO, "%s: can't be created: %s", ev->path, strerror(errno));
    return LS_OK;
}

ls_status ls_events_create(const char *folder, ls_events **ev_p, ls_error *e) {
    static const char version[] = "brain.Event:2";
    ls_events *ev = LS_NEW(ls_events);
    ls_status s = open_file(folder, ev, e);
    if (s == LS_OK) {
        begin_event(ev);
        put_bytes(&ev->event, 3, version, strlen(version));
        s = put_record(ev, &ev->event, e);
        if (s == LS_OK) s = ls_events_flush(ev, e); /* is there room? */
        if (s != LS_OK) unlink(ev->path);
    }
    if (s == LS_OK)
        *ev_p = ev;
    else
        ls_events_close(ev, NULL);
    return s;
}

ls_status ls_events_scalar(ls_events *ev, int64_t step, const char *tag, float value, ls_error *e) {
    begin_event(ev);
    put_key(&ev->event, 2, VARINT);
    put_varint(&ev->event, (uint64_t)step);
    put_bytes(&ev->value, 1, tag, strlen(tag));
    put_key(&ev->value, 2, FIXED32);
    ls_buf_append(&ev->value, &value, sizeof value);
    put_bytes(&ev->summary, 1, ev->value.data, ev->value.len);
    put_bytes(&ev->event, 5, ev->summary.data, ev->summary.len);
    return put_record(ev, &ev->event, e);
}

ls_status ls_events_flush(ls_events *ev, ls_error *e) {
    return fflush(ev->file) == 0 ? LS_OK : write_failed(ev, e);
}

ls_status ls_events_close(ls_events *ev, ls_error *e) {
    if (!ev) return LS_OK;
    ls_status s = LS_OK;
    bool lost = ev->failed;
    if (ev->file && fclose(ev->file) != 0) lost = true;
    if (lost) s = write_failed(ev, e);
    free(ev->path);
    ls_buf_free(&ev->event);
    ls_buf_free(&ev->value);
    ls_buf_free(&ev->summary);
    free(ev);
    return s;
}
