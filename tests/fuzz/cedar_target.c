/*
 * The reader of Cedar policies: the text of each accepted policy, read alone, gives the same
 * policy. A refusal has a place in the text. No text is both.
 */
#include <string.h>

#include "fuzz.h"
#include "taskgate/core/buffer.h"
#include "taskgate/policy/cedar.h"

static struct cedar_policies *parse(struct str text, struct buffer *problems)
{
    struct cedar_source source = {.name = "fuzz", .text = text};
    return cedar_policies_parse(&source, 1, problems);
}

static void print_alone(struct str text, struct buffer *out)
{
    struct buffer problems;
    buffer_init(&problems);
    struct cedar_policies *policies = parse(text, &problems);
    FUZZ_EXPECT(policies && problems.length == 0 && cedar_policies_count(policies) == 1);
    cedar_policies_print(policies, out);
    cedar_policies_destroy(policies);
    buffer_finish(&problems);
}

static void check_policy(const struct cedar_policies *policies, size_t index, struct str text)
{
    const struct cedar_policy *policy = cedar_policies_at(policies, index);
    struct str own = cedar_policy_text(policy), value;
    struct cedar_position position = cedar_policy_position(policy);
    struct buffer together, alone, name;
    buffer_init(&together);
    buffer_init(&alone);
    buffer_init(&name);
    FUZZ_EXPECT(own.length > 0 && own.length <= text.length && str_ends_with(own, STR(";")));
    FUZZ_EXPECT(position.line > 0 && position.column > 0);
    buffer_append_format(&name, "policy%zu", index);
    FUZZ_EXPECT(str_equal(cedar_policy_name(policy), buffer_str(&name)));
    FUZZ_EXPECT(!cedar_policy_annotation(policy, STR("id"), &value) || str_is_utf8(value));
    cedar_policy_print(policy, &together);
    print_alone(own, &alone);
    FUZZ_EXPECT(str_equal(buffer_str(&together), buffer_str(&alone)));
    buffer_finish(&name);
    buffer_finish(&alone);
    buffer_finish(&together);
}

static unsigned take_number(struct str *line)
{
    unsigned number = 0;
    while (line->length && line->bytes[0] >= '0' && line->bytes[0] <= '9') {
        number = number * 10 + (unsigned)(line->bytes[0] - '0');
        *line = str_slice(line->bytes + 1, line->length - 1);
    }
    return number;
}

/* fuzz:LINE:COLUMN: MESSAGE, in printable characters alone. */
static void check_problem(struct str line, size_t lines)
{
    for (size_t i = 0; i < line.length; i++)
        FUZZ_EXPECT((unsigned char)line.bytes[i] >= ' ');
    FUZZ_EXPECT(str_is_utf8(line));
    if (str_ends_with(line, STR(" more problems")))
        return;
    FUZZ_EXPECT(str_starts_with(line, STR("fuzz:")));
    line = str_slice(line.bytes + 5, line.length - 5);
    unsigned number = take_number(&line);
    FUZZ_EXPECT(number > 0 && number <= lines && str_starts_with(line, STR(":")));
    line = str_slice(line.bytes + 1, line.length - 1);
    FUZZ_EXPECT(take_number(&line) > 0 && str_starts_with(line, STR(": ")) && line.length > 2);
}

static void check_problems(struct str problems, struct str text)
{
    size_t lines = 1, count = 0;
    for (size_t i = 0; i < text.length; i++)
        lines += text.bytes[i] == '\n';
    FUZZ_EXPECT(str_ends_with(problems, STR("\n")));
    for (struct str line; problems.length; count++) {
        str_cut(problems, '\n', &line, &problems);
        check_problem(line, lines);
    }
    FUZZ_EXPECT(count > 0 && count <= 101);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = str_slice((const char *)data, size);
    struct buffer problems;
    buffer_init(&problems);
    struct cedar_policies *policies = parse(text, &problems);
    FUZZ_EXPECT((policies != NULL) == (problems.length == 0));
    if (!policies)
        check_problems(buffer_str(&problems), text);
    for (size_t i = 0; policies && i < cedar_policies_count(policies); i++)
        check_policy(policies, i, text);
    cedar_policies_destroy(policies);
    buffer_finish(&problems);
    return 0;
}
