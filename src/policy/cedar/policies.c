/* Policy sets: their texts, their parsing, and the properties of a policy. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guard.h"
#include "index.h"
#include "parser.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"

/* Policies: annotations, effect, scope, conditions; and the way to the next one behind an
 * error. */

/* ---- Annotations ----------------------------------------------------------------------- */

/* One annotation of a policy while they are read. */
struct annotation_link {
    struct annotation_link *next;
    struct annotation annotation;
};

static bool parse_annotation(struct parser *parser, struct annotation_link **annotations)
{
    parser_advance(parser); /* the "@" */
    struct token name = parser->token;
    struct annotation_link *link = arena_alloc(&parser->lists, sizeof *link);
    *link = (struct annotation_link){.annotation = {.name = name.text}};
    /* Any word will do here, a reserved one too. */
    if (!parser_expect(parser, TOKEN_WORD, "the name of an annotation"))
        return false;
    if (parser_take(parser, TOKEN_OPEN_PARENTHESIS) &&
        (!parse_string(parser, &link->annotation.value, "the annotation's value in quotes") ||
         !parser_expect(parser, TOKEN_CLOSE_PARENTHESIS, "\")\"")))
        return false;
    struct annotation_link **end = annotations;
    for (; *end; end = &(*end)->next)
        if (str_equal((*end)->annotation.name, name.text)) {
            parser_note(parser, name.offset, "the annotation \"%.*s\" stands twice",
                        STR_ARGS(name.text));
            return true;
        }
    *end = link;
    return true;
}

static bool parse_annotations(struct parser *parser, struct cedar_policy *policy)
{
    struct annotation_link *links = NULL;
    while (parser->token.kind == TOKEN_AT)
        if (!parse_annotation(parser, &links))
            return false;
    for (struct annotation_link *link = links; link; link = link->next)
        policy->annotation_count++;
    struct annotation *annotations =
        arena_alloc_array(parser->arena, policy->annotation_count, sizeof *annotations);
    policy->annotations = annotations;
    for (struct annotation_link *link = links; link; link = link->next)
        *annotations++ = link->annotation;
    return true;
}

/* ---- Scope ----------------------------------------------------------------------------- */

static bool parse_scope_entity(struct parser *parser, struct operand_list *entities);

/* Parentheses do not change the meaning of their content. */
static bool parse_in_parentheses(struct parser *parser, struct operand_list *entities,
                                 bool (*parse)(struct parser *, struct operand_list *))
{
    if (parser->nesting == CEDAR_MAX_NESTING) {
        parser_note(parser, parser->token.offset, "parentheses nested deeper than %d",
                    CEDAR_MAX_NESTING);
        return false;
    }
    parser->nesting++;
    parser_advance(parser);
    bool good = parse(parser, entities) && parser_expect(parser, TOKEN_CLOSE_PARENTHESIS, "\")\"");
    ASSERT_NUMBERS(parser->nesting, >, 0);
    parser->nesting--;
    return good;
}

static bool parse_scope_entity(struct parser *parser, struct operand_list *entities)
{
    if (parser->token.kind == TOKEN_OPEN_PARENTHESIS)
        return parse_in_parentheses(parser, entities, parse_scope_entity);
    uint32_t offset = parser->token.offset;
    if (parser->token.kind != TOKEN_WORD)
        return parser_unexpected(parser, "an entity: TYPE::\"id\"");
    struct str path;
    const struct cedar_uid *entity;
    if (!parse_path(parser, &path, &entity))
        return false;
    if (!entity)
        return parser_unexpected(parser, "\"::\" and an id in quotes");
    struct node *node = node_make_constant(
        parser, offset, (struct cedar_value){.kind = CEDAR_ENTITY, .entity = entity});
    operands_append(parser, entities, node, STR_EMPTY);
    return true;
}

static bool parse_scope_entities(struct parser *parser, struct operand_list *entities)
{
    if (parser->token.kind == TOKEN_OPEN_PARENTHESIS)
        return parse_in_parentheses(parser, entities, parse_scope_entities);
    if (!parser_take(parser, TOKEN_OPEN_BRACKET))
        return parse_scope_entity(parser, entities);
    while (!parser_take(parser, TOKEN_CLOSE_BRACKET)) {
        if (!parse_scope_entity(parser, entities))
            return false;
        if (!parser_take(parser, TOKEN_COMMA) && parser->token.kind != TOKEN_CLOSE_BRACKET)
            return parser_unexpected(parser, "\",\" or \"]\"");
    }
    return true;
}

static void keep_entities(struct parser *parser, const struct operand_list *list,
                          struct scope *scope)
{
    const struct cedar_uid **entities =
        arena_alloc_array(parser->arena, list->count, sizeof(struct cedar_uid *));
    for (struct operand *operand = list->first; operand; operand = operand->next)
        entities[scope->count++] = operand->node->constant.entity;
    scope->entities = entities;
}

static bool parse_principal_or_resource(struct parser *parser, struct scope *scope)
{
    struct operand_list entities = {0};
    if (parser_take_word(parser, "is")) {
        scope->kind = SCOPE_IS;
        if (!parse_path(parser, &scope->type, NULL))
            return false;
        if (!parser_take_word(parser, "in"))
            return true;
        scope->kind = SCOPE_IS_IN;
    } else if (parser_take_word(parser, "in")) {
        scope->kind = SCOPE_IN;
    } else if (parser_take(parser, TOKEN_EQUAL)) {
        scope->kind = SCOPE_EQUAL;
    } else {
        return true;
    }
    if (!parse_scope_entity(parser, &entities))
        return false;
    keep_entities(parser, &entities, scope);
    return true;
}

