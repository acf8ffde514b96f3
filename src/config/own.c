/* own.c - see own.h. Each key becomes a row like those of the table, whose value lies in
 * ls_config.own. */
#include "config/own.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "config/key.h"

enum { NAME = 64 };
static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

static struct {
    char name[NAME]; /* "": no program */
    ls_config_key keys[LS_MAX_KEYS];
    char names[LS_MAX_KEYS][2 * NAME];
    int nkeys;
    const char *strings[LS_OWN_TEXTS]; /* [nstrings] the defaults of ls_config.own.texts */
    int nstrings;
    bool has_data, any_data;
} program;

const char *ls_config_program(void) { return *program.name ? program.name : NULL; }

static const char OWNER[] = "# of the program ";

void ls_config_put_owner(ls_buf *out) {
    if (*program.name) ls_buf_printf(out, "%s%s\n", OWNER, program.name);
}

ls_config_owner ls_config_read_owner(const char *path) {
    ls_config_owner owner = {""};
    char line[sizeof OWNER + NAME] = "";
    FILE *f = fopen(path, "re");
    if (f && fgets(line, sizeof line, f) && strncmp(line, OWNER, sizeof OWNER - 1) == 0) {
        const char *name = line + sizeof OWNER - 1;
        snprintf(owner.name, sizeof owner.name, "%.*s", (int)strspn(name, LETTERS), name);
    }
    if (f) fclose(f);
    return owner;
}

bool ls_config_program_has_data(void) { return program.has_data; }
void ls_config_program_take_any_data(void) { program.any_data = true; }
bool ls_config_program_takes_any_data(void) { return program.any_data; }

static bool is_name(const char *name) {
    size_t n = name ? strlen(name) : 0;
    return n > 0 && n < NAME / 2 && strspn(name, LETTERS) == n;
}

/* The largest whole number of a double's 53 bits. */
static const double MOST = 9007199254740992.0;

static void set_limits(ls_config_key *k, const ls_key_spec *s) {
    bool none = s->low == 0 && s->high == 0;
    k->real[LS_KEY_LOW] = none ? -1e300 : s->low;
    k->real[LS_KEY_HIGH] = none ? 1e300 : s->high;
    k->whole[LS_KEY_LOW] = (int64_t)(none || s->low < -MOST ? -MOST : s->low);
    k->whole[LS_KEY_HIGH] = (int64_t)(none || s->high > MOST ? MOST : s->high);
}

/* A number without a default has 0, or the limit that is nearest to it. */
static void set_zero(ls_config_key *k) {
    double low = k->real[LS_KEY_LOW], high = k->real[LS_KEY_HIGH];
    k->real[LS_KEY_USUAL] = low > 0 ? low : high < 0 ? high : 0;
    int64_t least = k->whole[LS_KEY_LOW], most = k->whole[LS_KEY_HIGH];
    k->whole[LS_KEY_USUAL] = least > 0 ? least : most < 0 ? most : 0;
}

static ls_status set_default(ls_config_key *k, const char *usual, ls_error *e) {
    set_zero(k);
    if (!usual) return LS_OK;
    if (k->type == LS_KEY_TEXT) program.strings[program.nstrings - 1] = usual;
    ls_config *c = LS_NEW(ls_config); /* to parse it like any other value */
    ls_status s = ls_config_key_set(c, k, "default", usual, e);
    memcpy(&k->whole[LS_KEY_USUAL], (char *)c + k->offset, sizeof(int64_t));
    memcpy(&k->real[LS_KEY_USUAL], (char *)c + k->offset, sizeof(double));
    free(c);
    return s;
}

