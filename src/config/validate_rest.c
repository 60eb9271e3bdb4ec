/* Rules about everything else: the schema's number, operators' tokens, telemetry. */
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "taskgate/core/digest.h"
#include "taskgate/core/memory.h"
#include "validate.h"

static bool is_text(const struct node *node)
{
    return node && node->kind == NODE_TEXT && !node_is_null(node);
}

void validate_schema(const struct draft *draft)
{
    const struct node *schema = node_get(draft->root, "schema");
    int64_t version;
    if (is_text(schema) && parse_integer(str_from(schema->text), &version) && version != 1)
        report_error(&draft->report, schema, "schema", "write schema: 1",
                     "schema version %lld is not supported", (long long)version);
}

void validate_telemetry(const struct draft *draft)
{
    const struct node *telemetry = node_get(draft->root, "telemetry");
    const struct node *batch = node_get(telemetry, "batch");
    const struct node *queue_node = node_get(batch, "max_queue_size");
    const struct node *export_node = node_get(batch, "max_export_batch_size");
    int64_t queue = 2048, export = 512;
    if (!telemetry)
        return;
    report_warning(&draft->report, telemetry, "telemetry", NULL,
                   "telemetry does not exist yet, the block has no effect");
    bool are_numbers =
        (!is_text(queue_node) || parse_integer(str_from(queue_node->text), &queue)) &&
        (!is_text(export_node) || parse_integer(str_from(export_node->text), &export));
    if (are_numbers && queue > 0 && export > queue)
        report_error(&draft->report, export_node ? export_node : queue_node,
                     "telemetry.batch.max_export_batch_size", "lower it, or raise max_queue_size",
                     "V-TEL-007 must not be above max_queue_size (%lld)", (long long)queue);
}

/* The secret of `token_env` as the digest that is compared with later. */
static void resolve_token(const struct draft *draft, const struct node *variable, const char *path,
                          struct config_token *token)
{
    const char *secret = draft->environment(variable->text);
    struct error error;
    if (!secret || !*secret) {
        report_error(&draft->report, variable, path, "set it to the token",
                     "V-014 the environment variable %s is not set", variable->text);
    } else if (!check_header_value(str_from(secret), &error) || strchr(secret, ' ')) {
        report_error(&draft->report, variable, path, NULL,
                     "the token in %s holds white space or control characters", variable->text);
    } else {
        digest_sha256_hex(str_from(secret), token->sha256);
    }
}

static void validate_token(const struct draft *draft, const struct node *node, size_t index)
{
    struct config_token *tokens = draft->config->tokens, *token = &tokens[index];
    const struct node *variable = node_get(node, "token_env");
    const struct node *digest = node_get(node, "token_sha256");
    struct error error;
    char *path = memory_format("admin.tokens[%zu]", index);
    char *variable_path = memory_format("%s.token_env", path);
    if (is_text(variable) == is_text(digest))
        report_error(&draft->report, node, path, NULL, "needs either token_env or token_sha256");
    else if (is_text(variable) && check_variable_name(str_from(variable->text), &error))
        resolve_token(draft, variable, variable_path, token);
    else if (is_text(digest) && check_sha256(str_from(digest->text), &error)) {
        for (size_t i = 0; digest->text[i]; i++)
            token->sha256[i] = (char)(digest->text[i] | 0x20); /* to lower case */
    }
    for (size_t i = 0; i < index; i++) {
        if (tokens[i].name && token->name && strcmp(tokens[i].name, token->name) == 0)
            report_error(&draft->report, node_get(node, "name"), path,
                         "decisions are recorded under it", "the name is taken by another token");
        if (*token->sha256 && strcmp(tokens[i].sha256, token->sha256) == 0)
            report_error(&draft->report, node, path, "each needs a token of its own",
                         "this is the token of admin.tokens[%zu] as well", i);
    }
    free(variable_path);
    free(path);
}

void validate_tokens(const struct draft *draft)
{
    const struct node *tokens = node_get(node_get(draft->root, "admin"), "tokens");
    for (size_t i = 0; i < draft->config->token_count; i++)
        validate_token(draft, tokens->values[i], i);
}
