/* row_kernels_test.c - kernels of devices, of every kind, beside the CPU's of the same name: the
 * same bits, on ordinary and on extreme numbers, for rows of all lengths. */
/* ctest: seconds=12 */
#include "device/drivers.h"
#include "model/mixed_device.h"
#include "tensor/groups.h"
#include "tensor/update_device.h"

static ls_device *device;
static ls_compute host;
static values v;

enum { ARRAYS = 6 };
static float *there[ARRAYS]; /* [CELLS] each, on the device */

static const ls_device_ops *plain;
static ls_device_ops noting;
static ls_device_kernel launched; /* the last one */

static ls_status note_launch(ls_device *d, ls_device_stream s, const ls_device_call *c,
                             ls_error *e) {
    launched = c->kernel;
    return plain->launch(d, s, c, e);
}

static int open_all(void **state) {
    ls_error e;
    (void)state;
    if (ls_compute_init(&host, 1, 0, &e) != LS_OK) return -1;
    if (ls_device_open(device_name, &device, &e) != LS_OK) return -1;
    plain = device->ops;
    noting = *plain;
    noting.launch = note_launch;
    device->ops = &noting;
    for (int i = 0; i < ARRAYS; i++) {
        void *p = NULL;
        if (ls_device_alloc(device, sizeof v.in[0], "numbers", &p, &e) != LS_OK) return -1;
        there[i] = p;
    }
    return 0;
}

static int close_all(void **state) {
    (void)state;
    for (int i = 0; i < ARRAYS; i++) ls_device_free(device, there[i]);
    ls_device_close(device);
    ls_compute_close(&host);
    return 0;
}

/* x may change when it is done. */
static void send(int i, const float *x) {
    ls_error e = {0};
    ls_device_copy_to(device, LS_DEVICE_COMPUTE, there[i], x, sizeof v.in[0]);
    assert_ls_ok(ls_device_finish(device, LS_DEVICE_COMPUTE, &e), e);
}

/* Kernels that have written other bits: a test goes on to its other kernels, and fails at its
 * end. */
static bool wrong[LS_NDEVICE_KERNELS];

static void assert_none_wrong(void) {
    int n = 0;
    for (int i = 0; i < LS_NDEVICE_KERNELS; i++) n += wrong[i];
    memset(wrong, 0, sizeof wrong);
    assert_int_equal(n, 0);
}

/* The device's array i must have the bits of x. */
static void same(int i, const float *x) {
    static float got[CELLS];
    ls_error e = {0};
    ls_device_copy_from(device, LS_DEVICE_COMPUTE, got, there[i], sizeof got);
    assert_ls_ok(ls_device_finish(device, LS_DEVICE_COMPUTE, &e), e);
    for (int k = 0; k < CELLS && !wrong[launched]; k++) {
        if (!memcmp(&got[k], &x[k], sizeof *x) || (got[k] != got[k] && x[k] != x[k])) continue;
        print_error("after kernel %s: number %d of array %d: %a, the CPU's is %a\n",
                    ls_device_kernels[launched].name, k, i, (double)got[k], (double)x[k]);
        wrong[launched] = true;
    }
}

static void launch(ls_device_kernel kernel, int64_t groups, const ls_device_arg *args, int n) {
    ls_device_call c = {.kernel = kernel, .groups_x = groups, .groups_y = 1};
    memcpy(c.args, args, (size_t)n * sizeof *args);
    ls_device_launch(device, LS_DEVICE_COMPUTE, &c);
}
#define LAUNCH(kernel, groups, ...)                                                                \
    launch(kernel, groups, (const ls_device_arg[]){__VA_ARGS__},                                   \
           sizeof((const ls_device_arg[]){__VA_ARGS__}) / sizeof(ls_device_arg))

static int64_t groups_of(int64_t n, int64_t each) { return (n + each - 1) / each; }

