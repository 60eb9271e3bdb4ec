/* The memory limit: where it is read, and the limits that fit into it. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "suites.h"
#include "support.h"
#include "taskgate/config/memory_limit.h"
#include "taskgate/core/memory.h"

#define KIB INT64_C(1024)
#define MIB (KIB * 1024)
#define GIB (MIB * 1024)
#define WRITTEN(key) (1U << MEMORY_LIMIT_##key)

/* ---- arithmetic ---- */

static struct config *defaults(void)
{
    struct config *config = expect_load(minimal, "");
    ck_assert_int_eq(memory_limit_of(config), 0);
    return config;
}

static const struct {
    int64_t limit, bodies, result, connections;
} fits[] = {
    {0, 256 * MIB, 16 * MIB, 10000},         {64 * GIB, 256 * MIB, 16 * MIB, 10000},
    {1 * GIB, 256 * MIB, 16 * MIB, 10000},   {512 * MIB, 155 * MIB, 9 * MIB, 6090},
    {256 * MIB, 71 * MIB, 4544 * KIB, 2810}, {128 * MIB, 30 * MIB, 1920 * KIB, 1210},
    {64 * MIB, 14 * MIB, 896 * KIB, 580},    {32 * MIB, 8224 * KIB, 384 * KIB, 270},
};

START_TEST(defaults_shrink_until_they_fit)
{
    struct config *config = defaults();
    ck_assert(memory_limit_fit(config, fits[_i].limit, 0));
    ck_assert_int_eq(config->limits.bodies_bytes, fits[_i].bodies);
    ck_assert_int_eq(config->limits.result_bytes, fits[_i].result);
    ck_assert_int_eq(config->limits.connections, fits[_i].connections);
    if (fits[_i].limit > 0)
        ck_assert_int_le(memory_limit_worst(config), memory_limit_share(fits[_i].limit));
    config_unref(config);
}
END_TEST

/* One more step of a thousandth would not fit. */
START_TEST(no_default_shrinks_more_than_it_must)
{
    struct config *config = defaults();
    ck_assert(memory_limit_fit(config, 256 * MIB, 0));
    ck_assert_int_gt(memory_limit_worst(config), 256 * MIB / 100 * (MEMORY_LIMIT_PERCENT - 2));
    config_unref(config);
}
END_TEST

/* 256 MiB and 4 * 16 MiB, and 24 KiB for each connection of agents, operators and replicas. */
START_TEST(the_worst_case_counts_each_port)
{
    struct config *config = defaults();
    ck_assert_int_eq(memory_limit_worst(config), 320 * MIB + 11000 * 24 * KIB);
    config->limits.connections = 500;
    ck_assert_int_eq(memory_limit_worst(config), 320 * MIB + 1000 * 24 * KIB);
    config->replica.address = memory_copy_text("http://a:1");
    ck_assert_int_eq(memory_limit_worst(config), 320 * MIB + 1500 * 24 * KIB);
    config->limits.bodies_bytes = INT64_MAX;
    ck_assert_int_eq(memory_limit_worst(config), INT64_MAX);
    config_unref(config);
}
END_TEST

START_TEST(a_written_value_stays)
{
    struct config *config = defaults();
    config->limits.connections = 100;
    ck_assert(memory_limit_fit(config, 128 * MIB, WRITTEN(CONNECTIONS)));
    ck_assert_int_eq(config->limits.connections, 100);
    ck_assert_int_gt(config->limits.bodies_bytes, 64 * MIB);
    config_unref(config);
}
END_TEST

