/* value.h - values of a rendering. Texts, lists and dicts never change; a namespace does. */
#ifndef LS_TEMPLATE_VALUE_H
#define LS_TEMPLATE_VALUE_H

#include "template/node.h"

typedef enum ls_datum_kind {
    LS_DATUM_UNDEFINED, /* text [n]: the name that is not defined */
    LS_DATUM_NONE,
    LS_DATUM_BOOL,     /* truth */
    LS_DATUM_INTEGER,  /* integer */
    LS_DATUM_REAL,     /* real */
    LS_DATUM_TEXT,     /* text [n], UTF-8; safe: marked so, as Jinja's Markup */
    LS_DATUM_LIST,     /* items [n] */
    LS_DATUM_TUPLE,    /* items [n] */
    LS_DATUM_RANGE,    /* items [n]: range() */
    LS_DATUM_VIEW,     /* items [n]: keys(), values() or items() of a dict */
    LS_DATUM_ITERATOR, /* items [n], of which *taken are gone: what many filters return */
    LS_DATUM_DICT,     /* items [2 n]: keys and values in turns, each key once */
    LS_DATUM_SPACE,    /* space: namespace() */
    LS_DATUM_LOOP,     /* loop */
    LS_DATUM_MACRO,    /* macro */
    LS_DATUM_FUNCTION  /* function, with self [0 or 1] */
} ls_datum_kind;

typedef struct ls_datum ls_datum;
typedef struct ls_rendering ls_rendering;
typedef struct ls_template_arguments ls_template_arguments;
typedef struct ls_template_variable ls_template_variable;

/* A function, a method (of self), a filter (of self) or a test. */
typedef ls_status ls_template_function(ls_rendering *, const ls_datum *self,
                                       const ls_template_arguments *, ls_datum *x_p);

/* An entry of a table of functions: a name, and what it takes. `parameters` are names separated by
 * blanks, optional ones behind a "|"; a "/" before them: they can't be given by name; "*": any
 * arguments.
 */
typedef struct ls_template_entry {
    const char *name;
    ls_template_function *call;
    const char *parameters;
} ls_template_entry;

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

typedef struct ls_template_loop {
    const ls_template_node *node;
    ls_template_scope *outer; /* the scope around it */
    const ls_datum *items;    /* [n] */
    size_t n, i;
    int depth;               /* from 1, of recursive calls */
    const ls_datum *changed; /* what loop.changed() was called with, a list; NULL: it was not */
} ls_template_loop;

/* A macro, and the scope that it was defined in, whose variables it sees. */
typedef struct ls_template_macro {
    const ls_template_node *node;
    ls_template_scope *scope;
} ls_template_macro;

struct ls_datum {
    ls_datum_kind kind;
    bool safe;
    size_t n;
    union {
        bool truth;
        int64_t integer;
        double real;
        const char *text;
        const ls_datum *items;
        ls_template_scope *space;
        ls_template_loop *loop;
        const ls_template_macro *macro;
        const ls_template_entry *function;
    };
    union {
        const ls_datum *self; /* of a method; NULL: none */
        size_t *taken;
    };
};

enum {
    LS_TEMPLATE_ARGUMENTS = 256, /* of a call, at most */
    LS_TEMPLATE_PARAMETERS = 6   /* of an entry */
};

typedef struct ls_template_keyword {
    const char *name;
    ls_datum value;
} ls_template_keyword;

