/* The limits that fit into a memory limit: arithmetic alone. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "config_private.h"
#include "taskgate/config/memory_limit.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"

/*
 * The memory limit of this process's control group. A limit counts for all groups below it, so all
 * of the path are read. In a container /proc/self/cgroup may have a path of the machine, of which
 * only the end is mounted: /proc/self/mountinfo says which.
 */

/* Version 1 writes "no limit" as the largest number of whole pages. */
#define LEAST_UNLIMITED (INT64_C(1) << 60)

/* One version of control groups. */
struct hierarchy {
    const char *file; /* with the limit, in the folder of each group */
    struct str path;  /* of this process's group; empty: it is in none */
    struct str filesystem, option;
};

static bool memory_limit_read_text(const char *root, const char *path, struct buffer *text)
{
    struct config_file file;
    OWNED char *full = memory_format("%s%s", root, path);
    return file_read(full, text, &file);
}

/* "memory" in "cpu,memory". */
static bool memory_limit_names(struct str list, struct str name)
{
    struct str item;
    bool found = false, is_more = true;
    while (is_more && !found) {
        is_more = str_cut(list, ',', &item, &list);
        found = str_equal(item, name);
    }
    return found;
}

/* ---- limits ---- */

/* 0: none; "max" is no number. */
static int64_t memory_limit_read_limit(const char *root, const char *folder, const char *name)
{
    OWNED_BUFFER(text);
    uint64_t value;
    OWNED char *path = memory_format("%s/%s", folder, name);
    bool is_limit = memory_limit_read_text(root, path, &text) &&
                    str_to_u64(str_trim(buffer_str(&text)), &value) &&
                    value < (uint64_t)LEAST_UNLIMITED;
    return is_limit ? (int64_t)value : 0;
}

static int64_t smaller_limit(int64_t left, int64_t right)
{
    return left == 0 || (right != 0 && right < left) ? right : left;
}

/* `path` without `mounted`, its beginning. A group that is not below what is mounted is seen at the
 * mount alone. */
static struct str path_below(struct str path, struct str mounted)
{
    if (str_equal(mounted, STR("/")))
        mounted = STR_EMPTY;
    struct str rest = STR_EMPTY;
    if (str_starts_with(path, mounted))
        rest = str_slice(path.bytes + mounted.length, path.length - mounted.length);
    bool is_below = rest.length > 1 && rest.bytes[0] == '/' && !str_starts_with(rest, STR("/.."));
    return is_below ? rest : STR_EMPTY;
}

static int64_t limit_along(const char *root, const struct hierarchy *hierarchy, struct str mounted,
                           struct str mount)
{
    struct str path = path_below(hierarchy->path, mounted);
    int64_t limit = 0;
    for (;;) {
        char *folder = memory_format("%.*s%.*s", STR_ARGS(mount), STR_ARGS(path));
        limit = smaller_limit(limit, memory_limit_read_limit(root, folder, hierarchy->file));
        free(folder);
        if (path.length == 0)
            return limit;
        do
            path.length--;
        while (path.bytes[path.length] != '/');
    }
}

/* ---- places ---- */

/* "4:cpu,memory:/path" of version 1, "0::/path" of version 2. */
static void find_paths(struct str text, struct hierarchy *one, struct hierarchy *two)
{
    struct str line, id, controllers, path;
    while (text.length > 0) {
        str_cut(text, '\n', &line, &text);
        if (!str_cut(line, ':', &id, &line) || !str_cut(line, ':', &controllers, &path))
            continue;
        if (memory_limit_names(controllers, STR("memory")))
            one->path = path;
        else if (str_equal(id, STR("0")))
            two->path = path;
    }
}

/* "14 34 0:32 ROOT MOUNT rw,relatime shared:1 - cgroup cgroup rw,memory": a list of any length
 * ends with the dash. */
