/* step_line.h - the numbers of a line of metrics.jsonl, read fast.
 *
 * 50 runs of 100,000 steps are a gigabyte of lines, which are to be read while someone waits for a
 * page. A line of a step is one object of numbers, so its reader needs no tree of values: it takes a
 * tenth of the time of base/json.h. What is no number (text, lists, objects) is passed over; lines of
 * other kinds, which are few, are for ls_json_parse().
 */
#ifndef LS_WATCH_STEP_LINE_H
#define LS_WATCH_STEP_LINE_H

#include <stdbool.h>
#include <stddef.h>

enum { LS_STEP_FIELDS = 64 };

typedef struct ls_step_field {
    const char *name; /* [n] in the line, without quotes; names with escapes are passed over */
    size_t n;
    double value; /* NaN: null */
} ls_step_field;

typedef struct ls_step_line {
    ls_step_field fields[LS_STEP_FIELDS]; /* [n]; further numbers are passed over */
    int n;
    bool has_others; /* there are values that are no numbers */
} ls_step_line;

/* Reads a line [n] without its line break. False: it is no JSON object, or is cut off. A number has the
 * bits that strtod() gives it. */
bool ls_step_line_read(const char *text, size_t n, ls_step_line *line_p);

/* The field's value; NaN: there is none. */
double ls_step_line_get(const ls_step_line *, const char *name);

#endif
