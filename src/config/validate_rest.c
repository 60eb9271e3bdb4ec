/* Rules about everything else: the schema's number. */
#include "checks.h"
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
