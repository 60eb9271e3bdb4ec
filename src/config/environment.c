/* Environment variables, applied over the file. */
#include "environment.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "taskgate/core/memory.h"

/* A variable counts as set if its value is not empty. */
static const char *value_of(const struct draft *draft, const char *name)
{
    const char *value = draft->environment(name);
    return value && *value ? value : NULL;
}

/* The spelling that is set and comes first, or MAX_SPELLINGS. */
static size_t find_spelling(const struct draft *draft, const struct variable *variable)
{
    for (size_t i = 0; i < MAX_SPELLINGS && variable->spellings[i].name; i++) {
        if (value_of(draft, variable->spellings[i].name))
            return i;
    }
    return MAX_SPELLINGS;
}

static void complain(const struct draft *draft, const char *name, const char *key, const char *hint,
                     const char *message)
{
    struct place place = {.file = name};
    problems_error(draft->report.problems, place, key, hint, "%s", message);
}

static void warn(const struct draft *draft, const char *name, const char *key, const char *hint,
                 const char *message)
{
    struct place place = {.file = name};
    problems_warning(draft->report.problems, place, key, hint, "%s", message);
}

static void store_number(const struct draft *draft, const struct variable *variable, int64_t value)
{
    char *target = (char *)draft->config + variable->offset;
    uint16_t port = (uint16_t)value;
    if (variable->size == sizeof port)
        memcpy(target, &port, sizeof port);
    else
        memcpy(target, &value, sizeof value);
}

static void refuse_range(const struct draft *draft, const struct variable *variable,
                         size_t spelling)
{
    int64_t factor = variable->spellings[spelling].factor;
    const char *rule = variable->rule ? variable->rule : "";
    char *message =
        memory_format("%s%smust be from %" PRId64 " to %" PRId64, rule, *rule ? " " : "",
                      (variable->minimum + factor - 1) / factor, variable->maximum / factor);
    complain(draft, variable->spellings[spelling].name, variable->sets, NULL, message);
    free(message);
}

static void apply_number(const struct draft *draft, const struct variable *variable)
{
    size_t spelling = find_spelling(draft, variable);
    uint64_t number;
    int64_t value;
    if (variable->default_text && str_to_u64(str_from(variable->default_text), &number))
        store_number(draft, variable, (int64_t)number * variable->spellings[0].factor);
    if (spelling == MAX_SPELLINGS)
        return;
    const char *name = variable->spellings[spelling].name;
    for (size_t i = spelling + 1; i < MAX_SPELLINGS && variable->spellings[i].name; i++) {
        char *message = memory_format("%s is set as well and wins", name);
        if (value_of(draft, variable->spellings[i].name))
            warn(draft, variable->spellings[i].name, variable->sets, NULL, message);
        free(message);
    }
    if (!str_to_u64(str_trim(str_from(value_of(draft, name))), &number)) {
        warn(draft, name, variable->sets, NULL, "this is no whole number, the variable is ignored");
        return;
    }
    bool is_huge =
        number > INT64_MAX ||
        __builtin_mul_overflow((int64_t)number, variable->spellings[spelling].factor, &value);
    if (is_huge || value < variable->minimum || value > variable->maximum)
        refuse_range(draft, variable, spelling);
    else
        store_number(draft, variable, value);
}

static void apply_address(const struct draft *draft, const struct variable *variable)
{
    const char *value = value_of(draft, variable->spellings[0].name);
    struct error error;
    if (value && !check_address(str_from(value), &error))
        complain(draft, variable->spellings[0].name, variable->sets, NULL, error.message);
    char *copy = memory_copy_text(value ? value : variable->default_text);
    memcpy((char *)draft->config + variable->offset, &copy, sizeof copy);
}

static void apply_text(const struct draft *draft, const struct variable *variable)
{
    const char *value = value_of(draft, variable->spellings[0].name);
    char *text;
    if (!value)
        value = variable->default_text;
    if (!value)
        return;
    memcpy(&text, (char *)draft->config + variable->offset, sizeof text);
    free(text);
    text = memory_copy_text(value);
    memcpy((char *)draft->config + variable->offset, &text, sizeof text);
}

static bool holds(const struct config_strings *strings, struct str text)
{
    for (size_t i = 0; i < strings->count; i++) {
        if (str_equal(str_from(strings->items[i]), text))
            return true;
    }
    return false;
}

static void apply_force_required(const struct draft *draft, const struct variable *variable)
{
    struct config_strings *names = &draft->config->force_required;
    struct str name, rest = str_from(value_of(draft, variable->spellings[0].name));
    while (rest.length) {
        str_cut(rest, ',', &name, &rest);
        name = str_trim(name);
        if (name.length == 0 || holds(names, name))
            continue;
        names->items = memory_grow_array(names->items, names->count + 1, sizeof *names->items);
        names->items[names->count++] = memory_copy_str(name);
    }
}

