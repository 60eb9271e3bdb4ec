/* Policy sets: their texts, their parsing, and the properties of a policy. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guard.h"
#include "index.h"
#include "parser.h"
#include "taskgate/core/memory.h"

/* Offsets are 32 bits; no policy file comes near. */
#define SOURCE_MAX_BYTES ((size_t)64 * 1024 * 1024)

static void name_policies(struct cedar_policies *policies)
{
    for (size_t i = 0; i < policies->count; i++) {
        char name[32];
        snprintf(name, sizeof name, "policy%zu", i);
        policies->items[i]->name = arena_copy(&policies->arena, str_from(name));
    }
}

/* Whether the text can be looked at; notes why not. */
static bool is_readable(struct parser *parser)
{
    struct str text = parser->source->text;
    if (text.length > SOURCE_MAX_BYTES) {
        parser_note(parser, 0, "the text is larger than %zu bytes", SOURCE_MAX_BYTES);
        return false;
    }
    if (str_is_utf8(text))
        return true;
    size_t good = 0, length = 0;
    do {
        good += length;
        for (length = 1; good + length < text.length &&
                         ((unsigned char)text.bytes[good + length] & 0xc0) == 0x80;)
            length++;
    } while (str_is_utf8(str_slice(text.bytes + good, length)));
    parser_note(parser, good, "this is not UTF-8");
    return false;
}

struct cedar_policies *cedar_policies_parse(const struct cedar_source *sources, size_t count,
                                            struct buffer *problems)
{
    struct cedar_policies *policies = memory_alloc(sizeof *policies);
    arena_init(&policies->arena);
    policies->sources = arena_alloc_array(&policies->arena, count, sizeof *policies->sources);
    struct parser parser = {
        .arena = &policies->arena, .problems = problems, .expression = parse_expression};
    arena_init(&parser.lists);
    size_t capacity = 0;
    for (size_t i = 0; i < count; i++) {
        struct source *source = &policies->sources[policies->source_count++];
        struct str name = arena_copy(&policies->arena, str_from(sources[i].name));
        char *terminated = arena_alloc(&policies->arena, name.length + 1);
        snprintf(terminated, name.length + 1, "%.*s", STR_ARGS(name));
        *source = (struct source){.name = terminated,
                                  .text = arena_copy(&policies->arena, sources[i].text)};
        parser.source = source;
        if (is_readable(&parser))
            parse_source(&parser, policies, &capacity);
    }
    arena_finish(&parser.lists);
    if (parser.problem_count > PROBLEMS_MAX)
        buffer_append_format(problems, "%u more problems\n", parser.problem_count - PROBLEMS_MAX);
    if (parser.problem_count > 0) {
        cedar_policies_destroy(policies);
        return NULL;
    }
    name_policies(policies);
    policies->index = policy_index_build(policies);
    policies->guards = guards_build(policies);
    return policies;
}

void cedar_policies_destroy(struct cedar_policies *policies)
{
    if (!policies)
        return;
    arena_finish(&policies->arena);
    free(policies->items);
    free(policies);
}

size_t cedar_policies_count(const struct cedar_policies *policies)
{
    return policies->count;
}

const struct cedar_policy *cedar_policies_at(const struct cedar_policies *policies, size_t index)
{
    return policies->items[index];
}

struct str cedar_policy_name(const struct cedar_policy *policy)
{
    return policy->name;
}

enum cedar_effect cedar_policy_effect(const struct cedar_policy *policy)
{
    return policy->effect;
}

bool cedar_policy_annotation(const struct cedar_policy *policy, struct str name, struct str *value)
{
    for (size_t i = 0; i < policy->annotation_count; i++) {
        if (!str_equal(policy->annotations[i].name, name))
            continue;
        *value = policy->annotations[i].value;
        return true;
    }
    return false;
}

struct cedar_position cedar_policy_position(const struct cedar_policy *policy)
{
    return source_position(policy->source, policy->start);
}

struct str cedar_policy_text(const struct cedar_policy *policy)
{
    return str_slice(policy->source->text.bytes + policy->start, policy->end - policy->start);
}

bool cedar_uid_parse(struct cedar_heap *heap, struct str text, struct cedar_uid *uid,
                     struct error *error)
{
    struct buffer problems;
    buffer_init(&problems);
    struct source source = {.name = "entity", .text = cedar_heap_copy(heap, text)};
    struct parser parser = {.arena = &heap->arena,
                            .expression = parse_expression,
                            .source = &source,
                            .problems = &problems,
                            .lexer = {.text = source.text}};
    const struct cedar_uid *entity = NULL;
    arena_init(&parser.lists);
    if (is_readable(&parser)) {
        struct str path;
        parser_advance(&parser);
        if (parse_path(&parser, &path, &entity) && (!entity || parser.token.kind != TOKEN_END))
            parser_unexpected(&parser, entity ? "the end" : "\"::\" and an id in quotes");
    }
    bool good = entity && parser.problem_count == 0;
    struct str first, rest;
    str_cut(buffer_str(&problems), '\n', &first, &rest); /* a sentence, not all that is wrong */
    if (good)
        *uid = *entity;
    else
        error_set(error, "%.*s", STR_ARGS(first));
    arena_finish(&parser.lists);
    buffer_finish(&problems);
    return good;
}
