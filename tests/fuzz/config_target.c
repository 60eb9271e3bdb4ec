/*
 * The configuration: any text is either refused with at least one error that has a place, or
 * becomes a configuration that can be used as it stands.
 */
#include <string.h>

#include "fuzz.h"
#include "taskgate/config/config.h"
#include "taskgate/config/glob.h"

static const char *environment(const char *name)
{
    if (strcmp(name, "TOKEN") == 0)
        return "token-of-the-environment";
    return strcmp(name, "URL") == 0 ? "http://127.0.0.1:1/mcp" : NULL;
}

static void expect_glob(const char *pattern)
{
    struct glob *glob = glob_compile(str_from(pattern), NULL);
    FUZZ_EXPECT(glob);
    glob_destroy(glob);
}

static void check_rules(const struct config *config)
{
    for (size_t i = 0; i < config->rule_count; i++) {
        const struct config_rule *rule = &config->rules[i];
        expect_glob(rule->match);
        FUZZ_EXPECT(rule->line > 0);
        FUZZ_EXPECT(rule->action != ACTION_APPROVE || config_workflow_of(config, rule));
    }
    for (size_t i = 0; i < config->client_count; i++)
        expect_glob(config->clients[i].match);
    for (size_t i = 0; i < config->methods_allow.count; i++)
        expect_glob(config->methods_allow.items[i]);
}

static void check_loaded(const struct config *config)
{
    FUZZ_EXPECT(config->workflow_count > 0);
    FUZZ_EXPECT(config->workers > 0);
    FUZZ_EXPECT(config->limits.body_bytes > 0 && config->limits.result_bytes > 0);
    FUZZ_EXPECT(config->times.drain_timeout_ms <= config->times.shutdown_timeout_ms);
    for (size_t i = 0; i < config->source_count; i++) {
        const struct config_source *source = &config->sources[i];
        FUZZ_EXPECT(config_source_find(config, str_from(source->id)) == source);
        for (size_t k = 0; k < source->expose.count; k++)
            expect_glob(source->expose.items[k]);
    }
    for (size_t i = 0; i < config->token_count; i++)
        FUZZ_EXPECT(strlen(config->tokens[i].sha256) == 64);
    check_rules(config);
}

static void check_problems(const struct config_problems *problems)
{
    struct buffer text;
    size_t lines = 0;
    buffer_init(&text);
    config_problems_write(problems, &text);
    for (size_t i = 0; i < text.length; i++)
        lines += text.bytes[i] == '\n';
    /* One line each: nothing that a file says makes a line of its own. */
    FUZZ_EXPECT(lines == problems->count);
    buffer_finish(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct config_problems problems = {.items = NULL};
    struct config *config =
        config_parse(str_slice((const char *)data, size), "fuzz.yaml", environment, &problems);
    FUZZ_EXPECT((config == NULL) == (problems.errors > 0));
    check_problems(&problems);
    if (config)
        check_loaded(config);
    config_unref(config);
    config_problems_finish(&problems);
    return 0;
}
