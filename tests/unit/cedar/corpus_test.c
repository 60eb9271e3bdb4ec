/*
 * Runs every case of a folder of Cedar test data: decision, reasons, errors and parse
 * verdicts must be as written, and stay so when the policies are printed and read again. A file
 * with `requests` names its policies and entities, a file with `cases` holds texts and whether
 * they are accepted.
 *
 *     corpus_test FOLDER…
 */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"
#include "taskgate/policy/cedar.h"

#define OPEN_FOLDERS 16

static struct {
    const char *root;
    unsigned files, passed, failed;
} run;

static bool complain(const char *file, const char *what, struct str more)
{
    run.failed++;
    fprintf(stderr, "%s: %s%.*s\n", file, what, STR_ARGS(more));
    return false;
}

static bool read_file(const char *path, struct buffer *text)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    char block[65536];
    for (size_t count; (count = fread(block, 1, sizeof block, file)) > 0;)
        buffer_append(text, str_slice(block, count));
    fclose(file);
    return true;
}

/* A file that a test names stands beside it or under the root. */
static bool read_named(const char *test, struct str json, struct buffer *text)
{
    char *name = json_string_text(json, NULL);
    const char *slash = strrchr(test, '/');
    char *beside = memory_format("%.*s/%s", (int)(slash - test), test, name ? name : "");
    char *below = memory_format("%s/%s", run.root, name ? name : "");
    bool good = name && (read_file(beside, text) || read_file(below, text));
    free(below);
    free(beside);
    free(name);
    return good;
}

static bool contains(struct str list, struct str name)
{
    size_t position = 0;
    for (struct str element; json_next_element(list, &position, &element);)
        if (json_string_equals(element, name))
            return true;
    return false;
}

static bool same_policies(const struct cedar_response *response, struct str reasons,
                          struct str errors)
{
    if (response->reason_count != json_count(reasons) ||
        response->failure_count != json_count(errors))
        return false;
    for (size_t i = 0; i < response->reason_count; i++)
        if (!contains(reasons, cedar_policy_name(response->reasons[i])))
            return false;
    for (size_t i = 0; i < response->failure_count; i++)
        if (!contains(errors, cedar_policy_name(response->failures[i].policy)))
            return false;
    return true;
}

static void show(const struct cedar_response *response)
{
    fprintf(stderr, "  got %s, reasons", response->decision == CEDAR_ALLOW ? "allow" : "deny");
    for (size_t i = 0; i < response->reason_count; i++)
        fprintf(stderr, " %.*s", STR_ARGS(cedar_policy_name(response->reasons[i])));
    fprintf(stderr, ", errors");
    for (size_t i = 0; i < response->failure_count; i++) {
        struct buffer message;
        buffer_init(&message);
        cedar_failure_write(&response->failures[i], &message);
        fprintf(stderr, " %.*s (%.*s)", STR_ARGS(cedar_policy_name(response->failures[i].policy)),
                STR_ARGS(buffer_str(&message)));
        buffer_finish(&message);
    }
    fputc('\n', stderr);
}

static bool has_failed(const struct cedar_response *response, const struct cedar_policy *policy)
{
    for (size_t i = 0; i < response->failure_count; i++)
        if (response->failures[i].policy == policy)
            return true;
    return false;
}

/* As a scope that names an unknown principal does. */
static bool fails_in_scope(const struct cedar_failure *failure)
{
    struct cedar_position at = cedar_failure_position(failure);
    struct cedar_position policy = cedar_policy_position(failure->policy);
    return failure->code == CEDAR_FAILURE_UNKNOWN && at.line == policy.line &&
           at.column == policy.column;
}

/* The evaluation of every policy comes to the same as that of those which the index and the first
 * comparisons leave. Of an unknown principal it may have more to tell: a scope that names one is an
 * error before the condition is looked at. */
