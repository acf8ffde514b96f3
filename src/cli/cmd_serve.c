/* cmd_serve.c - lockstep serve */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/print.h"
#include "base/ram.h"
#include "cli/cli.h"
#include "cli/device_option.h"
#include "http/visitor.h"
#include "infer/conversations.h"
#include "net/launch/child.h"
#include "serve/front.h"

enum {
    PORT,
    ADDRESS,
    CERTIFICATE,
    TLS_KEY,
    HOST,
    KEY,
    NAME,
    TEXTS,
    CACHE,
    CONTEXT,
    QUEUE,
    STEP,
    BITS,
    LOOKUP,
    WORKERS,
    TEMPLATE,
    ADAPTER,
    EMA,
    DEVICE,
    SET
};
enum { DEFAULT_PORT = 8000, MOST_PORT = 65535 };
static const double GRACE_S = 30;

static atomic_int stopped;

static void stop(int number) {
    if (stopped) _exit(128 + number); /* the second one ends at once */
    stopped = number;
}

/* The last part of the model's path, without what checkpoints and files end in. */
static char *name_of(const char *path) {
    char *name = ls_strdup(path);
    size_t n = strlen(name);
    while (n > 1 && name[n - 1] == '/') name[--n] = 0;
    char *slash = strrchr(name, '/'), *last = ls_strdup(slash && slash[1] ? slash + 1 : name);
    char *dot = strrchr(last, '.');
    if (dot && strcmp(dot, ".gguf") == 0) *dot = 0;
    free(name);
    return last;
}

static bool read_numbers(const ls_args *a, ls_front_options *o, double *cache_mb) {
    int64_t guesses = 4, port = DEFAULT_PORT, texts = 16, queue = 1024, workers = 1;
    if (!cli_integer(&cmd_serve, a, PORT, 0, MOST_PORT, &port) ||
        !cli_integer(&cmd_serve, a, TEXTS, 1, 1024, &texts) ||
        !cli_integer(&cmd_serve, a, CONTEXT, 1, 1 << 30, &o->engine.context) ||
        !cli_integer(&cmd_serve, a, QUEUE, 0, 1 << 20, &queue) ||
        !cli_integer(&cmd_serve, a, STEP, 1, 1 << 20, &o->engine.rows) ||
        !cli_integer(&cmd_serve, a, LOOKUP, 0, 7, &guesses) ||
        !cli_integer(&cmd_serve, a, WORKERS, 1, LS_MOST_REPLY_WORKERS, &workers) ||
        !cli_real(&cmd_serve, a, CACHE, 1, 1e9, cache_mb))
        return false;
    o->http.port = (int)port;
    o->engine.texts = (int)texts;
    o->queue = (int)queue;
    o->engine.guesses = (int)guesses;
    o->workers = (int)workers;
    return true;
}

static bool read_bits(const ls_args *a, ls_kept_type *type_p) {
    static const char *const names[] = {
        [LS_KEPT_F32] = "f32", [LS_KEPT_F16] = "f16", [LS_KEPT_Q8] = "q8"};
    const char *given = cli_value(a, BITS);
    if (!given) return true;
    for (int i = LS_KEPT_F32; i <= LS_KEPT_Q8; i++) {
        if (strcmp(given, names[i]) != 0) continue;
        *type_p = (ls_kept_type)i;
        return true;
    }
    ls_log("serve: --cache %s: f32, f16 or q8 is expected", given);
    return false;
}

/* Another address than this host's alone needs a key. */
static bool check_address(const ls_args *a, ls_front_options *o) {
    o->http.address = cli_value(a, ADDRESS);
    o->http.certificate = cli_value(a, CERTIFICATE);
    o->http.key = cli_value(a, TLS_KEY);
    o->http.names = (const char *const *)a->options[HOST].values;
    o->http.nnames = a->options[HOST].n;
    o->http.token = cli_given(a, KEY) ? cli_value(a, KEY) : getenv("LOCKSTEP_SERVE_KEY");
    if (!o->http.address || ls_visitor_is_loopback(o->http.address) || o->http.token) return true;
    ls_log("serve: --address %s lets other computers in: give a key by --key or LOCKSTEP_SERVE_KEY",
           o->http.address);
    return false;
}

/* A single process answers before all strips are made; several share them. Several send the weights
 * to devices of their own. */
