/* data_scan.h - what lockstep data finds by reading samples: damage, how often each label occurs,
 * pixels, and some samples of each label. */
#ifndef LS_CLI_DATA_SCAN_H
#define LS_CLI_DATA_SCAN_H

#include "source/source.h"

/* Of the samples with one label, or of all. */
typedef struct data_group {
    uint64_t n;
    uint64_t x[3];   /* sum of their pixels, by channel */
    uint64_t xx[3];  /* of squares */
    uint64_t *picks; /* [npicks] the first samples that were read */
    size_t npicks;
} data_group;

typedef struct data_scan {
    const ls_source *source;
    uint64_t nread, ndamaged; /* samples */
    const ls_field *label;    /* NULL: there is none */
    const ls_field *image;    /* the first one; NULL: there is none */
    data_group all;
    data_group *labels; /* [nlabels] */
    int32_t nlabels;
} data_scan;

/* The label as a class; NULL: there is none. */
const ls_field *data_label(const ls_source *);

/* Reads all samples, or 100,000 that are spread over all. Logs each damaged one, up to a limit.
 * npicks: picks of a group, at most. */
data_scan data_scan_read(const ls_source *, bool all, size_t npicks);
void data_scan_free(data_scan *);

/* At most n of the picks, as many of each label as there are: first one of each, then another.
 * The caller frees them. */
uint64_t *data_scan_pick(const data_scan *, size_t n, size_t *npicked_p);

/* Mean and deviation of a channel, of pixels from 0 to 1. */
double data_mean(const data_scan *, const data_group *, int channel);
double data_deviation(const data_scan *, const data_group *, int channel);

#endif