static void norms(int64_t n) {
    float *y = v.out[0], *mean = v.out[1], *rstd = v.out[2];
    for (int i = 0; i < 3; i++) send(i, v.in[i]), send(3 + i, v.out[i]);
    host.k->layernorm(ROWS, n, v.in[0], v.in[1], v.in[2], y, mean, rstd);
    LAUNCH(LS_KERNEL_layernorm, groups_of(ROWS, 16), {.l = ROWS}, {.l = n}, {.p = there[0]},
           {.p = there[1]}, {.p = there[2]}, {.p = there[3]}, {.p = there[4]}, {.p = there[5]});
    for (int i = 0; i < 3; i++) same(3 + i, v.out[i]);
    for (int residual = 0; residual < 2; residual++) {
        send(2, v.in[3]);
        send(3, v.in[2]);
        memcpy(v.out[3], v.in[2], sizeof v.in[2]);
        host.k->layernorm_dx(ROWS, n, v.in[3], v.in[0], v.in[1], mean, rstd,
                             residual ? v.out[3] : NULL, v.out[3]);
        LAUNCH(LS_KERNEL_layernorm_dx, groups_of(ROWS, 16), {.l = ROWS}, {.l = n}, {.p = there[2]},
               {.p = there[0]}, {.p = there[1]}, {.p = there[4]}, {.p = there[5]},
               {.p = residual ? there[3] : NULL}, {.p = there[3]});
        same(3, v.out[3]);
    }
}

static void rms_norms(int64_t n, bool add) {
    ls_rms_norm_job m = {.rows = ROWS, .C = n, .to = n, .eps = 1e-5f, .x = v.in[0], .dy = v.in[3]};
    m.gamma = v.in[1], m.y = v.out[0], m.rstd = v.out[1], m.dx = v.out[2], m.dgamma = v.out[3];
    send(0, v.in[0]), send(1, v.in[1]), send(2, v.out[0]), send(3, v.out[1]);
    host.k->norm.rms_norm(&m);
    LAUNCH(LS_KERNEL_rms_norm, groups_of(ROWS, 16), {.l = ROWS}, {.l = n}, {.f = m.eps},
           {.p = there[0]}, {.p = there[1]}, {.l = 0}, {.p = there[2]}, {.p = there[3]});
    same(2, v.out[0]);
    same(3, v.out[1]);
    memcpy(v.out[2], v.in[2], sizeof v.in[2]);
    memcpy(v.out[3], v.in[2], sizeof v.in[2]);
    send(2, v.in[3]), send(4, v.in[2]), send(5, v.in[2]);
    host.k->norm.rms_norm_dx(&m);
    if (add) host.k->add(ROWS * n, v.in[2], v.out[2], v.out[2]);
    LAUNCH(LS_KERNEL_rms_norm_dx, groups_of(ROWS, 16), {.l = ROWS}, {.l = n}, {.p = there[2]},
           {.p = there[0]}, {.p = there[1]}, {.l = 0}, {.p = there[3]}, {.l = add},
           {.p = there[4]});
    same(4, v.out[2]);
    for (int64_t i = 0; !add && i < n; i++) v.out[3][i] = 0;
    host.k->norm.rms_norm_dparams(&m);
    LAUNCH(LS_KERNEL_rms_norm_dparams, groups_of(n, 256), {.l = ROWS}, {.l = n}, {.p = there[2]},
           {.p = there[0]}, {.p = there[3]}, {.l = add}, {.p = there[5]});
    same(5, v.out[3]);
}

static void gates(int64_t n) {
    for (int i = 0; i < 3; i++) send(i, v.in[i]), send(3 + i, v.out[i]);
    host.k->silu_gate(n, v.in[0], v.in[1], v.out[0]);
    LAUNCH(LS_KERNEL_silu_gate, groups_of(n, 256), {.l = n}, {.p = there[0]}, {.p = there[1]},
           {.p = there[3]});
    same(3, v.out[0]);
    host.k->silu_gate_dx(n, v.in[0], v.in[1], v.in[2], v.out[1], v.out[2]);
    LAUNCH(LS_KERNEL_silu_gate_dx, groups_of(n, 256), {.l = n}, {.p = there[0]}, {.p = there[1]},
           {.p = there[2]}, {.p = there[4]}, {.p = there[5]});
    same(4, v.out[1]);
    same(5, v.out[2]);
    host.k->gelu(n, v.in[0], v.out[0]);
    host.k->multiply(n, v.out[0], v.in[1], v.out[0]);
    LAUNCH(LS_KERNEL_gelu_gate, groups_of(n, 256), {.l = n}, {.p = there[0]}, {.p = there[1]},
           {.p = there[3]});
    same(3, v.out[0]);
    host.k->multiply(n, v.in[2], v.in[1], v.out[0]);
    host.k->gelu_back(n, v.in[0], v.out[0], v.out[1], v.out[2]);
    host.k->multiply(n, v.in[2], v.out[2], v.out[2]);
    LAUNCH(LS_KERNEL_gelu_gate_dx, groups_of(n, 256), {.l = n}, {.p = there[0]}, {.p = there[1]},
           {.p = there[2]}, {.p = there[4]}, {.p = there[5]});
    same(4, v.out[1]);
    same(5, v.out[2]);
    host.k->multiply(n, v.in[0], v.in[1], v.out[0]);
    LAUNCH(LS_KERNEL_multiply, groups_of(n, 256), {.l = n}, {.p = there[0]}, {.p = there[1]},
           {.p = there[3]});
    same(3, v.out[0]);
}

