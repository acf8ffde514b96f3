/* survey.h - what lockstep data finds by reading samples: damage, how often each label occurs,
 * pixels, and some samples of each label. */
#ifndef LS_SOURCE_SURVEY_H
#define LS_SOURCE_SURVEY_H

#include "source/source.h"

/* Statistics of the samples with one label, or of all samples. */
typedef struct ls_survey_group {
    uint64_t n;
    uint64_t x[3];   /* sum of their pixels, by channel */
    uint64_t xx[3];  /* of squares */
    uint64_t *picks; /* [npicks] the first samples that were read */
    size_t npicks;
} ls_survey_group;

typedef struct ls_survey {
    const ls_source *source;
    uint64_t nread, ndamaged; /* samples */
    const ls_field *label;    /* NULL: there is none */
    const ls_field *image;    /* the first one; NULL: there is none */
    ls_survey_group all;
    ls_survey_group *labels; /* [nlabels] */
    int32_t nlabels;
} ls_survey;

/* The label as a class; NULL: there is none. */
const ls_field *ls_survey_label(const ls_source *);

/* Reads all samples, or 100,000 that are spread over all. Logs each damaged one, up to a limit.
 * npicks: picks of a group, at most. */
ls_survey ls_survey_read(const ls_source *, bool all, size_t npicks);
void ls_survey_free(ls_survey *);

/* At most n of the picks, as many of each label as there are: first one of each, then another.
 * The caller frees them. */
uint64_t *ls_survey_pick(const ls_survey *, size_t n, size_t *npicked_p);

/* Mean and deviation of a channel, of pixels from 0 to 1. */
double ls_survey_mean(const ls_survey *, const ls_survey_group *, int channel);
double ls_survey_deviation(const ls_survey *, const ls_survey_group *, int channel);

#endif
