/* Arguments as people write them in YAML, made the JSON that would come over the wire. */
#include "policy_test.h"
#include "taskgate/json/text.h"

/* Whether JSON reads the plain text as something that is no string. */
static bool is_json_scalar(const struct node *node)
{
    return node->is_plain && json_check(str_from(node->text), NULL) &&
           json_type(str_from(node->text)) >= JSON_NUMBER;
}

void test_value_write(struct buffer *out, const struct node *node)
{
    if (node->kind == NODE_TEXT) {
        if (node_is_null(node))
            buffer_append_text(out, "null");
        else if (is_json_scalar(node))
            buffer_append(out, str_trim(str_from(node->text)));
        else
            buffer_append_json_string(out, str_from(node->text));
        return;
    }
    bool is_list = node->kind == NODE_LIST;
    buffer_append_char(out, is_list ? '[' : '{');
    for (size_t i = 0; i < node->count; i++) {
        buffer_append_text(out, i > 0 ? "," : "");
        if (!is_list) {
            buffer_append_json_string(out, str_from(node->keys[i]->text));
            buffer_append_char(out, ':');
        }
        test_value_write(out, node->values[i]);
    }
    buffer_append_char(out, is_list ? ']' : '}');
}