static const struct {
    int64_t limit;
    unsigned written;
    int64_t bodies, result, connections, body;
    enum memory_limit_key costliest;
} exceeding[] = {
    {128 * MIB, WRITTEN(BODIES), 90 * MIB, 16 * MIB, 10000, 4 * MIB, MEMORY_LIMIT_BODIES},
    {128 * MIB, WRITTEN(BODIES), INT64_MAX, 16 * MIB, 10000, 4 * MIB, MEMORY_LIMIT_BODIES},
    {128 * MIB, WRITTEN(RESULT), 256 * MIB, 32 * MIB, 10000, 4 * MIB, MEMORY_LIMIT_RESULT},
    {128 * MIB, WRITTEN(CONNECTIONS), 256 * MIB, 16 * MIB, 10000, 4 * MIB,
     MEMORY_LIMIT_CONNECTIONS},
    {128 * MIB, WRITTEN(BODY), 256 * MIB, 16 * MIB, 10000, 64 * MIB, MEMORY_LIMIT_BODY},
    {128 * MIB, WRITTEN(BODY) | WRITTEN(BODIES) | WRITTEN(CONNECTIONS), 50 * MIB, 16 * MIB, 2000,
     64 * MIB, MEMORY_LIMIT_CONNECTIONS},
    {128 * MIB, WRITTEN(BODIES) | WRITTEN(RESULT), 60 * MIB, 9 * MIB, 10000, 4 * MIB,
     MEMORY_LIMIT_BODIES},
    {4 * MIB, 0, 256 * MIB, 16 * MIB, 10000, 4 * MIB, MEMORY_LIMIT_KEY_COUNT},
};

START_TEST(the_written_value_that_needs_most_is_refused)
{
    struct config *config = defaults();
    config->limits.bodies_bytes = exceeding[_i].bodies;
    config->limits.result_bytes = exceeding[_i].result;
    config->limits.connections = exceeding[_i].connections;
    config->limits.body_bytes = exceeding[_i].body;
    ck_assert(!memory_limit_fit(config, exceeding[_i].limit, exceeding[_i].written));
    ck_assert_int_eq(memory_limit_costliest(config, exceeding[_i].written),
                     exceeding[_i].costliest);
    config_unref(config);
}
END_TEST

START_TEST(the_least_is_kept)
{
    struct config *config = defaults();
    ck_assert(!memory_limit_fit(config, MIB, 0));
    ck_assert_int_eq(config->limits.bodies_bytes, 2 * (4 * MIB + 16 * KIB));
    ck_assert_int_eq(config->limits.result_bytes, 64 * KIB);
    ck_assert_int_eq(config->limits.connections, 64);
    config_unref(config);
}
END_TEST

START_TEST(sizes_read_as_they_are_written)
{
    char text[MEMORY_LIMIT_TEXT_BYTES];
    memory_limit_format(256 * MIB, text);
    ck_assert_str_eq(text, "256MiB");
    memory_limit_format(640 * KIB, text);
    ck_assert_str_eq(text, "640KiB");
    memory_limit_format(MIB + 1, text);
    ck_assert_str_eq(text, "1048577");
}
END_TEST

/* ---- control groups ---- */

static char *root;

static void make_root(void)
{
    char name[] = "/tmp/taskgate-cgroup-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(name));
    root = memory_copy_text(name);
}

static void remove_root(void)
{
    char *command = memory_format("rm -r '%s'", root);
    ck_assert_int_eq(system(command), 0);
    free(command);
    free(root);
}

