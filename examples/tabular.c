/* tabular.c - a classifier of rows of a table, with data of our own.
 *
 *     cc tabular.c -o tabular $(pkg-config --cflags --libs lockstep) -lm
 *     ./tabular train tabular.yaml -n 2 -o runs/tabular
 *
 * The table here is computed: points of three spirals, one a class. A real one would come from a
 * file or a data base; any thread may read any row at any time.
 */
#include <math.h>

#include <lockstep/program.h>

#define ROWS    6000
#define CLASSES 3

/* A number in [0, 1) for each row, always the same. */
static double noise(uint64_t row, uint64_t column) {
    uint64_t x = (row * 2 + column + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
    return (double)((x ^ (x >> 32)) >> 11) * 0x1p-53;
}

static ls_status read_row(void *own, uint64_t i, ls_sample *s, ls_error *e) {
    float *point = (float *)ls_sample_field(s, "point");
    int32_t *label = (int32_t *)ls_sample_field(s, "label");
    const double *spread = (const double *)own;
    (void)e;
    *label = (int32_t)(i % CLASSES);
    double radius = noise(i, 0), angle = 4 * radius + 6.2831853 * *label / CLASSES;
    angle += *spread * (noise(i, 1) - 0.5);
    point[0] = (float)(radius * cos(angle));
    point[1] = (float)(radius * sin(angle));
    return LS_OK;
}

/* The data depend on a key of the config. */
static ls_status open_table(const ls_keys *k, ls_own_source *table, ls_error *e) {
    static double spread;
    (void)e;
    spread = ls_key_float(k, "spread");
    table->count = ROWS;
    table->read = read_row;
    table->own = &spread;
    table->hash = 1;
    return LS_OK;
}

static void build(ls_model *m, const ls_keys *k) {
    ls_value *x = ls_input(m, "point", LS_F32, LS_DIMS(2));
    ls_value *label = ls_input(m, "label", LS_I32, LS_SCALAR);
    x = ls_relu(m, ls_linear(m, x, .name = "first", .out = ls_key_int(k, "width")));
    x = ls_relu(m, ls_linear(m, x, .name = "second", .out = ls_key_int(k, "width")));
    ls_cross_entropy(m, ls_linear(m, x, .name = "head", .out = CLASSES), label, LS_DEFAULTS);
}

static const ls_key_spec keys[] = {
    {.name = "width", .type = LS_KEY_INT, .low = 1, .high = 999, .usual = "32", .help = "neurons"},
    {.name = "spread",
     .type = LS_KEY_FLOAT,
     .low = 0,
     .high = 6,
     .usual = "0.5",
     .help = "radians"},
    {0}};

int main(int argc, char **argv) {
    static const ls_program tabular = {
        .name = "tabular", .keys = keys, .build = build, .open = open_table};
    return ls_program_main(argc, argv, &tabular);
}
