/* codecs.c - see codecs.h.
 *
 * A vector of 50 MB is encoded, and decoded again. A figure is the vector's bytes over the time;
 * the limit is that of a sum of squares (encoding reads the vector) or of a fill (decoding writes
 * it), measured in the same rounds.
 */
#include "codecs.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/median.h"
#include "base/mem.h"
#include "base/print.h"
#include "base/random.h"
#include "compress/codec.h"

enum { N = 12 << 20, MAX_ROUNDS = 101 };

typedef struct vectors {
    const ls_kernels *k;
    float *x, *y;
    int rounds;
} vectors;

/* Seconds, the median over rounds. */
typedef struct times {
    double encode, decode, read, write;
} times;

static void decode(const ls_codec *codec, const ls_codec_job *j, const void *message, float *y) {
    size_t piece = ls_codec_piece(codec, j->how);
    for (size_t at = 0; at < j->n; at += piece)
        codec->decode(j, message, at, j->n - at < piece ? j->n - at : piece, y + at);
}

static double since(double *begin) {
    double now = ls_clock_thread_s(), passed = now - *begin;
    *begin = now;
    return passed;
}

/* shared, work, message: memory of the codec's. */
static times measure(const vectors *v, const ls_codec *codec, const ls_codec_job *j,
                     void *message) {
    double encode[MAX_ROUNDS], read[MAX_ROUNDS], back[MAX_ROUNDS], write[MAX_ROUNDS];
    size_t n = (size_t)v->rounds;
    volatile float sum = 0;
    codec->prepare(j);
    for (int r = 0; r < v->rounds; r++) {
        double begin = ls_clock_thread_s();
        sum = v->k->sum_squares(N, v->x);
        read[r] = since(&begin);
        for (int round = 0; round < (codec->rounds ? codec->rounds : 1); round++) {
            codec->encode(j, round, v->x, message);
            codec->absorb(j, round, message, 1);
        }
        encode[r] = since(&begin);
        for (size_t i = 0; i < N; i += 1024) /* as decoding writes */
            v->k->affine(1024, v->x, 1.0f, 0.0f, v->y + i);
        write[r] = since(&begin);
        decode(codec, j, message, v->y);
        back[r] = since(&begin);
    }
    (void)sum;
    return (times){ls_median(encode, n), ls_median(back, n), ls_median(read, n),
                   ls_median(write, n)};
}

static ls_status bench_kind(const vectors *v, ls_compression_kind kind, bool json, ls_error *e) {
    const ls_codec *codec = ls_codec_of(kind);
    ls_compression how;
    void *memory = NULL;
    LS_TRY(ls_compression_complete(&(ls_compression){.kind = kind}, N, &how, e));
    size_t message = (ls_codec_nbytes(codec, &how, N) + 63) / 64 * 64;
    size_t work = (codec->nwork(&how, N) + 63) / 64 * 64;
    size_t nbytes = message + work + codec->nshared(&how, N) * sizeof(float);
    LS_TRY(ls_map(nbytes, "measuring", &memory, e));
    unsigned char *p = memory;
    ls_codec_job j = {v->k, &how, N, (float *)(p + message + work), p + message};
    times t = measure(v, codec, &j, p);
    double vector = N * sizeof(float) / 1e9;
    if (json)
        ls_print("{\"codec\": \"%s\", \"bytes\": %zu, \"encode_gb_per_s\": %.2f, "
                 "\"read_gb_per_s\": %.2f, \"decode_gb_per_s\": %.2f, \"write_gb_per_s\": %.2f}\n",
                 codec->name, ls_codec_nbytes(codec, &how, N), vector / t.encode, vector / t.read,
                 vector / t.decode, vector / t.write);
    else
        ls_print("%-14s %8.1f %7.1f%% %8.1f %7.1f%% %9.1f\n", codec->name, vector / t.encode,
                 100 * t.read / t.encode, vector / t.decode, 100 * t.write / t.decode,
                 N * sizeof(float) / (double)ls_codec_nbytes(codec, &how, N));
    ls_unmap(memory, nbytes);
    return LS_OK;
}

ls_status bench_codecs(const ls_kernels *k, int rounds, bool json, ls_error *e) {
    void *p = NULL;
    ls_status s = LS_OK;
    LS_TRY(ls_map(2 * N * sizeof(float), "measuring", &p, e));
    vectors v = {k, p, (float *)p + N, rounds};
    ls_random_normal((ls_random_place){1, LS_STREAM_SAMPLE, 0, 0}, N, 1.0f, v.x);
    ls_random_normal((ls_random_place){1, LS_STREAM_SAMPLE, 1, 0}, N, 1.0f, v.y);
    if (!json) {
        ls_print_wrapped("codecs of compressed sums, one core, a vector of 50 MB; its GB/s, as a "
                         "share of a sum (encoding) or of a fill (decoding), and how many times "
                         "fewer bytes are sent:");
        ls_print("%-14s %8s %8s %8s %8s %9s\n", "", "encode", "of read", "decode", "of write",
                 "fewer");
    }
    for (int kind = 0; kind < LS_NCOMPRESSIONS && s == LS_OK; kind++)
        s = bench_kind(&v, (ls_compression_kind)kind, json, e);
    ls_unmap(p, 2 * N * sizeof(float));
    return s;
}