/* A head of n numbers, if that is even; a row's place is its number + 1. */
static void turns(int64_t n, bool back) {
    if (n % 2) return;
    send(0, v.in[0]), send(1, v.in[1]), send(2, v.out[0]);
    for (int64_t r = 0; r < ROWS; r++)
        host.k->rope(1, n, v.in[1] + (r + 1) * n, back, v.in[0] + r * n, v.out[0] + r * n);
    LAUNCH(LS_KERNEL_rope, ROWS, {.l = n}, {.l = n}, {.l = n}, {.l = ROWS}, {.f = back ? -1 : 1},
           {.p = there[1]}, {.l = 1}, {.p = NULL}, {.l = 0}, {.p = there[0]}, {.p = there[2]});
    same(2, v.out[0]);
    if (n < 4) return;
    int64_t R = n / 4 * 2; /* the first elements alone */
    memcpy(v.out[0], v.in[0], (size_t)(ROWS * n) * sizeof *v.out[0]);
    for (int64_t r = 0; r < ROWS; r++)
        host.k->rope(1, R, v.in[1] + (r + 1) * R, back, v.in[0] + r * n, v.out[0] + r * n);
    LAUNCH(LS_KERNEL_rope, ROWS, {.l = n}, {.l = n}, {.l = R}, {.l = ROWS}, {.f = back ? -1 : 1},
           {.p = there[1]}, {.l = 1}, {.p = NULL}, {.l = 0}, {.p = there[0]}, {.p = there[2]});
    same(2, v.out[0]);
}

static void dparams(int64_t n, bool add) {
    float *dgamma = v.out[4], *dbeta = v.out[5];
    memcpy(dgamma, v.in[1], sizeof v.in[1]);
    memcpy(dbeta, v.in[2], sizeof v.in[2]);
    send(0, v.in[0]), send(1, v.in[3]), send(2, v.out[1]), send(3, v.out[2]);
    send(4, dgamma), send(5, dbeta);
    for (int64_t i = 0; !add && i < n; i++) dgamma[i] = dbeta[i] = 0;
    host.k->layernorm_dparams(ROWS, n, 0, n, v.in[3], v.in[0], v.out[1], v.out[2], dgamma, dbeta);
    LAUNCH(LS_KERNEL_layernorm_dparams, groups_of(n, 256), {.l = ROWS}, {.l = n}, {.p = there[1]},
           {.p = there[0]}, {.p = there[2]}, {.p = there[3]}, {.l = add}, {.p = there[4]},
           {.p = there[5]});
    same(4, dgamma);
    same(5, dbeta);
    memcpy(v.out[6], v.in[1], sizeof v.in[1]);
    send(4, v.out[6]);
    for (int64_t i = 0; !add && i < n; i++) v.out[6][i] = 0;
    host.k->column_sum(ROWS, n, 0, n, v.in[0], v.out[6]);
    LAUNCH(LS_KERNEL_column_sum, groups_of(n, 256), {.l = ROWS}, {.l = n}, {.p = there[0]},
           {.l = n}, {.l = add}, {.p = there[4]});
    same(4, v.out[6]);
}

