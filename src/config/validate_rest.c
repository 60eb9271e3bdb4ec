/* Rules about everything else: the schema's number, telemetry. */
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