static ls_status open_model(const ls_args *a, int workers, const char *device, ls_trained *t,
                            ls_chat_format *f, ls_error *e) {
    const ls_trained_options how = {.ema = cli_given(a, EMA),
                                    .writes = !device,
                                    .strips_later = workers == 1,
                                    .device = workers == 1 ? device : NULL,
                                    .sets = (const char *const *)a->options[SET].values,
                                    .nsets = a->options[SET].n};
    LS_TRY(ls_trained_open(a->words[0], &how, t, e));
    ls_status s = ls_trained_needs_text(t, "serve", e);
    if (s == LS_OK) s = ls_trained_chat_format(t, cli_value(a, TEMPLATE), f, e);
    if (s != LS_OK) ls_trained_close(t);
    return s;
}

/* ---- adapters ---- */

/* --adapter NAME=PATH ... */
typedef struct adapters {
    ls_adapter *list; /* [n] */
    const char **names;
    int n;
} adapters;

static void close_adapters(adapters *x) {
    for (int i = 0; i < x->n; i++) {
        ls_adapter_close(&x->list[i]);
        free((char *)(uintptr_t)x->names[i]);
    }
    free(x->list);
    free(x->names);
}

static ls_status open_adapter(const ls_trained *t, const char *given, adapters *x, ls_error *e) {
    const char *equals = strchr(given, '=');
    if (!equals || equals == given || !equals[1])
        return ls_fail(e, LS_EINVAL, "--adapter %s: NAME=PATH is expected", given);
    char *name = ls_format("%.*s", (int)(equals - given), given);
    ls_status s = LS_OK;
    for (int i = 0; s == LS_OK && i < x->n; i++)
        if (strcmp(name, x->names[i]) == 0)
            s = ls_fail(e, LS_EINVAL, "--adapter %s: there are two of this name", name);
    if (s == LS_OK) s = ls_adapter_open(t, equals + 1, &x->list[x->n], e);
    if (s == LS_OK)
        x->names[x->n++] = name;
    else
        free(name);
    return s;
}

static ls_status open_adapters(const ls_args *a, const ls_trained *t, ls_front_options *o,
                               adapters *x, ls_error *e) {
    int n = a->options[ADAPTER].n;
    x->list = LS_NEW_ARRAY(ls_adapter, (size_t)n + 1);
    x->names = LS_NEW_ARRAY(const char *, (size_t)n + 1);
    for (int i = 0; i < n; i++) LS_TRY(open_adapter(t, a->options[ADAPTER].values[i], x, e));
    for (int i = 0; i < n; i++)
        if (strcmp(x->names[i], o->name) == 0)
            return ls_fail(e, LS_EINVAL, "--adapter %s: the model has this name", o->name);
    o->adapters = x->names;
    o->engine.adapters = x->list;
    o->engine.nadapters = n;
    return LS_OK;
}

static int serve(ls_front_options *o) {
    ls_front *f = NULL;
    ls_error e = {0};
    ls_process_handle_stops(stop);
    if (ls_front_open(o, &f, &e) != LS_OK) return cli_fail(&e);
    ls_buf host = {0};
    ls_visitor_name(o->http.address, o->http.names, o->http.nnames, &host);
    ls_print("http%s://%s:%d/v1\n", o->http.key ? "s" : "", host.data, ls_front_port(f));
    ls_buf_free(&host);
    fflush(stdout);
    ls_process_ignore(SIGPIPE); /* the reader of its log may end: tee */
    ls_log("serving %s%s; Ctrl-C ends", o->name,
           o->format ? "" : ", which has no chat template: completions alone");
    ls_status served = ls_front_run(f, &stopped, GRACE_S, &e);
    ls_front_close(f);
    return served == LS_OK ? 0 : cli_fail(&e);
}

/* The kernel grants more memory than there is, and kills the server later. Without the option there
 * is no check: pages that are not used take no memory. */
static ls_status check_cache(const ls_args *a, double mb, ls_error *e) {
    const ls_ram r = ls_ram_allowed();
    if (!cli_given(a, CACHE) || mb * 1e6 <= r.nbytes) return LS_OK;
    return ls_fail(e, LS_ENOMEM, "--cache-mb: keys and values in %.0f MB; %s %.0f MB of memory", mb,
                   r.of_group ? "its control group may use" : "this machine has", r.nbytes / 1e6);
}

