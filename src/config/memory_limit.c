/* The limits that fit into a memory limit: arithmetic alone. */
#include "taskgate/config/memory_limit.h"

#include <inttypes.h>
#include <stdio.h>

#define KIB INT64_C(1024)
#define MIB (KIB * 1024)

/* Of one connection: 16 KiB that `bodies_bytes` does not count, and what describes it. */
#define CONNECTION_BYTES (24 * KIB)
/* Connections of the operators' port: src/admin/admin.c. */
#define ADMIN_CONNECTIONS 1000
/* Two results, each as it is received and as it is stored. */
#define RESULT_COPIES 4
#define REQUEST_HEAD_BYTES (16 * KIB)

#define LEAST_RESULT_BYTES (64 * KIB)
#define LEAST_CONNECTIONS 64
/* Defaults shrink in so many steps. */
#define STEPS 1000

static int64_t lesser(int64_t left, int64_t right)
{
    return left < right ? left : right;
}

static int64_t greater(int64_t left, int64_t right)
{
    return left > right ? left : right;
}

/* Written values may be as large as an int64_t. */
static int64_t add(int64_t left, int64_t right)
{
    return left > INT64_MAX - right ? INT64_MAX : left + right;
}

/* A buffer doubles until a request fits. */
static int64_t least_bodies(const struct config_limits *limits)
{
    return 2 * (limits->body_bytes + REQUEST_HEAD_BYTES);
}

static int64_t cost(const struct config *config, enum memory_limit_key key)
{
    const struct config_limits *limits = &config->limits;
    int64_t connections = limits->connections + lesser(limits->connections, ADMIN_CONNECTIONS);
    switch (key) {
    case MEMORY_LIMIT_BODIES:
        return limits->bodies_bytes;
    case MEMORY_LIMIT_RESULT:
        return RESULT_COPIES * limits->result_bytes;
    case MEMORY_LIMIT_CONNECTIONS:
        if (config->replica.address) /* a port of its own */
            connections += limits->connections;
        return connections * CONNECTION_BYTES;
    case MEMORY_LIMIT_BODY:
        return least_bodies(limits);
    case MEMORY_LIMIT_KEY_COUNT:
        break;
    }
    return 0;
}

int64_t memory_limit_worst(const struct config *config)
{
    return add(cost(config, MEMORY_LIMIT_BODIES),
               cost(config, MEMORY_LIMIT_RESULT) + cost(config, MEMORY_LIMIT_CONNECTIONS));
}

int64_t memory_limit_share(int64_t bytes)
{
    return bytes / 100 * MEMORY_LIMIT_PERCENT / KIB * KIB;
}

/* To a number that people would write. */
static int64_t round_down(int64_t bytes)
{
    int64_t unit = bytes >= 8 * MIB ? MIB : 64 * KIB;
    return bytes / unit * unit;
}

/* `step` of STEPS of `value`, a default, so it is small. */
static int64_t part(int64_t value, int64_t step)
{
    return value * step / STEPS;
}

static bool has(unsigned written, enum memory_limit_key key)
{
    return (written & 1U << key) != 0;
}

static void shrink(struct config_limits *limits, const struct config_limits *full, unsigned written,
                   int64_t step)
{
    if (!has(written, MEMORY_LIMIT_BODIES))
        limits->bodies_bytes =
            greater(round_down(part(full->bodies_bytes, step)), least_bodies(full));
    if (!has(written, MEMORY_LIMIT_RESULT))
        limits->result_bytes =
            greater(round_down(part(full->result_bytes, step)), LEAST_RESULT_BYTES);
    if (!has(written, MEMORY_LIMIT_CONNECTIONS))
        limits->connections = greater(part(full->connections, step), LEAST_CONNECTIONS);
}

enum memory_limit_key memory_limit_costliest(const struct config *config, unsigned written)
{
    enum memory_limit_key found = MEMORY_LIMIT_KEY_COUNT;
    for (enum memory_limit_key key = 0; key < MEMORY_LIMIT_KEY_COUNT; key++) {
        bool counts =
            has(written, key) && (key != MEMORY_LIMIT_BODY || !has(written, MEMORY_LIMIT_BODIES));
        if (counts && cost(config, key) > cost(config, found))
            found = key;
    }
    return found;
}

bool memory_limit_fit(struct config *config, int64_t bytes, unsigned written)
{
    const struct config_limits full = config->limits;
    int64_t most = memory_limit_share(bytes);
    if (bytes == 0 || memory_limit_worst(config) <= most)
        return true;
    for (int64_t step = STEPS; step >= 0; step--) {
        shrink(&config->limits, &full, written, step);
        if (memory_limit_worst(config) <= most)
            return true;
    }
    return false;
}

void memory_limit_format(int64_t bytes, char text[static MEMORY_LIMIT_TEXT_BYTES])
{
    const char *unit = bytes % MIB == 0 ? "MiB" : bytes % KIB == 0 ? "KiB" : "";
    int64_t size = bytes % MIB == 0 ? MIB : bytes % KIB == 0 ? KIB : 1;
    snprintf(text, MEMORY_LIMIT_TEXT_BYTES, "%" PRId64 "%s", bytes / size, unit);
}