static bool shortcuts_change_nothing(const struct cedar_policies *policies,
                                     const struct cedar_entities *entities,
                                     struct cedar_request request)
{
    struct cedar_response by_shortcuts, of_all;
    cedar_response_init(&by_shortcuts);
    cedar_response_init(&of_all);
    cedar_authorize(policies, entities, &request, &by_shortcuts);
    request.without_shortcuts = true;
    cedar_authorize(policies, entities, &request, &of_all);
    bool same = by_shortcuts.decision == of_all.decision &&
                by_shortcuts.reason_count == of_all.reason_count &&
                (request.principal_is_unknown ? by_shortcuts.failure_count <= of_all.failure_count
                                              : by_shortcuts.failure_count == of_all.failure_count);
    for (size_t i = 0; same && i < of_all.reason_count; i++)
        same = by_shortcuts.reasons[i] == of_all.reasons[i];
    for (size_t i = 0; same && i < by_shortcuts.failure_count; i++)
        same = has_failed(&of_all, by_shortcuts.failures[i].policy);
    for (size_t i = 0; same && i < of_all.failure_count; i++)
        same = has_failed(&by_shortcuts, of_all.failures[i].policy) ||
               fails_in_scope(&of_all.failures[i]);
    cedar_response_finish(&of_all);
    cedar_response_finish(&by_shortcuts);
    return same;
}

static void run_request(const char *path, struct str json, const struct cedar_policies *policies,
                        const struct cedar_entities *entities, struct cedar_response *response)
{
    struct cedar_heap *heap = cedar_heap_create();
    struct cedar_request request;
    struct error error;
    if (!cedar_request_read_json(heap, json, &request, &error)) {
        complain(path, error.message, STR_EMPTY);
    } else {
        cedar_authorize(policies, entities, &request, response);
        bool allow = json_string_equals(json_member(json, "decision"), STR("allow"));
        if (allow == (response->decision == CEDAR_ALLOW) &&
            same_policies(response, json_member(json, "reason"), json_member(json, "errors"))) {
            run.passed++;
        } else {
            complain(path, "wanted ", json);
            show(response);
        }
        struct cedar_request unknown = request;
        unknown.principal_is_unknown = true;
        if (!shortcuts_change_nothing(policies, entities, request) ||
            !shortcuts_change_nothing(policies, entities, unknown))
            complain(path, "shortcuts change the outcome of ", json);
    }
    cedar_heap_destroy(heap);
}

static struct cedar_policies *parse(struct str text, struct buffer *problems)
{
    struct cedar_source source = {.name = "policies", .text = text};
    return cedar_policies_parse(&source, 1, problems);
}

/* Prints the policies and reads them again; NULL, complained of, when that cannot be done. */
static struct cedar_policies *reprint(const char *path, const struct cedar_policies *policies)
{
    struct buffer text, again, problems;
    buffer_init(&text);
    buffer_init(&again);
    buffer_init(&problems);
    cedar_policies_print(policies, &text);
    struct cedar_policies *printed = parse(buffer_str(&text), &problems);
    if (printed)
        cedar_policies_print(printed, &again);
    if (!printed)
        complain(path, "printed policies: ", buffer_str(&problems));
    else if (!str_equal(buffer_str(&text), buffer_str(&again)))
        complain(path, "printed twice it differs: ", buffer_str(&again));
    buffer_finish(&problems);
    buffer_finish(&again);
    buffer_finish(&text);
    return printed;
}

static void run_policies(const char *path, struct str test, const struct cedar_policies *policies,
                         const struct cedar_entities *entities)
{
    struct cedar_response response;
    cedar_response_init(&response);
    struct cedar_policies *printed = reprint(path, policies);
    size_t position = 0;
    for (struct str request;
         json_next_element(json_member(test, "requests"), &position, &request);) {
        run_request(path, request, policies, entities, &response);
        if (printed)
            run_request(path, request, printed, entities, &response);
    }
    cedar_policies_destroy(printed);
    cedar_response_finish(&response);
}

static void run_requests(const char *path, struct str test, struct str policy_text,
                         struct str entity_text)
{
    struct buffer problems;
    buffer_init(&problems);
    struct cedar_policies *policies = parse(policy_text, &problems);
    struct cedar_source source = {.name = "entities", .text = entity_text};
    struct cedar_entities *entities = cedar_entities_parse(&source, &problems);
    if (!policies || !entities)
        complain(path, "", buffer_str(&problems));
    else
        run_policies(path, test, policies, entities);
    cedar_entities_destroy(entities);
    cedar_policies_destroy(policies);
    buffer_finish(&problems);
}

