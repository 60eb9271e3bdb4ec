/* Requests of servers to users and models: their kinds, and who can be asked them. */
#include "taskgate/mcp/question.h"

#include "taskgate/json/text.h"

enum mcp_question mcp_question_of(struct str message)
{
    struct str method = json_member(message, "method");
    if (json_string_equals(method, STR(MCP_ELICIT)))
        return json_string_equals(json_path(message, "params", "mode"), STR("url"))
                   ? MCP_QUESTION_URL
                   : MCP_QUESTION_FORM;
    if (json_string_equals(method, STR(MCP_SAMPLE)))
        return MCP_QUESTION_SAMPLING;
    if (json_string_equals(method, STR(MCP_LIST_ROOTS)))
        return MCP_QUESTION_ROOTS;
    return MCP_QUESTION_NONE;
}

/* An elicitation without modes is one of forms alone. */
static bool may_elicit(struct str elicitation, bool by_url)
{
    bool has_form = json_type(json_member(elicitation, "form")) == JSON_OBJECT;
    bool has_url = json_type(json_member(elicitation, "url")) == JSON_OBJECT;
    if (json_type(elicitation) != JSON_OBJECT)
        return false;
    return by_url ? has_url : has_form || !has_url;
}

bool mcp_may_ask(struct str capabilities, enum mcp_question question)
{
    switch (question) {
    case MCP_QUESTION_FORM:
    case MCP_QUESTION_URL:
        return may_elicit(json_member(capabilities, "elicitation"), question == MCP_QUESTION_URL);
    case MCP_QUESTION_SAMPLING:
        return json_type(json_member(capabilities, "sampling")) == JSON_OBJECT;
    case MCP_QUESTION_ROOTS:
        return json_type(json_member(capabilities, "roots")) == JSON_OBJECT;
    case MCP_QUESTION_NONE:
        break;
    }
    return false;
}

bool mcp_may_ask_all(struct str capabilities, struct str requests)
{
    struct str key, request;
    for (size_t position = 0; json_next_member(requests, &position, &key, &request);) {
        if (!mcp_may_ask(capabilities, mcp_question_of(request)))
            return false;
    }
    return true;
}

bool mcp_may_ask_any(struct str capabilities)
{
    for (enum mcp_question question = MCP_QUESTION_FORM; question < MCP_QUESTION_NONE; question++) {
        if (mcp_may_ask(capabilities, question))
            return true;
    }
    return false;
}

void mcp_write_input_required(struct buffer *out, struct str requests, struct str state)
{
    buffer_append_text(out, "{\"resultType\":\"input_required\",\"inputRequests\":");
    buffer_append(out, requests);
    if (state.length > 0)
        buffer_append_text(out, ",\"requestState\":");
    buffer_append(out, state);
    buffer_append_char(out, '}');
}