struct ls_template_arguments {
    int n, nkeywords;
    ls_datum *list;                                /* [n] */
    ls_template_keyword *keywords;                 /* [nkeywords] */
    const ls_datum *given[LS_TEMPLATE_PARAMETERS]; /* that of each parameter; NULL: none */
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
    int depth;
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
/* The text that a body prints, in a scope of its own. */
ls_status ls_template_capture(ls_rendering *, const ls_template_node *, ls_datum *text_p);
ls_status ls_template_call_macro(ls_rendering *, const ls_template_macro *,
                                 const ls_template_arguments *, ls_datum *x_p);
/* loop(items) of a recursive loop: what it prints for these items. */
ls_status ls_template_call_loop(ls_rendering *, const ls_template_loop *,
                                const ls_template_arguments *, ls_datum *text_p);
/* Variables: the nearest of this name; NULL: there is none. ls_scope_set() sets that of the scope
 * itself. */
ls_datum *ls_scope_find(ls_rendering *, const ls_template_scope *, const char *name);
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
bool ls_datum_is_number(const ls_datum *);             /* a bool, too */
double ls_datum_number(const ls_datum *);              /* of a number */
bool ls_datum_is_integer(const ls_datum *);            /* a bool, too */
int64_t ls_datum_integer_of(const ls_datum *);         /* of an integer or bool */
bool ls_datum_is_text(const ls_datum *, const char *); /* is it this text? */
bool ls_datum_has_items(const ls_datum *);             /* list, tuple, range or view */
const char *ls_datum_kind_name(const ls_datum *);
ls_status ls_datum_equal(ls_rendering *, const ls_datum *a, const ls_datum *b, bool *equal_p);
/* < 0, 0 or > 0; fails unless both are numbers, texts, lists or tuples. */
ls_status ls_datum_compare(ls_rendering *, const ls_datum *a, const ls_datum *b, int *order_p);
ls_status ls_datum_contains(ls_rendering *, const ls_datum *all, const ls_datum *one,
                            bool *found_p);
/* The place of a key's value among the items; 0: there is none, or the key can't be one. */
ls_status ls_dict_find(ls_rendering *, const ls_datum *dict, const ls_datum *key, size_t *place_p);
/* Adds a key and its value to items [2 n], which have room, or replaces its value. */
ls_status ls_dict_put(ls_rendering *, ls_datum *dict, const ls_datum *key, const ls_datum *value);
/* What a loop over it takes, as a list: items of a list, keys of a dict, characters of a text. An
 * iterator is used up. */
ls_status ls_datum_items(ls_rendering *, const ls_datum *, ls_datum *list_p);
/* An iterator over the items of a list. */
ls_status ls_datum_iterator(ls_rendering *, const ls_datum *list, ls_datum *x_p);
/* A list with room for n items, all none. */
ls_status ls_datum_new_list(ls_rendering *, size_t n, ls_datum **items_p, ls_datum *list_p);
ls_status ls_datum_length(ls_rendering *, const ls_datum *, size_t *n_p);

/* Text as Python's str() and repr() write it. */
ls_status ls_datum_print(ls_rendering *, const ls_datum *, ls_buf *);
ls_status ls_datum_print_repr(ls_rendering *, const ls_datum *, ls_buf *);

/* How JSON is written. indent NULL: in one line. */
typedef struct ls_json_style {
    const char *indent, *comma, *colon;
    bool ascii, sorted;
} ls_json_style;

/* str() of any value. */
ls_status ls_datum_str(ls_rendering *, const ls_datum *, ls_datum *text_p);
/* If s is LS_OK, the text in the buffer. Frees the buffer, and returns the status. */
ls_status ls_datum_take(ls_rendering *, ls_status s, ls_buf *, ls_datum *text_p);
/* Fails if a text of nbytes is too long. */
ls_status ls_datum_fits(ls_rendering *, size_t nbytes);
void ls_real_print(double, ls_buf *);

/* x.name, x[key] and x[begin:end:step]; bounds NULL or none: not given. */
ls_status ls_datum_member(ls_rendering *, const ls_datum *x, const char *name, ls_datum *y_p);
ls_status ls_datum_item(ls_rendering *, const ls_datum *x, const ls_datum *key, ls_datum *y_p);
ls_status ls_datum_slice(ls_rendering *, const ls_datum *x, const ls_datum bounds[3],
                         ls_datum *y_p);
ls_status ls_datum_math(ls_rendering *, const char *operator_text, const ls_datum *a,
                        const ls_datum *b, ls_datum *y_p);
ls_status ls_datum_sign(ls_rendering *, bool minus, const ls_datum *x, ls_datum *y_p); /* -x, +x */

/* ---- arguments and tables ---- */

/* Binds the arguments to the entry's parameters, and calls it. */
ls_status ls_template_apply(ls_rendering *, const ls_template_entry *, const ls_datum *self,
                            const ls_template_arguments *, ls_datum *x_p);
/* Parameter i as text, as an integer (`otherwise` if it was not given), and as a bool. */
ls_status ls_argument_text(ls_rendering *, const ls_template_arguments *, int i, ls_datum *text_p);
ls_status ls_argument_integer(ls_rendering *, const ls_template_arguments *, int i,
                              int64_t otherwise, int64_t *value_p);
bool ls_argument_is_true(const ls_template_arguments *, int i);
/* The keyword argument of this name; NULL: there is none. */
const ls_datum *ls_argument_keyword(const ls_template_arguments *, const char *name);

/* Finds an entry in a table that ends with a name NULL. NULL: there is none. */
const ls_template_entry *ls_template_entry_find(const ls_template_entry *table, const char *name);
const ls_template_entry *ls_template_filter(const char *name);
const ls_template_entry *ls_template_test(const char *name); /* its value is a bool */
const ls_template_entry *ls_template_global(const char *name);
/* Fails if Python has a method or attribute of this name that is not supported. */
ls_status ls_template_method(ls_rendering *, const ls_datum *self, const char *name,
                             const ls_template_entry **method_p);

#endif