static int64_t limit_of_mount(const char *root, struct str line, const struct hierarchy *hierarchy)
{
    struct str field, mounted = STR_EMPTY, mount = STR_EMPTY, filesystem, options = STR_EMPTY;
    for (int i = 0; str_cut(line, ' ', &field, &line) && !str_equal(field, STR("-")); i++) {
        if (i == 3)
            mounted = field;
        else if (i == 4)
            mount = field;
    }
    str_cut(line, ' ', &filesystem, &line);
    str_cut(line, ' ', &field, &options);
    if (hierarchy->path.length == 0 || !str_equal(filesystem, hierarchy->filesystem) ||
        (hierarchy->option.length > 0 && !memory_limit_names(options, hierarchy->option)))
        return 0;
    return limit_along(root, hierarchy, mounted, mount);
}

int64_t memory_limit_read(const char *root)
{
    struct hierarchy one = {
        .file = "memory.limit_in_bytes", .filesystem = STR("cgroup"), .option = STR("memory")};
    struct hierarchy two = {.file = "memory.max", .filesystem = STR("cgroup2")};
    OWNED_BUFFER(groups);
    OWNED_BUFFER(mounts);
    int64_t limit = 0;
    if (memory_limit_read_text(root, "/proc/self/cgroup", &groups) &&
        memory_limit_read_text(root, "/proc/self/mountinfo", &mounts)) {
        struct str line, rest = buffer_str(&mounts);
        find_paths(buffer_str(&groups), &one, &two);
        while (rest.length > 0) {
            str_cut(rest, '\n', &line, &rest);
            limit = smaller_limit(limit, limit_of_mount(root, line, &one));
            limit = smaller_limit(limit, limit_of_mount(root, line, &two));
        }
    }
    return limit;
}

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

static int64_t memory_limit_lesser(int64_t left, int64_t right)
{
    return left < right ? left : right;
}

static int64_t greater(int64_t left, int64_t right)
{
    return left > right ? left : right;
}

/* Written values may be as large as an int64_t. */
static int64_t memory_limit_add(int64_t left, int64_t right)
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
    int64_t connections =
        limits->connections + memory_limit_lesser(limits->connections, ADMIN_CONNECTIONS);
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

int64_t memory_limit_of(const struct config *config)
{
    return config_memory_limit(config);
}

int64_t memory_limit_worst(const struct config *config)
{
    return memory_limit_add(cost(config, MEMORY_LIMIT_BODIES),
                            cost(config, MEMORY_LIMIT_RESULT) +
                                cost(config, MEMORY_LIMIT_CONNECTIONS));
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

static bool memory_limit_has(unsigned written, enum memory_limit_key key)
{
    return (written & 1U << key) != 0;
}

static void memory_limit_shrink(struct config_limits *limits, const struct config_limits *full,
                                unsigned written, int64_t step)
{
    if (!memory_limit_has(written, MEMORY_LIMIT_BODIES))
        limits->bodies_bytes =
            greater(round_down(part(full->bodies_bytes, step)), least_bodies(full));
    if (!memory_limit_has(written, MEMORY_LIMIT_RESULT))
        limits->result_bytes =
            greater(round_down(part(full->result_bytes, step)), LEAST_RESULT_BYTES);
    if (!memory_limit_has(written, MEMORY_LIMIT_CONNECTIONS))
        limits->connections = greater(part(full->connections, step), LEAST_CONNECTIONS);
}

enum memory_limit_key memory_limit_costliest(const struct config *config, unsigned written)
{
    enum memory_limit_key found = MEMORY_LIMIT_KEY_COUNT;
    for (enum memory_limit_key key = 0; key < MEMORY_LIMIT_KEY_COUNT; key++) {
        bool counts = memory_limit_has(written, key) &&
                      (key != MEMORY_LIMIT_BODY || !memory_limit_has(written, MEMORY_LIMIT_BODIES));
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
        memory_limit_shrink(&config->limits, &full, written, step);
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
