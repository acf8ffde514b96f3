/* round_machine.h - a machine whose numbers are all 1: for prices that can be worked out by hand.
 *
 * A nanosecond for each operation of a product, each element of a pass, each byte that is added or
 * copied in shared memory; a microsecond for a call through it. Links are free.
 */
#ifndef LS_TEST_ROUND_MACHINE_H
#define LS_TEST_ROUND_MACHINE_H

#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "perf/machine.h"

static inline void round_machine_text(ls_buf *text) {
    ls_buf_printf(text, "machine:\n  version: 1\n  name: round\n  cores: 4\n"
                        "overhead:\n  action_us: 0\n  call_us: 0\n"
                        "shared:\n  start_us: 1\n  sum_byte_ns: 1\n  copy_byte_ns: 1\n"
                        "links:\n  latency_us: 0\n  byte_ns: 0\n  busy_message_us: 0\n"
                        "  busy_byte_ns: 0\n  reduce_ns: 0\n");
    for (int k = 0; k < LS_NWORK_KINDS; k++)
        ls_buf_printf(text, "%s:\n  %s: 1 1\n", ls_work_name((ls_work_kind)k),
                      k < LS_NPRODUCTS ? "1x1x1" : "1");
}

/* Reads it from a file, as a user's machine is read. Free it with ls_machine_free(). */
static inline ls_status round_machine_read(ls_machine *m_p) {
    char path[64];
    ls_buf text = {0};
    ls_error e;
    snprintf(path, sizeof path, "/tmp/lockstep-round-%d.yaml", (int)getpid());
    round_machine_text(&text);
    ls_status s = ls_file_replace(path, text.data, text.len, &e);
    if (s == LS_OK) s = ls_machine_read(path, m_p, &e);
    unlink(path);
    ls_buf_free(&text);
    return s;
}

/* For all tests of a program. */
static ls_machine machine;

static inline int make_machine(void **state) {
    (void)state;
    return round_machine_read(&machine) == LS_OK ? 0 : -1;
}

static inline int free_machine(void **state) {
    (void)state;
    ls_machine_free(&machine);
    return 0;
}

#endif