/* Writes the file and makes its folders. */
static void put(const char *path, const char *text)
{
    char *full = memory_format("%s%s", root, path);
    for (char *slash = strchr(full + strlen(root) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(full, 0700);
        *slash = '/';
    }
    FILE *file = fopen(full, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
    free(full);
}

#define MOUNT_OF_VERSION_2 "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n"
#define MOUNT_OF_VERSION_1                                                                         \
    "14 34 0:32 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"                  \
    "15 34 0:33 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n"

/* The process's lines, the mounts, and limits by file. */
static const struct tree {
    const char *group, *mounts;
    struct {
        const char *path, *text;
    } files[4];
    int64_t limit;
} trees[] = {
    /* version 2: in a container, nested, without a limit */
    {"0::/\n", MOUNT_OF_VERSION_2, {{"/sys/fs/cgroup/memory.max", "268435456\n"}}, 256 * MIB},
    {"0::/pods/a/b\n",
     MOUNT_OF_VERSION_2,
     {{"/sys/fs/cgroup/pods/memory.max", "134217728\n"},
      {"/sys/fs/cgroup/pods/a/memory.max", "max\n"},
      {"/sys/fs/cgroup/pods/a/b/memory.max", "268435456\n"}},
     128 * MIB},
    {"0::/pods/a\n", MOUNT_OF_VERSION_2, {{"/sys/fs/cgroup/pods/a/memory.max", "max\n"}}, 0},
    {"0::/pods\n",
     MOUNT_OF_VERSION_2,
     {{"/sys/fs/cgroup/pods/memory.max", "67108864\n"},
      {"/sys/fs/cgroup/other/memory.max", "1048576\n"}},
     64 * MIB},
    /* outside of the process's own view */
    {"0::/../other\n",
     MOUNT_OF_VERSION_2,
     {{"/sys/fs/cgroup/memory.max", "67108864\n"}, {"/sys/fs/other/memory.max", "1048576\n"}},
     64 * MIB},
    /* version 1: nested, the path of the machine in a container, "no limit" */
    {"9:cpu,cpuacct:/x\n4:memory:/docker/abc\n",
     MOUNT_OF_VERSION_1,
     {{"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"},
      {"/sys/fs/cgroup/memory/docker/memory.limit_in_bytes", "536870912\n"},
      {"/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "268435456\n"}},
     256 * MIB},
    {"4:memory:/docker/abc\n",
     "15 34 0:33 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
     {{"/sys/fs/cgroup/memory/memory.limit_in_bytes", "134217728\n"}},
     128 * MIB},
    {"4:memory:/docker/abcdef\n",
     "15 34 0:33 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
     {{"/sys/fs/cgroup/memory/memory.limit_in_bytes", "134217728\n"},
      {"/sys/fs/cgroup/memorydef/memory.limit_in_bytes", "1048576\n"}},
     128 * MIB},
    {"4:memory:/a\n",
     MOUNT_OF_VERSION_1,
     {{"/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n"}},
     0},
    /* both: the controller is with version 1 */
    {"4:memory:/a\n0::/b\n",
     MOUNT_OF_VERSION_1 "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
     {{"/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "67108864\n"}},
     64 * MIB},
    /* nothing to read, and no sense in it */
    {"0::/a\n", "", {{NULL, NULL}}, 0},
    {"0:/a\nx\n\n", "14 34\n\n- cgroup2 cgroup2 rw\n", {{NULL, NULL}}, 0},
    {"0::/a\n", MOUNT_OF_VERSION_2, {{"/sys/fs/cgroup/a/memory.max", "-1\n"}}, 0},
};

START_TEST(the_smallest_limit_of_the_path_counts)
{
    const struct tree *tree = &trees[_i];
    put("/proc/self/cgroup", tree->group);
    put("/proc/self/mountinfo", tree->mounts);
    for (size_t i = 0; i < 4 && tree->files[i].path; i++)
        put(tree->files[i].path, tree->files[i].text);
    ck_assert_int_eq(memory_limit_read(root), tree->limit);
}
END_TEST

START_TEST(without_control_groups_there_is_no_limit)
{
    ck_assert_int_eq(memory_limit_read(root), 0);
}
END_TEST

TCase *memory_case(void)
{
    TCase *tcase = tcase_create("memory");
    tcase_add_loop_test(tcase, defaults_shrink_until_they_fit, 0, sizeof fits / sizeof *fits);
    tcase_add_test(tcase, no_default_shrinks_more_than_it_must);
    tcase_add_test(tcase, the_worst_case_counts_each_port);
    tcase_add_test(tcase, a_written_value_stays);
    tcase_add_loop_test(tcase, the_written_value_that_needs_most_is_refused, 0,
                        sizeof exceeding / sizeof *exceeding);
    tcase_add_test(tcase, the_least_is_kept);
    tcase_add_test(tcase, sizes_read_as_they_are_written);
    return tcase;
}

TCase *memory_groups_case(void)
{
    TCase *tcase = tcase_create("memory of control groups");
    tcase_add_checked_fixture(tcase, make_root, remove_root);
    tcase_add_loop_test(tcase, the_smallest_limit_of_the_path_counts, 0,
                        sizeof trees / sizeof *trees);
    tcase_add_test(tcase, without_control_groups_there_is_no_limit);
    return tcase;
}
