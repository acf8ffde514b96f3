/* value.h - values of a rendering. Texts, lists and dicts never change; a namespace does. */
#ifndef LS_TEMPLATE_VALUE_H
#define LS_TEMPLATE_VALUE_H

#include "template/node.h"

typedef enum ls_datum_kind {
    LS_DATUM_UNDEFINED, /* text [n]: the name that is not defined */
    LS_DATUM_NONE,
    LS_DATUM_BOOL,    /* truth */
    LS_DATUM_INTEGER, /* integer */
    LS_DATUM_REAL,    /* real */
    LS_DATUM_TEXT,    /* text [n], UTF-8 */
    LS_DATUM_LIST,    /* items [n] */
    LS_DATUM_DICT,    /* items [2 n]: keys, which are texts or numbers, and values in turns */
    LS_DATUM_SPACE,   /* space: namespace() */
    LS_DATUM_LOOP,    /* loop */
    LS_DATUM_MACRO,   /* macro */
    LS_DATUM_FUNCTION /* function, with self [0 or 1] */
} ls_datum_kind;

typedef struct ls_datum ls_datum;
typedef struct ls_rendering ls_rendering;
typedef struct ls_template_arguments ls_template_arguments;
typedef struct ls_template_variable ls_template_variable;

/* A function, a method (of self), a filter (of self) or a test. */
typedef ls_status ls_template_function(ls_rendering *, const ls_datum *self,
                                       const ls_template_arguments *, ls_datum *x_p);

typedef struct ls_template_loop {
    const ls_datum *items; /* [n] */
    size_t n, i;
    int depth; /* from 1 */
} ls_template_loop;

/* Variables of the whole template, a loop's pass, a macro's call, or a namespace. */
struct ls_template_variable {
    const char *name;
    struct ls_datum *value;
    ls_template_variable *next;
};
typedef struct ls_template_scope ls_template_scope;
struct ls_template_scope {
    ls_template_variable *first;
    ls_template_scope *outer; /* NULL: none */
};

struct ls_datum {
    ls_datum_kind kind;
    size_t n;
    union {
        bool truth;
        int64_t integer;
        double real;
        const char *text;
        const ls_datum *items;
        ls_template_scope *space;
        const ls_template_loop *loop;
        const ls_template_node *macro;
        ls_template_function *function;
    };
    const ls_datum *self; /* of a method; NULL: none */
};

enum { LS_TEMPLATE_ARGUMENTS = 32 };

struct ls_template_arguments {
    int n, nkeywords;
    ls_datum list[LS_TEMPLATE_ARGUMENTS];
    const char *keywords[LS_TEMPLATE_ARGUMENTS];
    ls_datum values[LS_TEMPLATE_ARGUMENTS]; /* of the keywords */
};

/* ---- a rendering ---- */

typedef enum ls_rendering_jump { LS_JUMP_NONE, LS_JUMP_BREAK, LS_JUMP_CONTINUE } ls_rendering_jump;

struct ls_rendering {
    const ls_template *t;
    const struct tm *now; /* NULL: not known */
    ls_template_arena arena;
    ls_template_scope *scope, globals;
    const ls_template_node *at; /* for messages */
    int64_t steps;
    int depth, loops;
    size_t printed; /* bytes, also by macros */
    ls_rendering_jump jump;
    ls_buf *out;
    ls_error *e;
};

