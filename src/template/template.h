/* template.h - Jinja templates, as chat templates of language models use them.
 *
 * Templates are data from strangers: a template can't read files, call the program, or run for
 * ever. What it computes is limited in steps, depth, memory and output (LS_TEMPLATE_...). The
 * environment is that of Hugging Face's apply_chat_template(): trim_blocks and lstrip_blocks are
 * on, break and continue exist, tojson leaves characters as they are, raise_exception() refuses a
 * conversation, strftime_now() is the date.
 *
 * Not here: inheritance, includes, imports, autoescape; integers of more than 64 bits. A template
 * that uses a tag, filter, test, method or value that is not known is refused by name, with line
 * and column, also where Jinja would print something.
 */
#ifndef LS_TEMPLATE_TEMPLATE_H
#define LS_TEMPLATE_TEMPLATE_H

#include <time.h>

#include "base/json.h"

enum {
    LS_TEMPLATE_BYTES = 1 << 20,    /* of a template's text */
    LS_TEMPLATE_DEPTH = 150,        /* nested expressions, tags, calls and values */
    LS_TEMPLATE_STEPS = 20000000,   /* evaluated expressions and tags of a rendering */
    LS_TEMPLATE_MEMORY = 256 << 20, /* bytes of a rendering's values */
    LS_TEMPLATE_OUTPUT = 64 << 20   /* bytes of a rendering's text */
};

typedef struct ls_template ls_template;

/* text [n] is UTF-8. `name`: the file's, for messages: "NAME:LINE:COLUMN: ..." The template keeps
 * copies of both. */
ls_status ls_template_parse(const char *text, size_t n, const char *name, ls_template **t_p,
                            ls_error *);
void ls_template_free(ls_template *); /* NULL is fine */
/* Does this name occur in the template: of a variable, of a member, or as a text? If not, it can't
 * read a member that is called so, but where it prints all of an object. */
bool ls_template_mentions(const ls_template *, const char *word);

/* Appends the text to *out. The members of the object `globals` are the template's variables. `now`
 * is the date of strftime_now(); NULL: that function is not defined. Any threads may render the
 * same template at the same time. LS_EINVAL: the template refuses, fails or exceeds a limit; *out
 * has what it has printed until then. */
ls_status ls_template_render(const ls_template *, const ls_json *globals, const struct tm *now,
                             ls_buf *out, ls_error *);

#endif
