/* events.h - a writer of TensorBoard event files.
 *
 * A file is a sequence of TFRecords: u64 length, masked CRC-32C of it, data, masked CRC-32C of the
 * data. The mask: rotate right by 15, add 0xa282ead8. The data is an Event of protocol buffers:
 *
 *     Event   { double wall_time = 1; int64 step = 2; string file_version = 3;
 *               Summary summary = 5; }
 *     Summary { repeated Value value = 1; }
 *     Value   { string tag = 1; float simple_value = 2; }
 *
 * Source: TensorFlow: event.proto, summary.proto, record_writer.cc.
 */
#ifndef LS_REPORT_EVENTS_H
#define LS_REPORT_EVENTS_H

#include <stdint.h>

#include "base/error.h"

typedef struct ls_events ls_events;

/* Creates events.out.tfevents.<seconds>.<host> in the directory, with the suffix .<n> if the name
 * exists. Removes the file if its first record can't be written, e.g. on a full disk. */
ls_status ls_events_create(const char *folder, ls_events **ev_p, ls_error *);
ls_status ls_events_scalar(ls_events *, int64_t step, const char *tag, float value, ls_error *);
ls_status ls_events_flush(ls_events *, ls_error *);
ls_status ls_events_close(ls_events *, ls_error *); /* frees it, also when it fails; NULL is fine */

#endif
