/* round_machine.h - a machine whose numbers are all 1: for prices that can be worked out by hand.
 *
 * A nanosecond for each operation of a product, each element of a pass, each byte that is added or
 * copied in shared memory; a microsecond for a call through it. Links are free.
 */
#ifndef LS_TEST_ROUND_MACHINE_H
#define LS_TEST_ROUND_MACHINE_H

#include "base/mem.h"
#include "perf/machine.h"

static void round_machine_text(ls_buf *text) {
    ls_buf_printf(text, "machine:\n  version: 1\n  name: round\n  cores: 4\n"
                        "overhead:\n  action_us: 0\n  call_us: 0\n"
                        "shared:\n  start_us: 1\n  sum_byte_ns: 1\n  copy_byte_ns: 1\n"
                        "links:\n  latency_us: 0\n  byte_ns: 0\n  busy_message_us: 0\n"
                        "  busy_byte_ns: 0\n  reduce_ns: 0\n");
    for (int k = 0; k < LS_NWORK_KINDS; k++)
        ls_buf_printf(text, "%s:\n  %s: 1 1\n", ls_work_name((ls_work_kind)k),
                      k < LS_NPRODUCTS ? "1x1x1" : "1");
}

#endif
