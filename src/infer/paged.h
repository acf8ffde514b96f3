/* paged.h - a device's room for calls that continue several texts (ls_infer_texts()): which rows
 * there are and where their keys and values lie, and the results that go back to the host. */
#ifndef LS_INFER_PAGED_H
#define LS_INFER_PAGED_H

#include "infer/infer.h"

struct ls_infer_room {
    int32_t *numbers; /* [most] the host's: what a call is told */
    int32_t *there;   /* [most] a copy on the device */
    size_t most;
    ls_past_rows past; /* the rows of the present call */
    const int32_t *wanted, *shown;
    float *rows;    /* [rows][ls_infer_width()] those whose results are wanted */
    float *results; /* logits [nlogits][ls_infer_nlogits()], or hidden [rows][ls_infer_width()] */
};

/* Queues what the device needs to know of a call. Its work must be finished before the next
 * call. */
void ls_infer_room_send(ls_infer_room *, const ls_infer *, const ls_infer_together *);

#endif
