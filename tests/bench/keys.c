/*
 * Measures bodies with very many keys in one object: reading the message, and looking for keys
 * that fold alike. Prints a line for each kind of key with the least CPU time of some runs.
 *
 *     bench_keys [KEYS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "taskgate/core/buffer.h"
#include "taskgate/json/envelope.h"
#include "taskgate/json/fold.h"

#define RUNS 9
#define MIB (1024.0 * 1024)

/* The beginnings of the keys; a number follows. */
static const struct {
    const char *name, *begin;
} kinds[] = {
    {"short", ""},
    {"upper case", "K"},
    {"long", "some_key_number_"},
    {"camel case", "someKeyNumber"},
    {"with an escape", "\\u0041"},
    {"Cyrillic", "\xD0\x96"},
};

static double cpu_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static void write_body(struct buffer *body, const char *begin, size_t keys)
{
    buffer_init(body);
    buffer_append_text(body, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
                             "\"params\":{\"name\":\"read\",\"arguments\":{");
    for (size_t i = 0; i < keys; i++)
        buffer_append_format(body, "%s\"%s%zx\":1", i > 0 ? "," : "", begin, i);
    buffer_append_text(body, "}}}");
}

/* False when a body is not read as it should be. */
static bool measure(struct str body, double *read_ms, double *fold_ms)
{
    struct envelope envelope;
    struct error error;
    double began = cpu_ms();
    bool is_good = envelope_read(&envelope, body, &error) == ENVELOPE_OK;
    double was_read = cpu_ms();
    is_good = is_good && !fold_finds_variants(envelope.arguments.raw, NULL);
    double folded = cpu_ms();
    envelope_finish(&envelope);
    *read_ms = was_read - began < *read_ms ? was_read - began : *read_ms;
    *fold_ms = folded - was_read < *fold_ms ? folded - was_read : *fold_ms;
    return is_good;
}

int main(int argc, char **argv)
{
    size_t keys = argc > 1 ? (size_t)strtoul(argv[1], NULL, 10) : 400000;
    printf("| keys | MiB | reading, ms for each MiB | keys that fold alike, ms for each MiB |\n"
           "|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct buffer body;
        double read_ms = 1e9, fold_ms = 1e9;
        write_body(&body, kinds[i].begin, keys);
        for (int run = 0; run < RUNS; run++) {
            if (!measure(buffer_str(&body), &read_ms, &fold_ms)) {
                fprintf(stderr, "bench_keys: %s: not read\n", kinds[i].name);
                return 1;
            }
        }
        double mib = (double)body.length / MIB;
        printf("| %s | %.1f | %.1f | %.1f |\n", kinds[i].name, mib, read_ms / mib, fold_ms / mib);
        buffer_finish(&body);
    }
    return 0;
}
