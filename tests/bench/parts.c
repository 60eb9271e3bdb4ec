/*
 * Parts of the gateway by themselves: the time to load a configuration into rules, and to read a
 * call and decide about it. Medians, one line of JSON.
 *
 *     parts CONFIGURATION BODY TIMES
 *
 * BODY is a file with a `tools/call`.
 */
#include "loopback.h"
#include "taskgate/json/envelope.h"
#include "taskgate/policy/policy.h"

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static double median_us(int64_t *took_ns, size_t count)
{
    qsort(took_ns, count, sizeof *took_ns, compare);
    return (double)took_ns[count / 2] / 1000;
}

static struct policy *load(const char *path, const struct config **config)
{
    struct config_problems problems = {0};
    struct config *loaded = config_load(path, NULL, &problems);
    struct policy *policy = loaded ? policy_create(loaded, &problems) : NULL;
    if (!policy) {
        fprintf(stderr, "parts: %s cannot be loaded\n", path);
        exit(1);
    }
    config_problems_finish(&problems);
    *config = loaded;
    config_unref(loaded); /* the policy holds its own reference */
    return policy;
}

/* The checks of a call with a task, before it is handled. */
static enum policy_route judge(const struct policy *policy, const struct config *config,
                               struct str body)
{
    struct envelope envelope;
    struct error error = {0};
    struct policy_decision decision;
    if (envelope_read(&envelope, body, &error) != ENVELOPE_OK) {
        fprintf(stderr, "parts: the call cannot be read\n");
        exit(1);
    }
    struct policy_request request = {.source = &config->sources[0],
                                     .name = envelope.name.text,
                                     .arguments = envelope.arguments.raw};
    policy_decide(policy, &request, &decision);
    enum policy_annotation announced = policy_annotate(&decision, true, true, ANNOTATION_OPTIONAL);
    enum policy_route route =
        policy_route(&decision, announced, envelope.task.raw.length > 0, true, ANNOTATION_OPTIONAL);
    envelope_finish(&envelope);
    return route;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: parts CONFIGURATION BODY TIMES\n");
        return 2;
    }
    size_t times = (size_t)strtol(argv[3], NULL, 10), length, routes = 0;
    char *bytes = read_file(argv[2], &length);
    int64_t *took_ns = calloc(times, sizeof *took_ns);
    const struct config *config = NULL;
    struct policy *policy = NULL;
    if (!took_ns || times == 0)
        return 2;
    for (size_t i = 0; i < times; i++) {
        policy_destroy(policy);
        int64_t began = now_ns();
        policy = load(argv[1], &config);
        took_ns[i] = now_ns() - began;
    }
    double load_ms = median_us(took_ns, times) / 1000;
    for (size_t i = 0; i < times; i++) {
        int64_t began = now_ns();
        for (int k = 0; k < 1000; k++)
            routes += judge(policy, config, (struct str){bytes, length});
        took_ns[i] = (now_ns() - began) / 1000;
    }
    printf("{\"load_ms\":%.4f,\"judge_us\":%.4f,\"routes\":%zu}\n", load_ms,
           median_us(took_ns, times), routes);
    policy_destroy(policy);
    free(took_ns);
    free(bytes);
    return 0;
}