static int run(const ls_args *a) {
    ls_front_options o = {.engine.rows = 256};
    double cache_mb = 1024;
    ls_trained t;
    ls_chat_format format = {0};
    ls_error e = {0};
    if (!read_numbers(a, &o, &cache_mb) || !read_bits(a, &o.engine.kept) || !check_address(a, &o))
        return CLI_USAGE;
    const char *device = cli_device(a, DEVICE);
    if (!device && check_cache(a, cache_mb, &e) != LS_OK) return cli_fail(&e);
    if (open_model(a, o.workers, device, &t, &format, &e) != LS_OK) return cli_fail(&e);
    char *name = cli_given(a, NAME) ? ls_strdup(cli_value(a, NAME)) : name_of(a->words[0]);
    o.trained = &t;
    o.device = o.workers > 1 ? device : NULL;
    o.engine.strips = device ? NULL : &t.strips;
    o.format = format.template ? &format : NULL;
    o.name = name;
    o.engine.memory_nbytes = (size_t)(cache_mb * 1e6);
    adapters beside = {0};
    int code = open_adapters(a, &t, &o, &beside, &e) == LS_OK ? serve(&o) : cli_fail(&e);
    close_adapters(&beside);
    free(name);
    ls_chat_format_free(&format);
    ls_trained_close(&t);
    return code;
}

const ls_command cmd_serve = {
    .name = "serve",
    .words = "RUN|CHECKPOINT|MODEL",
    .min_words = 1,
    .max_words = 1,
    .summary = "answer requests for a model's text over HTTP, as OpenAI's API has them",
    .about =
        "Answers POST /v1/completions, /v1/chat/completions, /v1/responses, also as streams,\n"
        "/v1/embeddings, /tokenize, /detokenize, /v1/models, /health, /metrics\n"
        "(docs/guide/serve.md).\n"
        "\n"
        "Requests are written together. A reply has the same bytes alone and among others,\n"
        "whatever the cache had, with any limit of memory, and after a restart: it depends on\n"
        "the request and its seed alone; --device gives the bytes of the cores, too.\n"
        "\n"
        "SIGTERM or Ctrl-C ends it when the replies that have begun are complete, after 30\n"
        "seconds at most; a second one at once.",
    .options =
        {[PORT] = {"port", 'p', "PORT", "listen here (default 8000; 0: a free port)"},
         [ADDRESS] = {"address", 0, "ADDRESS",
                      "listen at this address (default 127.0.0.1, for this computer alone)"},
         [CERTIFICATE] = {"tls-cert", 0, "FILE", "answer by TLS, with this certificate in PEM"},
         [TLS_KEY] = {"tls-key", 0, "FILE", "the certificate's key"},
         [HOST] = {"host", 0, "NAME", "a further name of this computer in URLs; repeatable"},
         [KEY] = {"key", 0, "KEY",
                  "requests need Authorization: Bearer KEY (or LOCKSTEP_SERVE_KEY)"},
         [NAME] = {"name", 0, "NAME",
                   "of the model in requests (default: of its directory or file)"},
         [TEXTS] = {"texts", 0, "N", "replies that are written at a time (default 16)"},
         [CACHE] = {"cache-mb", 0, "MB", "memory of keys and values (default 1024)"},
         [CONTEXT] = {"context", 0, "N",
                      "tokens of a reply with its prompt, at most (default: what the model reads; "
                      "of a published one 4096, or what --set model.context=N says)"},
         [QUEUE] = {"queue", 0, "N", "replies that may wait; others get 429 (default 1024)"},
         [STEP] = {"step-tokens", 0, "N",
                   "tokens that a step computes: more make prompts faster, and streams less even "
                   "(default 256)"},
         [BITS] = {"cache", 0, "TYPE",
                   "keys and values in f32 (default), f16 or q8: less memory, other replies"},
         [LOOKUP] = {"lookup", 0, "N",
                     "tokens guessed at a time where a text repeats itself: the same replies, "
                     "sooner (default 4; 0: none)"},
         [WORKERS] = {"workers", 'n', "N",
                      "processes that write replies, each with its part of the cores and of "
                      "--texts and --cache-mb: one that is killed loses none (default 1)"},
         [TEMPLATE] = {"template", 0, "FILE", "a chat template in place of the model's"},
         [ADAPTER] = {"adapter", 0, "NAME=PATH",
                      "an adapter that requests choose by this name: a run with lora.rank, a "
                      "directory of peft's, or a GGUF file; repeatable"},
         [EMA] = {"ema", 0, NULL, "use the average of the weights (optim.ema)"},
         [DEVICE] = CLI_DEVICE_OPTION,
         [SET] = {"set", 0, "KEY=VALUE", "override a key of the run's config; repeatable"}},
    .run = run,
};
