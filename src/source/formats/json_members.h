/* json_members.h - the members of JSON objects, each a record, as features (features.h).
 *
 * A member is a number, true or false (1 and 0), a text, or an array of numbers, which may be
 * nested. Every object has the members of the first one, in any order, with the same shapes; arrays
 * of integers may have different lengths: they are a list (source.h). A member that is null in all
 * objects, or has objects or arrays of texts, becomes no field.
 *
 * The first object may be the one that does not fit: where others decide too, count all of them
 * with ls_json_members_count(), then call ls_json_members_decide().
 *
 * A value that is null, or has null in an array, or is absent, is missing: an error, unless rules
 * say what becomes of it.
 */
#ifndef LS_SOURCE_FORMATS_JSON_MEMBERS_H
#define LS_SOURCE_FORMATS_JSON_MEMBERS_H

#include "base/json.h"
#include "source/features.h"
#include "source/tables/column_rules.h"

/* What is wrong with an object; why (static text) NULL: nothing. */
typedef struct ls_json_wrong {
    char *name; /* of the member; the caller frees it */
    const char *why;
    bool missing; /* a value is missing: that is wrong, or (why NULL) the object is left out */
} ls_json_wrong;

typedef struct ls_json_members {
    ls_features features;
    bool whole_reals; /* 2.0 is an integer */
    bool loose_texts; /* objects may lack texts that others have, which are then no field */
    bool keeps_rare;  /* members that few objects have are fields, too */
    bool decided;     /* ls_json_members_decide() was called */
    const ls_numbering *known; /* objects with other texts are wrong; NULL: any text may be */
    ls_column_rule
        *of; /* [features.n] of missing values, which is freed with the members; NULL: they
                         * are refused */
    uint64_t nobjects; /* } that were counted: their values and texts of each feature */
    struct ls_json_count {
        uint64_t nvalues, ntexts;
        uint64_t nothers; /* values that no field can have */
        bool text;        /* the first value is one */
        ls_json *value;   /* the first one that is no text */
    } * counts;           /* } [features.n] */
} ls_json_members;

void ls_json_members_count(ls_json_members *, const ls_json *object);
/* A member that at least half of the objects have must be in all of them, unless it has a rule;
 * what most of its values are, texts or not, all must be. Another one becomes no field, unless
 * keeps_rare. */
void ls_json_members_decide(ls_json_members *);

/* Compares an object with those before it, or with what was decided; learns from it if nothing is
 * wrong. first: no object was added yet. */
ls_json_wrong ls_json_members_add(ls_json_members *, const ls_json *object, bool first);
/* Forgets what was learned from objects, but for which members they have: all are added again. */
void ls_json_members_forget(ls_json_members *);
/* Computes the means that stand for missing values, once all objects are added. */
void ls_json_members_finish(ls_json_members *);
/* Stores the values of an object in a sample, after ls_features_finish(). */
ls_json_wrong ls_json_members_store(const ls_json_members *, const ls_json *object, void *sample);
void ls_json_members_free(ls_json_members *);

/* Has the member no value in any object? */
bool ls_json_member_is_empty(const ls_feature *);
/* ls_features_take(), with what is possible here. */
void ls_json_members_take(ls_json_members *, ls_bytes *in);

#endif
