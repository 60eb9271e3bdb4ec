/*
 * Files of entities and requests in Cedar's JSON form, a NUL between the two: a file is refused
 * exactly when a problem is reported, at a place inside it, and exactly when one of its items is
 * refused alone. Accepted requests can be decided, each time alike.
 */
#include <string.h>

#include "fuzz.h"
#include "taskgate/core/buffer.h"
#include "taskgate/json/text.h"
#include "taskgate/policy/cedar.h"

static const char policies_text[] =
    "permit(principal, action, resource) when { principal in resource };"
    "permit(principal, action, resource) when { principal has a && principal.a == context };"
    "permit(principal, action, resource) when { resource.hasTag(\"t\") && action in principal };"
    "forbid(principal, action, resource) when { context.a.b < principal.c };";

/* Lines of "f:LINE:COLUMN: …" with lines that the text has; false when there are none. */
static bool check_problems(const struct buffer *problems, struct str text)
{
    struct str rest = buffer_str(problems), line, name, number;
    uint64_t lines = 1, at;
    for (size_t i = 0; i < text.length; i++)
        lines += text.bytes[i] == '\n';
    while (rest.length) {
        str_cut(rest, '\n', &line, &rest);
        if (str_ends_with(line, STR(" more problems")))
            continue;
        FUZZ_EXPECT(str_cut(line, ':', &name, &line) && str_equal(name, STR("f")));
        FUZZ_EXPECT(str_cut(line, ':', &number, &line) && str_to_u64(number, &at));
        FUZZ_EXPECT(at >= 1 && at <= lines);
        FUZZ_EXPECT(str_cut(line, ':', &number, &line) && str_to_u64(number, &at) && at >= 1);
        FUZZ_EXPECT(line.length > 1);
    }
    return problems->length > 0;
}

static struct cedar_entities *read_entities(struct str text)
{
    const struct cedar_source source = {.name = "f", .text = text};
    struct cedar_entities *second = cedar_entities_create();
    struct buffer problems;
    buffer_init(&problems);
    struct cedar_entities *entities = cedar_entities_parse(&source, &problems);
    bool good = cedar_entities_read_json(second, text, NULL) && cedar_entities_seal(second, NULL);
    FUZZ_EXPECT(good == (entities != NULL));
    FUZZ_EXPECT(check_problems(&problems, text) == !good);
    cedar_entities_destroy(second);
    buffer_finish(&problems);
    return entities;
}

/* Whether the requests are good one by one. */
static bool is_good(struct str text)
{
    if (!json_check(text, NULL))
        return false;
    struct str array = str_trim(text);
    if (json_type(array) == JSON_OBJECT)
        array = json_member(array, "requests");
    if (json_type(array) != JSON_ARRAY)
        return false;
    struct cedar_heap *heap = cedar_heap_create();
    struct cedar_request request;
    bool good = true;
    size_t position = 0;
    for (struct str one; good && json_next_element(array, &position, &one);)
        good = cedar_request_read_json(heap, one, &request, NULL);
    cedar_heap_destroy(heap);
    return good;
}

static struct cedar_requests *read_requests(struct str text)
{
    const struct cedar_source source = {.name = "f", .text = text};
    struct buffer problems;
    buffer_init(&problems);
    struct cedar_requests *requests = cedar_requests_parse(&source, &problems);
    FUZZ_EXPECT(is_good(text) == (requests != NULL));
    FUZZ_EXPECT(check_problems(&problems, text) == !requests);
    buffer_finish(&problems);
    return requests;
}

static void decide(const struct cedar_entities *entities, const struct cedar_requests *requests)
{
    const struct cedar_source source = {.name = "f",
                                        .text = {policies_text, sizeof policies_text - 1}};
    struct buffer problems;
    struct cedar_response first, second;
    buffer_init(&problems);
    cedar_response_init(&first);
    cedar_response_init(&second);
    struct cedar_policies *policies = cedar_policies_parse(&source, 1, &problems);
    FUZZ_EXPECT(policies);
    for (size_t i = 0; i < cedar_requests_count(requests); i++) {
        cedar_authorize(policies, entities, cedar_requests_at(requests, i), &first);
        cedar_authorize(policies, entities, cedar_requests_at(requests, i), &second);
        FUZZ_EXPECT(first.decision == second.decision);
        FUZZ_EXPECT(first.reason_count == second.reason_count);
        FUZZ_EXPECT(first.failure_count == second.failure_count);
    }
    cedar_policies_destroy(policies);
    cedar_response_finish(&second);
    cedar_response_finish(&first);
    buffer_finish(&problems);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str entities_text, requests_text;
    str_cut(str_slice((const char *)data, size), '\0', &entities_text, &requests_text);
    struct cedar_entities *entities = read_entities(entities_text);
    struct cedar_requests *requests = read_requests(requests_text);
    if (entities && requests)
        decide(entities, requests);
    cedar_requests_destroy(requests);
    cedar_entities_destroy(entities);
    return 0;
}
