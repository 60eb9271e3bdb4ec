/*
 * Measures parsing and decisions of the Cedar engine on one core; prints one JSON object with
 * microseconds, and the decision on each request.
 *
 *     bench_policies POLICIES ENTITIES REQUESTS ROUNDS
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"
#include "taskgate/policy/cedar.h"

#define PARSES 20

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

/* `more` follows in the same object. */
static void report(const char *what, double *times, size_t count, const char *more)
{
    qsort(times, count, sizeof *times, compare_times);
    printf("\"%s\": {\"p50\": %.3f, \"p99\": %.3f}%s", what, times[count / 2],
           times[count * 99 / 100], more);
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

static struct cedar_policies *parse(struct str text)
{
    struct buffer problems;
    buffer_init(&problems);
    struct cedar_source source = {.name = "policies", .text = text};
    struct cedar_policies *policies = cedar_policies_parse(&source, 1, &problems);
    if (!policies)
        fprintf(stderr, "%.*s", STR_ARGS(buffer_str(&problems)));
    buffer_finish(&problems);
    return policies;
}

static void bench_parse(struct str text)
{
    double times[PARSES];
    for (int i = 0; i < PARSES; i++) {
        double start = now_us();
        cedar_policies_destroy(parse(text));
        times[i] = now_us() - start;
    }
    report("parse", times, PARSES, ", ");
}

static void write_answers(const struct cedar_policies *policies,
                          const struct cedar_entities *entities,
                          const struct cedar_request *requests, size_t count,
                          struct cedar_response *response)
{
    printf(", \"answers\": [");
    for (size_t i = 0; i < count; i++) {
        cedar_authorize(policies, entities, &requests[i], response);
        printf("%s\"%s %zu %zu\"", i ? ", " : "",
               response->decision == CEDAR_ALLOW ? "allow" : "deny", response->reason_count,
               response->failure_count);
    }
    printf("]");
}

static void bench_decide(const struct cedar_policies *policies,
                         const struct cedar_entities *entities,
                         const struct cedar_request *requests, size_t count, size_t rounds)
{
    struct cedar_response response;
    cedar_response_init(&response);
    double *times = memory_alloc_array(count * rounds, sizeof *times);
    for (size_t i = 0; i < count * rounds; i++) {
        double start = now_us();
        cedar_authorize(policies, entities, &requests[i % count], &response);
        times[i] = now_us() - start;
    }
    report("decide", times, count * rounds, "");
    write_answers(policies, entities, requests, count, &response);
    free(times);
    cedar_response_finish(&response);
}

static bool bench(struct str policy_text, struct str entity_text, struct str list, size_t rounds)
{
    struct cedar_policies *policies = parse(policy_text);
    struct cedar_entities *entities = cedar_entities_create();
    struct cedar_heap *heap = cedar_heap_create();
    struct cedar_request *requests = memory_alloc_array(json_count(list) + 1, sizeof *requests);
    struct error error = {.message = "there are no requests"};
    bool good = policies && cedar_entities_read_json(entities, entity_text, &error) &&
                cedar_entities_seal(entities, &error);
    size_t count = 0, position = 0;
    for (struct str request; good && json_next_element(list, &position, &request);)
        good = cedar_request_read_json(heap, request, &requests[count++], &error);
    good = good && count > 0;
    if (good) {
        printf("{");
        bench_parse(policy_text);
        bench_decide(policies, entities, requests, count, rounds);
        printf("}\n");
    } else {
        fprintf(stderr, "%s\n", error.message);
    }
    free(requests);
    cedar_heap_destroy(heap);
    cedar_entities_destroy(entities);
    cedar_policies_destroy(policies);
    return good;
}

int main(int argument_count, char **arguments)
{
    size_t rounds = argument_count == 5 ? strtoul(arguments[4], NULL, 10) : 0;
    if (rounds == 0) {
        fprintf(stderr, "usage: bench_policies POLICIES ENTITIES REQUESTS ROUNDS\n");
        return 2;
    }
    struct buffer policies, entities, requests;
    read_file(arguments[1], &policies);
    read_file(arguments[2], &entities);
    read_file(arguments[3], &requests);
    struct str list = json_member(buffer_str(&requests), "requests");
    bool good = bench(buffer_str(&policies), buffer_str(&entities), list, rounds);
    buffer_finish(&requests);
    buffer_finish(&entities);
    buffer_finish(&policies);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