static bool parse_action(struct parser *parser, struct scope *scope)
{
    struct operand_list entities = {0};
    if (parser_take(parser, TOKEN_EQUAL)) {
        scope->kind = SCOPE_EQUAL;
        if (!parse_scope_entity(parser, &entities))
            return false;
    } else if (parser_take_word(parser, "in")) {
        scope->kind = SCOPE_IN;
        if (!parse_scope_entities(parser, &entities))
            return false;
    } else {
        return true;
    }
    for (struct operand *operand = entities.first; operand; operand = operand->next)
        if (!type_is_action(operand->node->constant.entity->type))
            parser_note(parser, operand->node->offset, "this is no action; expected Action::\"…\"");
    keep_entities(parser, &entities, scope);
    return true;
}

static const char *const scope_ends[] = {
    "\",\", \"==\", \"in\" or \"is\" behind principal",
    "\",\", \"==\" or \"in\" behind action",
    "\")\", \"==\", \"in\" or \"is\" behind resource",
};

static bool parse_scope(struct parser *parser, struct cedar_policy *policy)
{
    static const char *const variables[] = {"principal", "action", "resource"};
    static const char *const expected[] = {"\"principal\"", "\"action\"", "\"resource\""};
    struct scope *scopes[] = {&policy->principal, &policy->action, &policy->resource};
    if (!parser_expect(parser, TOKEN_OPEN_PARENTHESIS, "\"(\" and the scope"))
        return false;
    for (int i = 0; i < 3; i++) {
        if (!parser_take_word(parser, variables[i]))
            return parser_unexpected(parser, expected[i]);
        if (i == 1 ? !parse_action(parser, scopes[i])
                   : !parse_principal_or_resource(parser, scopes[i]))
            return false;
        bool comma = parser_take(parser, TOKEN_COMMA);
        if (!comma && (i < 2 || parser->token.kind != TOKEN_CLOSE_PARENTHESIS))
            return parser_unexpected(parser, scope_ends[i]);
    }
    return parser_expect(parser, TOKEN_CLOSE_PARENTHESIS, "\")\"");
}

/* ---- Conditions ------------------------------------------------------------------------ */

static const struct node *parse_condition(struct parser *parser)
{
    uint32_t offset = parser->token.offset;
    bool unless = parser_take_word(parser, "unless");
    if (!unless && !parser_take_word(parser, "when"))
        return parser_unexpected(parser, "\"when\", \"unless\" or \";\"");
    if (!parser_expect(parser, TOKEN_OPEN_BRACE, "\"{\""))
        return NULL;
    const struct node *node = parse_expression(parser);
    if (!node || !parser_expect(parser, TOKEN_CLOSE_BRACE, "\"}\" or an operator"))
        return NULL;
    return unless ? node_make_unary(parser, NODE_NOT, offset, node) : node;
}

/* One condition stands as an && too: its operand must be boolean. */
static bool parse_conditions(struct parser *parser, struct cedar_policy *policy)
{
    struct operand_list list = {0};
    uint32_t offset = parser->token.offset;
    while (parser->token.kind != TOKEN_SEMICOLON) {
        const struct node *condition = parse_condition(parser);
        if (!condition)
            return false;
        operands_append(parser, &list, condition, STR_EMPTY);
    }
    if (list.count == 0)
        return true;
    policy->condition = node_make(parser, NODE_AND, offset, &list);
    return policy->condition != NULL;
}

/* Reads one policy up to its semicolon. */
static struct cedar_policy *parse_policy(struct parser *parser)
{
    struct cedar_policy *policy = arena_alloc(parser->arena, sizeof *policy);
    *policy = (struct cedar_policy){.source = parser->source, .start = parser->token.offset};
    if (!parse_annotations(parser, policy))
        return NULL;
    if (parser_take_word(parser, "forbid"))
        policy->effect = CEDAR_FORBID;
    else if (!parser_take_word(parser, "permit"))
        return parser_unexpected(parser, "\"permit\" or \"forbid\"");
    if (!parse_scope(parser, policy) || !parse_conditions(parser, policy))
        return NULL;
    policy->end = parser->token.offset + 1;
    parser_advance(parser); /* the semicolon */
    return policy;
}

/* ---- Sources --------------------------------------------------------------------------- */

static void skip_policy(struct parser *parser)
{
    while (parser->token.kind != TOKEN_END && !parser_take(parser, TOKEN_SEMICOLON))
        parser_advance(parser);
}

void parse_source(struct parser *parser, struct cedar_policies *policies, size_t *capacity)
{
    parser->lexer = (struct lexer){.text = parser->source->text};
    parser_advance(parser);
    while (parser->token.kind != TOKEN_END) {
        parser->nesting = 0;
        arena_reset(&parser->lists);
        struct cedar_policy *policy = parse_policy(parser);
        if (!policy) {
            skip_policy(parser);
            continue;
        }
        if (policies->count == *capacity) {
            *capacity = *capacity ? *capacity * 2 : 64;
            policies->items =
                memory_grow_array(policies->items, *capacity, sizeof(struct cedar_policy *));
        }
        policies->items[policies->count++] = policy;
    }
}

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
    OWNED_BUFFER(problems);
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
    return good;
}