ls_status ls_render_fail(ls_rendering *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Counts work against the limits: n steps, and the memory that is in use. */
ls_status ls_render_count(ls_rendering *, size_t n);
/* One level deeper, which `r->depth--` leaves. */
ls_status ls_render_enter(ls_rendering *);
/* Fails if that many more bytes exceed the memory's limit, else returns them in *p_p. */
ls_status ls_render_alloc(ls_rendering *, size_t nbytes, void **p_p);

ls_status ls_template_evaluate(ls_rendering *, const ls_template_node *, ls_datum *x_p);
ls_status ls_template_call_macro(ls_rendering *, const ls_template_node *macro,
                                 const ls_template_arguments *, ls_datum *x_p);
/* Variables: the nearest of this name; NULL: there is none. ls_scope_set() sets that of the scope
 * itself. */
ls_datum *ls_scope_find(const ls_template_scope *, const char *name);
ls_status ls_scope_set(ls_rendering *, ls_template_scope *, const char *name, ls_datum);

/* ---- values ---- */

ls_datum ls_datum_none(void);
ls_datum ls_datum_bool(bool);
ls_datum ls_datum_integer(int64_t);
ls_datum ls_datum_text(const char *s, size_t n); /* s is not copied */
ls_datum ls_datum_undefined(const char *name);
ls_status ls_datum_copy_text(ls_rendering *, const char *s, size_t n, ls_datum *x_p);
/* Copies lists and dicts; texts stay in the JSON value. */
ls_status ls_datum_of_json(ls_rendering *, const ls_json *, ls_datum *x_p);

bool ls_datum_is_true(const ls_datum *);
bool ls_datum_is_number(const ls_datum *); /* a bool, too */
double ls_datum_number(const ls_datum *);  /* of a number */
const char *ls_datum_kind_name(const ls_datum *);
ls_status ls_datum_equal(ls_rendering *, const ls_datum *a, const ls_datum *b, bool *equal_p);
/* < 0, 0 or > 0; fails unless both are numbers, or both texts. */
ls_status ls_datum_compare(ls_rendering *, const ls_datum *a, const ls_datum *b, int *order_p);
ls_status ls_datum_contains(ls_rendering *, const ls_datum *all, const ls_datum *one,
                            bool *found_p);
/* The value of a key; NULL: there is none. */
const ls_datum *ls_dict_find(const ls_datum *dict, const char *key, size_t n);
/* What a loop over it takes: items of a list, keys of a dict, characters of a text. */
ls_status ls_datum_items(ls_rendering *, const ls_datum *, ls_datum *list_p);
ls_status ls_datum_length(ls_rendering *, const ls_datum *, size_t *n_p);

/* Text as Python's str() and repr() write it, and JSON; `indent` below 0: in one line. */
ls_status ls_datum_print(ls_rendering *, const ls_datum *, ls_buf *);
ls_status ls_datum_to_json(ls_rendering *, const ls_datum *, int indent, ls_buf *);
/* str() of any value. */
ls_status ls_datum_str(ls_rendering *, const ls_datum *, ls_datum *text_p);
void ls_real_print(double, ls_buf *);

/* x.name, x[key] and x[begin:end:step]; bounds NULL or none: not given. */
ls_status ls_datum_member(ls_rendering *, const ls_datum *x, const char *name, ls_datum *y_p);
ls_status ls_datum_item(ls_rendering *, const ls_datum *x, const ls_datum *key, ls_datum *y_p);
ls_status ls_datum_slice(ls_rendering *, const ls_datum *x, const ls_datum bounds[3],
                         ls_datum *y_p);
ls_status ls_datum_math(ls_rendering *, const char *operator_text, const ls_datum *a,
                        const ls_datum *b, ls_datum *y_p);

/* ---- arguments and tables ---- */

/* Argument i, or that of the keyword; NULL: not given. */
const ls_datum *ls_template_argument(const ls_template_arguments *, int i, const char *keyword);
/* Fails unless all arguments are among the first `most`, or have one of the keywords (blanks
 * between them). */
ls_status ls_arguments_check(ls_rendering *, const ls_template_arguments *, int most,
                             const char *keywords);
/* The text of argument i. Fails if there is none, or if it is not text. */
ls_status ls_template_argument_text(ls_rendering *, const ls_template_arguments *, int i,
                                    ls_datum *text_p);

typedef struct ls_template_entry {
    const char *name;
    ls_template_function *call;
} ls_template_entry;

/* NULL: there is none. */
ls_template_function *ls_template_filter(const char *name);
ls_template_function *ls_template_test(const char *name); /* its value is a bool */
ls_template_function *ls_template_global(const char *name);
ls_template_function *ls_template_method(const ls_datum *self, const char *name);

#endif