static void elements(int64_t n) {
    send(0, v.in[0]), send(1, v.in[1]), send(2, v.out[0]);
    host.k->gelu(n, v.in[0], v.out[0]);
    LAUNCH(LS_KERNEL_gelu, groups_of(n, 256), {.l = n}, {.p = there[0]}, {.p = there[2]});
    same(2, v.out[0]);
    memcpy(v.out[1], v.in[1], sizeof v.in[1]);
    host.k->gelu_back(n, v.in[0], v.out[1], v.out[1], v.out[0]);
    LAUNCH(LS_KERNEL_gelu_back, groups_of(n, 256), {.l = n}, {.p = there[0]}, {.p = there[1]},
           {.p = there[2]});
    same(1, v.out[1]);
    same(2, v.out[0]);
    send(1, v.in[1]);
    host.k->add(n, v.in[0], v.in[1], v.out[0]);
    LAUNCH(LS_KERNEL_add, groups_of(n, 256), {.l = n}, {.p = there[0]}, {.p = there[1]},
           {.p = there[2]});
    same(2, v.out[0]);
}

static void activations(int64_t n) {
    for (int64_t which = LS_RELU; which < LS_NACTIVATIONS; which++) {
        bool of_x = which == LS_SILU || which == LS_RELU;
        send(0, v.in[0]), send(1, v.in[1]), send(2, v.out[0]);
        host.k->activation[which](n, v.in[0], v.out[0]);
        LAUNCH(LS_KERNEL_activation, groups_of(n, 256), {.l = which}, {.l = n}, {.p = there[0]},
               {.p = there[2]});
        same(2, v.out[0]);
        host.k->activation_dx[which](n, of_x ? v.in[0] : v.out[0], v.in[1], v.out[0]);
        LAUNCH(LS_KERNEL_activation_dx, groups_of(n, 256), {.l = which}, {.l = n}, {.p = there[0]},
               {.p = there[1]}, {.p = there[2]});
        same(2, v.out[0]);
    }
}

/* Losses of rows, as an array of the device. */
static union {
    double losses[ROWS];
    float all[CELLS];
} found;

/* The losses and gradients of rows, of which some have no label. */
static void cross_entropy(int64_t n, float smoothing) {
    int32_t label[CELLS] = {(int32_t)n / 2, -1, (int32_t)n - 1};
    ls_loss_rows r = {.rows = ROWS,
                      .n = n,
                      .x = v.in[0],
                      .label = label,
                      .smoothing = smoothing,
                      .stat = v.out[0],
                      .losses = found.losses,
                      .scale = 0.3f,
                      .weight = v.in[1],
                      .dx = v.out[2]};
    float labels[CELLS];
    memcpy(labels, label, sizeof labels);
    send(0, v.in[0]), send(1, labels), send(2, v.in[1]);
    send(3, v.out[0]), send(4, found.all), send(5, v.out[2]);
    host.k->loss[LS_LOSS_CROSS_ENTROPY](&r);
    host.k->loss_dx[LS_LOSS_CROSS_ENTROPY](&r);
    LAUNCH(LS_KERNEL_smoothed_cross_entropy, groups_of(ROWS, 16), {.l = ROWS}, {.l = n},
           {.f = smoothing}, {.p = there[0]}, {.p = there[1]}, {.p = there[3]}, {.p = there[4]});
    LAUNCH(LS_KERNEL_smoothed_cross_entropy_dx, groups_of(ROWS * n, 256), {.l = ROWS}, {.l = n},
           {.f = smoothing}, {.f = r.scale}, {.p = there[0]}, {.p = there[1]}, {.p = there[3]},
           {.p = there[2]}, {.p = there[5]});
    same(3, v.out[0]);
    same(4, found.all);
    same(5, v.out[2]);
}

/* Targets are f32, of one sample of ROWS rows. */
static void numbers(int64_t n, ls_loss kind) {
    bool binary = kind == LS_LOSS_BINARY;
    ls_loss_rows r = {.rows = ROWS,
                      .n = n,
                      .x = v.in[0],
                      .target = v.in[2],
                      .losses = found.losses,
                      .scale = 0.3f,
                      .weight = v.in[1],
                      .dx = v.out[2]};
    send(0, v.in[0]), send(1, v.in[1]), send(2, v.in[2]);
    send(4, found.all), send(5, v.out[2]);
    host.k->loss[kind](&r);
    host.k->loss_dx[kind](&r);
    LAUNCH(binary ? LS_KERNEL_binary_cross_entropy : LS_KERNEL_squared_error, ROWS, {.l = n},
           {.p = there[0]}, {.p = there[2]}, {.l = 0}, {.l = ROWS}, {.l = 0}, {.p = there[4]});
    LAUNCH(binary ? LS_KERNEL_binary_cross_entropy_dx : LS_KERNEL_squared_error_dx,
           groups_of(ROWS * n, 256), {.l = ROWS}, {.l = n}, {.f = r.scale}, {.p = there[0]},
           {.p = there[2]}, {.l = 0}, {.l = ROWS}, {.l = 0}, {.p = there[1]}, {.p = there[5]});
    same(4, found.all);
    same(5, v.out[2]);
}

