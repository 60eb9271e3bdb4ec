/* Shared by the tests of the configuration. */
#include "support.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"

const char minimal[] = "schema: 1\n"
                       "sources:\n"
                       "  - id: up\n"
                       "    kind: mcp\n"
                       "    url: http://127.0.0.1:1/mcp\n"
                       "governance:\n"
                       "  defaults:\n"
                       "    action: forward\n";

static const char *const *environment;

void test_environment(const char *const *pairs)
{
    environment = pairs;
}

const char *test_getenv(const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; environment && environment[i]; i++) {
        if (strncmp(environment[i], name, length) == 0 && environment[i][length] == '=')
            return environment[i] + length + 1;
    }
    return NULL;
}

char *with(const char *more)
{
    return memory_format("%s%s", minimal, more);
}

struct config *expect_load(const char *text, const char *problems)
{
    struct config_problems found = {0};
    struct buffer said;
    buffer_init(&said);
    struct config *config = config_parse(str_from(text), "t.yaml", test_getenv, &found);
    config_problems_write(&found, &said);
    buffer_append_char(&said, '\0');
    ck_assert_str_eq(said.bytes, problems);
    ck_assert_msg((config == NULL) == (found.errors > 0), "errors and result disagree");
    buffer_finish(&said);
    config_problems_finish(&found);
    return config;
}

static bool has_error(const char *problems)
{
    while (*problems) {
        const char *end = strchr(problems, '\n');
        const char *warning = strstr(problems, ": warning: ");
        if (!warning || !end || warning > end)
            return true;
        problems = end + 1;
    }
    return false;
}

void expect_problems(const char *text, const char *problems)
{
    struct config *config = expect_load(text, problems);
    ck_assert_msg((config == NULL) == has_error(problems), "loaded: %d", config != NULL);
    config_unref(config);
}