/* Each form is decided alone, and only if both are read. */
static void run_form(const char *path, struct str form, const struct cedar_policies *policies,
                     struct cedar_response *response)
{
    struct buffer problems, list;
    buffer_init(&problems);
    buffer_init(&list);
    bool accept = json_type(json_member(form, "accept")) == JSON_TRUE;
    struct str request = json_member(form, "request");
    buffer_append_format(&list, "[%.*s]", STR_ARGS(request));
    struct cedar_source of_entities = {.name = "entities", .text = json_member(form, "entities")};
    struct cedar_source of_requests = {.name = "requests", .text = buffer_str(&list)};
    struct cedar_entities *entities = cedar_entities_parse(&of_entities, &problems);
    struct cedar_requests *requests = cedar_requests_parse(&of_requests, &problems);
    if ((entities && requests) != accept)
        complain(path, accept ? "should be read: " : "should be refused: ", form);
    else if (accept)
        run_request(path, request, policies, entities, response);
    else
        run.passed++;
    cedar_requests_destroy(requests);
    cedar_entities_destroy(entities);
    buffer_finish(&list);
    buffer_finish(&problems);
}

static void run_forms(const char *path, struct str forms, struct str policy_text)
{
    struct buffer problems;
    struct cedar_response response;
    buffer_init(&problems);
    cedar_response_init(&response);
    struct cedar_policies *policies = parse(policy_text, &problems);
    size_t position = 0;
    if (!policies)
        complain(path, "", buffer_str(&problems));
    for (struct str form; policies && json_next_element(forms, &position, &form);)
        run_form(path, form, policies, &response);
    cedar_policies_destroy(policies);
    cedar_response_finish(&response);
    buffer_finish(&problems);
}

static void run_cases(const char *path, struct str cases)
{
    size_t position = 0;
    for (struct str one; json_next_element(cases, &position, &one);) {
        size_t length;
        char *text = json_string_text(json_member(one, "text"), &length);
        struct buffer problems;
        buffer_init(&problems);
        struct cedar_policies *policies = parse(str_slice(text, length), &problems);
        bool accept = json_type(json_member(one, "accept")) == JSON_TRUE;
        if (accept == (policies != NULL) && accept == (problems.length == 0))
            run.passed++;
        else
            complain(path, accept ? "should be accepted: " : "should be refused: ", one);
        if (policies)
            cedar_policies_destroy(reprint(path, policies));
        cedar_policies_destroy(policies);
        buffer_finish(&problems);
        free(text);
    }
}

static int visit(const char *path, const struct stat *status, int type, struct FTW *place)
{
    (void)status;
    (void)place;
    size_t length = strlen(path);
    if (type != FTW_F || length < 5 || strcmp(path + length - 5, ".json") != 0)
        return 0;
    struct buffer text, policies, entities;
    buffer_init(&text);
    buffer_init(&policies);
    buffer_init(&entities);
    struct error error;
    struct str test = STR_EMPTY;
    if (read_file(path, &text) && json_check(buffer_str(&text), &error))
        test = buffer_str(&text);
    else
        complain(path, "not JSON", STR_EMPTY);
    if (json_member(test, "cases").length) {
        run.files++;
        run_cases(path, json_member(test, "cases"));
    } else if (json_member(test, "forms").length) {
        run.files++;
        if (read_named(path, json_member(test, "policies"), &policies))
            run_forms(path, json_member(test, "forms"), buffer_str(&policies));
        else
            complain(path, "its policies cannot be read", STR_EMPTY);
    } else if (json_member(test, "requests").length) {
        run.files++;
        if (read_named(path, json_member(test, "policies"), &policies) &&
            read_named(path, json_member(test, "entities"), &entities))
            run_requests(path, test, buffer_str(&policies), buffer_str(&entities));
        else
            complain(path, "its policies or entities cannot be read", STR_EMPTY);
    }
    buffer_finish(&entities);
    buffer_finish(&policies);
    buffer_finish(&text);
    return 0;
}

int main(int count, char **arguments)
{
    for (int i = 1; i < count; i++) {
        run.root = arguments[i];
        if (nftw(arguments[i], visit, OPEN_FOLDERS, FTW_PHYS) != 0)
            complain(arguments[i], "cannot be walked", STR_EMPTY);
        printf("%s: %u files, %u cases passed, %u failed\n", arguments[i], run.files, run.passed,
               run.failed);
    }
    if (run.passed == 0)
        fprintf(stderr, "no case was found\n");
    return run.failed == 0 && run.passed > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