static void test_losses(void **state) {
    (void)state;
    for (int wild = 0; wild < 2; wild++)
        for (int64_t n = 1; n <= 211; n += n < 20 ? 1 : 19) {
            fill(&v, wild);
            activations(n);
            cross_entropy(n, n % 2 ? 0.1f : 0);
            numbers(n, LS_LOSS_BINARY);
            numbers(n, LS_LOSS_SQUARES);
        }
    assert_none_wrong();
}

static void test_rows(void **state) {
    (void)state;
    for (int wild = 0; wild < 2; wild++)
        for (int64_t n = 1; n <= 211; n += n < 40 ? 1 : 19) {
            fill(&v, wild);
            norms(n);
            dparams(n, n % 2);
            elements(n);
            rms_norms(n, n % 2);
            gates(n);
            turns(n, n % 4);
        }
    assert_none_wrong();
}

/* The parameter in array 0, its gradient in 1, states of squares and others behind them. */
static void update(int64_t n, ls_update_rule rule, const ls_update_scalars *s) {
    ls_compute queues = host;
    queues.device = device;
    for (int i = 0; i < 4; i++) memcpy(v.out[i], v.in[i], sizeof v.in[i]);
    memcpy(v.out[4], v.in[0], sizeof v.in[0]);
    for (int i = 0; i < 5; i++) send(i, v.out[i]);
    host.k->update[rule](n, s, v.out[1], v.out[0], (float *[]){v.out[2], v.out[3], v.out[4]});
    ls_update_device(&queues,
                     &(ls_update_device_call){.rule = rule,
                                              .n = n,
                                              .scalars = s,
                                              .grad = there[1],
                                              .param = there[0],
                                              .states = (float *[]){there[2], there[3], there[4]}});
    for (int i = 0; i < 5; i++) same(i, v.out[i]);
    for (int first = 0; first < 2; first++) {
        if (first)
            memcpy(v.out[2], v.out[0], (size_t)n * sizeof *v.out[0]);
        else
            host.k->ema(n, 0.3f, v.out[0], v.out[2]);
        ls_update_device_ema(&queues, n, 0.3f, first, there[0], there[2]);
        same(2, v.out[2]);
    }
}

static void test_updates(void **state) {
    ls_update_scalars s = {.lr = 0.03f,
                           .beta1 = 0.9f,
                           .beta2 = 0.95f,
                           .eps = 1e-8f,
                           .weight_decay = 0.1f,
                           .momentum = 0.8f,
                           .correct1 = 2.7f,
                           .correct2 = 9.1f,
                           .grad_scale = 0.7f,
                           .weight = 0.4f};
    (void)state;
    assert_false(ls_update_device_has(LS_RULE_ONEBIT_ADAM));
    assert_false(ls_update_device_has(LS_RULE_MUON));
    for (int64_t n = 1; n <= CELLS; n += n < 3 ? 1 : 251)
        for (int kind = 0; kind < 8; kind++) {
            fill(&v, kind & 1);
            s.nesterov = s.first = (kind & 2) != 0;
            s.weight_decay = kind & 4 ? 0 : 0.1f;
            for (int rule = 0; rule < LS_NUPDATES; rule++)
                if (ls_update_device_has((ls_update_rule)rule)) update(n, (ls_update_rule)rule, &s);
        }
    assert_none_wrong();
}