static ls_status add_key(const char *name, const ls_key_spec *s, ls_error *e) {
    int i = program.nkeys;
    if (!(s->low <= s->high))
        return ls_fail(
            e, LS_EINVAL,
            "key '%.40s' of the program '%s': low is %g and high %g; low is at most high, "
            "and both are 0 where there are no limits",
            s->name ? s->name : "", program.name, s->low, s->high);
    bool is_string = s->type == LS_KEY_STRING;
    if (!is_name(s->name) || s->type < LS_KEY_INT || s->type > LS_KEY_STRING)
        return ls_fail(e, LS_EINVAL,
                       "key '%.40s' of the program '%s': a name has 1 to %d letters, digits and "
                       "'_', and a type",
                       s->name, program.name, NAME / 2 - 1);
    if (i == LS_MAX_KEYS || (is_string && program.nstrings == LS_MAX_STRING_KEYS))
        return ls_fail(e, LS_EINVAL, "the program '%s' has more than %d keys, or %d strings",
                       program.name, LS_MAX_KEYS, LS_MAX_STRING_KEYS);
    ls_config_key *k = &program.keys[i];
    snprintf(program.names[i], 2 * NAME, "%s.%s", name, s->name);
    if (ls_config_key_find(program.names[i]))
        return ls_fail(e, LS_EINVAL, "the program has two keys '%s'", program.names[i]);
    *k = (ls_config_key){.name = program.names[i], .help = s->help ? s->help : ""};
    k->type = is_string ? LS_KEY_TEXT : s->type == LS_KEY_INT ? LS_KEY_INTEGER : LS_KEY_REAL;
    k->offset =
        is_string ? offsetof(ls_config, own.texts[0]) + (size_t)program.nstrings++ * sizeof(char *)
                  : offsetof(ls_config, own.numbers[0]) + (size_t)i * sizeof(ls_own_number);
    set_limits(k, s);
    ls_config_key_use_own(program.keys, ++program.nkeys);
    return set_default(k, s->usual, e);
}

ls_status ls_config_use_program(const char *name, const ls_key_spec *specs, bool has_data,
                                ls_error *e) {
    memset(&program, 0, sizeof program);
    ls_config_key_use_own(program.keys, 0);
    if (!is_name(name) || ls_config_key_is_group(name))
        return ls_fail(e, LS_EINVAL,
                       "the program's name '%.40s' is not possible: it has 1 to %d letters, digits "
                       "and '_', and is no group of the config",
                       name ? name : "", NAME / 2 - 1);
    snprintf(program.name, sizeof program.name, "%s", name);
    program.has_data = has_data;
    for (int i = 0; specs && specs[i].name; i++) LS_TRY(add_key(name, &specs[i], e));
    return LS_OK;
}

void ls_config_own_defaults(ls_config *c) {
    if (!*program.name) return;
    c->model.kind = LS_MODEL_PROGRAM;
    for (int i = 0; i < program.nstrings; i++)
        c->own.texts[i] = ls_intern(program.strings[i] ? program.strings[i] : "");
}

/* ---- values ---- */

static ls_status find(const char *name, ls_config_key_type type, const char *what,
                      const ls_config_key **k_p, ls_error *e) {
    char whole[2 * NAME];
    snprintf(whole, sizeof whole, "%s.%.60s", program.name, name);
    const ls_config_key *k = ls_config_key_find(whole);
    if (!k || k->type != type)
        return ls_fail(e, LS_EINVAL, "the program has no key '%.60s' that is %s", name, what);
    *k_p = k;
    return LS_OK;
}

ls_status ls_config_own_int(const ls_config *c, const char *name, int64_t *value_p, ls_error *e) {
    const ls_config_key *k = NULL;
    LS_TRY(find(name, LS_KEY_INTEGER, "a whole number", &k, e));
    memcpy(value_p, (const char *)c + k->offset, sizeof *value_p);
    return LS_OK;
}

ls_status ls_config_own_float(const ls_config *c, const char *name, double *value_p, ls_error *e) {
    const ls_config_key *k = NULL;
    LS_TRY(find(name, LS_KEY_REAL, "a number with a fraction", &k, e));
    memcpy(value_p, (const char *)c + k->offset, sizeof *value_p);
    return LS_OK;
}

ls_status ls_config_own_string(const ls_config *c, const char *name, const char **value_p,
                               ls_error *e) {
    const ls_config_key *k = NULL;
    LS_TRY(find(name, LS_KEY_TEXT, "a string", &k, e));
    *value_p = ls_config_key_text(c, k);
    return LS_OK;
}
