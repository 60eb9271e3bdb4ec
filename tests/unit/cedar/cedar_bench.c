/*
 * Measures parsing and decisions on one core, in microseconds.
 *
 *     cedar_bench POLICIES ENTITIES REQUESTS
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"
#include "taskgate/policy/cedar.h"

#define PARSES 20
#define ROUNDS 50

static double now_us(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static int compare_times(const void *left, const void *right)
{
    const double *a = left, *b = right;
    return *a < *b ? -1 : *a > *b;
}

static void report(const char *what, double *times, size_t count)
{
    qsort(times, count, sizeof *times, compare_times);
    printf("%s: p50 %.1f us, p99 %.1f us\n", what, times[count / 2], times[count * 99 / 100]);
}

static void read_file(const char *path, struct buffer *text)
{
    buffer_init(text);
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    char block[65536];
    for (size_t count; (count = fread(block, 1, sizeof block, file)) > 0;)
        buffer_append(text, str_slice(block, count));
    fclose(file);
}

static struct cedar_policies *parse(const struct buffer *text)
{
    struct buffer problems;
    buffer_init(&problems);
    struct cedar_source source = {.name = "policies", .text = buffer_str(text)};
    struct cedar_policies *policies = cedar_policies_parse(&source, 1, &problems);
    if (!policies)
        fprintf(stderr, "%.*s", STR_ARGS(buffer_str(&problems)));
    buffer_finish(&problems);
    return policies;
}

static void bench_parse(const struct buffer *text)
{
    double times[PARSES];
    for (int i = 0; i < PARSES; i++) {
        double start = now_us();
        cedar_policies_destroy(parse(text));
        times[i] = now_us() - start;
    }
    report("parse", times, PARSES);
}

static void bench_decide(const struct cedar_policies *policies,
                         const struct cedar_entities *entities, struct cedar_request *requests,
                         size_t count, const char *what)
{
    struct cedar_response response;
    cedar_response_init(&response);
    double *times = memory_alloc_array(count * ROUNDS, sizeof *times);
    for (size_t i = 0; i < count * ROUNDS; i++) {
        double start = now_us();
        cedar_authorize(policies, entities, &requests[i % count], &response);
        times[i] = now_us() - start;
    }
    report(what, times, count * ROUNDS);
    free(times);
    cedar_response_finish(&response);
}

int main(int argument_count, char **arguments)
{
    if (argument_count != 4) {
        fprintf(stderr, "usage: cedar_bench POLICIES ENTITIES REQUESTS\n");
        return 2;
    }
    struct buffer policy_text, entity_text, request_text;
    read_file(arguments[1], &policy_text);
    read_file(arguments[2], &entity_text);
    read_file(arguments[3], &request_text);
    bench_parse(&policy_text);
    struct cedar_policies *policies = parse(&policy_text);
    struct cedar_entities *entities = cedar_entities_create();
    struct cedar_heap *heap = cedar_heap_create();
    struct str list = json_member(buffer_str(&request_text), "requests");
    struct cedar_request *requests = memory_alloc_array(json_count(list), sizeof *requests);
    struct error error = {.message = ""};
    bool good = policies && cedar_entities_read_json(entities, buffer_str(&entity_text), &error) &&
                cedar_entities_seal(entities, &error);
    size_t count = 0, position = 0;
    for (struct str request; good && json_next_element(list, &position, &request);)
        good = cedar_request_read_json(heap, request, &requests[count++], &error);
    if (good && count > 0) {
        bench_decide(policies, entities, requests, count, "decide");
        for (size_t i = 0; i < count; i++)
            requests[i].action = cedar_uid(STR("Action"), STR("no policy names this one"));
        bench_decide(policies, entities, requests, count, "decide, another action");
    } else {
        fprintf(stderr, "%s\n", error.message);
    }
    free(requests);
    cedar_heap_destroy(heap);
    cedar_entities_destroy(entities);
    cedar_policies_destroy(policies);
    buffer_finish(&request_text);
    buffer_finish(&entity_text);
    buffer_finish(&policy_text);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
