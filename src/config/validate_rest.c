/* Rules about everything else: the schema's number, and the places of methods. */
#include "checks.h"
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

/* A layer above knows the methods on which they have no effect. */
void validate_methods(const struct draft *draft)
{
    const struct node *allow = node_get(node_get(draft->root, "methods"), "allow");
    size_t count = draft->config->methods_allow.count;
    draft->config->methods_allow_at = memory_alloc_array(count, sizeof(struct config_place));
    for (size_t i = 0; allow && i < count && i < allow->count; i++) {
        struct place place = source_text_place(draft->report.source, allow->values[i]->start);
        draft->config->methods_allow_at[i] = (struct config_place){place.line, place.column};
    }
}