static void apply_upstream(const struct draft *draft, const struct variable *variable)
{
    const char *name = variable->spellings[0].name, *value = value_of(draft, name);
    struct config *config = draft->config;
    struct error error;
    if (!value)
        return;
    if (config->source_count > 1) {
        complain(draft, name, variable->sets, "unset it, and write each url into the file",
                 "there are several sources, and this replaces the url of a single one");
    } else if (!check_url(str_from(value), &error)) {
        char *message = memory_format("V-008 %s", error.message);
        complain(draft, name, variable->sets, NULL, message);
        free(message);
    } else if (config->source_count == 1) {
        free(config->sources[0].url);
        config->sources[0].url = memory_copy_text(value);
    }
}

static void apply_refused(const struct draft *draft, const struct variable *variable)
{
    const char *name = variable->spellings[0].name;
    struct str value = str_trim(str_from(value_of(draft, name)));
    struct str candidate, rest = str_from(variable->allowed);
    if (value.length == 0)
        return;
    do {
        str_cut(rest, ' ', &candidate, &rest);
        if (str_equal_ignore_case(candidate, value))
            return;
    } while (rest.length);
    char *text = memory_copy_str(value);
    char *quoted = problems_quote(text);
    char *message =
        memory_format("%s is refused: nothing in the environment may switch approval off", quoted);
    complain(draft, name, NULL, "unset it", message);
    free(message);
    free(quoted);
    free(text);
}

/* Whether the variable that fills `offset` of the configuration is set. */
static bool is_set(const struct draft *draft, size_t offset)
{
    for (size_t i = 0; i < environment_count; i++) {
        const struct variable *variable = &environment_table[i];
        if (variable->kind == VARIABLE_NUMBER && variable->offset == offset)
            return find_spelling(draft, variable) < MAX_SPELLINGS;
    }
    return false;
}

/* Two numbers that must not cross. If only one was set, the other's default gives way. */
static void check_invariants(const struct draft *draft)
{
    struct config *config = draft->config;
    struct config_times *times = &config->times;
    if (times->task_default_ttl_ms > times->task_max_ttl_ms) {
        if (!is_set(draft, offsetof(struct config, times.task_default_ttl_ms)))
            times->task_default_ttl_ms = times->task_max_ttl_ms;
        else if (!is_set(draft, offsetof(struct config, times.task_max_ttl_ms)))
            times->task_max_ttl_ms = times->task_default_ttl_ms;
        else
            complain(draft, "THOUGHTGATE_TASK_DEFAULT_TTL_MS", NULL, NULL,
                     "must not be above THOUGHTGATE_TASK_MAX_TTL_MS");
    }
    if (times->approval_timeout_ms > times->task_max_ttl_ms &&
        is_set(draft, offsetof(struct config, times.approval_timeout_ms)))
        warn(draft, "THOUGHTGATE_APPROVAL_TIMEOUT_SECS", NULL,
             "set THOUGHTGATE_TASK_MAX_TTL_MS higher",
             "a human has no longer than THOUGHTGATE_TASK_MAX_TTL_MS, the longest life of a task");
    bool drain_is_set = is_set(draft, offsetof(struct config, times.drain_timeout_ms));
    if (drain_is_set && times->drain_timeout_ms >= times->shutdown_timeout_ms)
        complain(draft, "THOUGHTGATE_DRAIN_TIMEOUT_SECS", NULL, NULL,
                 "must be below THOUGHTGATE_SHUTDOWN_TIMEOUT_SECS");
    else if (times->drain_timeout_ms >= times->shutdown_timeout_ms)
        times->drain_timeout_ms = times->shutdown_timeout_ms - 1000;
    if (config->proxy_port == config->admin_port && config->proxy_port != 0)
        complain(draft, "THOUGHTGATE_ADMIN_PORT", NULL, NULL,
                 "must not be the proxy's port (THOUGHTGATE_OUTBOUND_PORT)");
}

void environment_apply(const struct draft *draft)
{
    for (size_t i = 0; i < environment_count; i++) {
        const struct variable *variable = &environment_table[i];
        switch (variable->kind) {
        case VARIABLE_NUMBER:
            apply_number(draft, variable);
            break;
        case VARIABLE_ADDRESS:
            apply_address(draft, variable);
            break;
        case VARIABLE_TEXT:
            apply_text(draft, variable);
            break;
        case VARIABLE_FORCE_REQUIRED:
            apply_force_required(draft, variable);
            break;
        case VARIABLE_UPSTREAM:
            apply_upstream(draft, variable);
            break;
        case VARIABLE_REFUSED:
            apply_refused(draft, variable);
            break;
        case VARIABLE_WITHOUT_EFFECT:
            if (value_of(draft, variable->spellings[0].name))
                warn(draft, variable->spellings[0].name, NULL, variable->help,
                     "the variable has no effect");
            break;
        case VARIABLE_ELSEWHERE:
            break;
        }
    }
    check_invariants(draft);
}