/* Running values, by the formula of apply.c. */
static void test_running(void **state) {
    ls_compute queues = host;
    (void)state;
    queues.device = device;
    for (int64_t n = 1; n <= CELLS; n += n < 3 ? 1 : 251)
        for (int kind = 0; kind < 4; kind++) {
            const ls_running_call call = {n, 0.02f, 37, kind & 2};
            float mean[CELLS];
            fill(&v, kind & 1);
            memset(v.in[0], 0, (size_t)(n / 3) * sizeof *v.in[0]);
            send(0, v.in[0]);
            send(1, v.in[1]);
            for (int64_t i = 0; i < n; i++) {
                float sum = v.in[0][i];
                mean[i] = sum / 37.0f;
                if (kind & 2) v.in[1][i] += sum < 0 ? 0.02f : sum > 0 ? -0.02f : 0;
            }
            if (!(kind & 2)) host.k->ema(n, 0.02f, mean, v.in[1]);
            ls_update_device_running(&queues, &call, there[0], there[1]);
            same(1, v.in[1]);
        }
    assert_none_wrong();
}

/* Sums of squares of whole blocks, in double. */
static void test_squares(void **state) {
    enum { SIZE = 41, BLOCKS = 19 };
    double sums[BLOCKS] = {0}, got[BLOCKS];
    ls_error e = {0};
    ls_compute queues = host;
    (void)state;
    queues.device = device;
    for (int wild = 0; wild < 2; wild++) {
        fill(&v, wild);
        send(0, v.in[0]);
        for (int b = 0; b < BLOCKS; b++)
            sums[b] = (double)host.k->sum_squares(SIZE, v.in[0] + b * SIZE);
        ls_update_device_squares(&queues, &(ls_squares_call){BLOCKS, SIZE, 0}, there[0],
                                 (double *)(void *)there[1]);
        float some[SIZE]; /* without those in the middle */
        memcpy(some, v.in[0] + SIZE, sizeof some);
        memset(some + 16, 0, 16 * sizeof *some);
        sums[1] = (double)host.k->sum_squares(SIZE, some);
        ls_update_device_squares(&queues, &(ls_squares_call){1, SIZE, 1 << 1}, there[0] + SIZE,
                                 (double *)(void *)there[1] + 1);
        ls_device_copy_from(device, LS_DEVICE_COMPUTE, got, there[1], sizeof got);
        assert_ls_ok(ls_device_finish(device, LS_DEVICE_COMPUTE, &e), e);
        assert_memory_equal(got, sums, sizeof got);
    }
    assert_none_wrong();
}

/* Conversions to a type of 16 bits and back, and both: every number of 16 bits, and floats of all
 * sizes that are beside the middle of two of them. */
static void test_halves(void **state) {
    enum { ALL = 1 << 16 };
    static float x[CELLS], wide[CELLS];
    uint16_t halves[CELLS] = {0};
    ls_compute queues = host;
    (void)state;
    queues.device = device;
    for (int type = 0; type < 2; type++) {
        ls_dtype dtype = type ? LS_F16 : LS_BF16;
        for (int first = 0; first < ALL; first += CELLS) {
            for (int i = 0; i < CELLS; i++) halves[i] = (uint16_t)(first + i);
            host.k->widen(dtype, CELLS, halves, wide);
            memset(x, 0, sizeof x);
            memcpy(x, halves, sizeof halves);
            send(0, x);
            ls_device_widen(&queues, dtype, CELLS, there[0], there[1]);
            same(1, wide);
            for (int i = 0; i < CELLS; i++) {
                uint32_t bits = 0, last = type ? 0x1000 : 0x8000;
                memcpy(&bits, &wide[i], sizeof bits);
                bits += last + (uint32_t)(i % 3) - 1;
                memcpy(&x[i], &bits, sizeof bits);
            }
            send(0, x);
            send(1, wide);
            ls_device_narrow(&queues, dtype, CELLS, there[0], there[1]);
            ls_device_round(&queues, dtype, CELLS, there[0]);
            host.k->narrow(dtype, CELLS, x, halves);
            memcpy(wide, halves, sizeof halves);
            same(1, wide);
            host.k->widen(dtype, CELLS, halves, wide);
            same(0, wide);
        }
    }
    assert_none_wrong();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),    cmocka_unit_test(test_halves),
        cmocka_unit_test(test_losses),  cmocka_unit_test(test_updates),
        cmocka_unit_test(test_running), cmocka_unit_test(test_squares),
    };
    return run_on_devices(tests, sizeof tests / sizeof *tests, open_all, close_all);
}
