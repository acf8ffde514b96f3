/* tool_value.h - an argument of a call that is written as a text, as JSON. */
#ifndef LS_CHAT_TOOL_VALUE_H
#define LS_CHAT_TOOL_VALUE_H

#include "base/json.h"

/* The schema of an argument of a tool with these parameters. NULL: there is none. */
const ls_json *ls_tool_value_schema(const ls_json *parameters, const char *name);
/* Is it a string, whatever its text? Also where no schema is given. root: the parameters. */
bool ls_tool_value_is_text(const ls_json *root, const ls_json *schema);
/* Appends text [n] as JSON: as a value, if it is one of a type that the schema allows, else as a
 * string. Also Python's True, False and None are values, since templates write them. */
void ls_tool_value_write(const ls_json *root, const ls_json *schema, const char *text, size_t n,
                         ls_buf *out);
/* Appends text [n] as JSON's strings have it, without quotes. */
void ls_tool_value_quote(const char *text, size_t n, ls_buf *out);

#endif
