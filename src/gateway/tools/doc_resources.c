/* Writing the diagrams: the fixed ones from their strings, ours from the table of moves. */
#include "doc_resources.h"

#include <string.h>

#include "call/client_profile.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/question.h"
#include "taskgate/task/task.h"
#include "tools.h"

/* The five fixed diagrams (behaviour 5.12): clients compare and render these strings.
 * The names of tools in them are those of tools/tools.h. */

static const struct diagram {
    const char *name, *description, *mermaid;
} seed[] = {
    {"proxy_task_states", "State machine for proxy tasks created when tool calls exceed timeout",
     "stateDiagram-v2\n"
     "    [*] --> working : [[{execute_tool} timeout expires||Timeout expires]]\n"
     "\n"
     "    working --> completed : Final server returns result\n"
     "    working --> failed : Final server returns error\n"
     "    working --> failed : Final server disconnects\n"
     "    working --> cancelled : Client [[calls {cancel_task}||cancels]]\n"
     "    working --> expired : TTL exceeded\n"
     "\n"
     "    completed --> [*] : Cleaned up after retention period\n"
     "    failed --> [*] : Cleaned up after retention period\n"
     "    cancelled --> [*] : Cleaned up after retention period\n"
     "    expired --> [*] : Cleaned up immediately"},
    {"pending_elicitation_states",
     "State machine for elicitation requests from final servers awaiting client response",
     "stateDiagram-v2\n"
     "    [*] --> pending : Final server sends " MCP_ELICIT "\n"
     "\n"
     "    pending --> accepted : Client [[calls {respond_to_elicitation}||answers ]](action: "
     "accept)\n"
     "    pending --> declined : Client [[calls {respond_to_elicitation}||answers ]](action: "
     "decline)\n"
     "    pending --> cancelled : Client [[calls {respond_to_elicitation}||answers ]](action: "
     "cancel)\n"
     "    pending --> expired : Timeout reached (default 10 min)\n"
     "    pending --> rejected : Final server disconnects\n"
     "\n"
     "    accepted --> [*] : Response sent to final server\n"
     "    declined --> [*] : Response sent to final server\n"
     "    cancelled --> [*] : Response sent to final server\n"
     "    expired --> [*] : Error sent to final server\n"
     "    rejected --> [*] : Error (server gone)\n"
     "\n"
     "    note right of pending\n"
     "        Elicitation blocks the final server's operation\n"
     "        until client responds. The client sees it via\n"
     "        [[{await_activity} or {get_elicitations}||{await_activity}||{get_elicitations}"
     "||any answer]].\n"
     "    end note"},
    {"pending_sampling_states",
     "State machine for sampling requests from final servers awaiting LLM completion",
     "stateDiagram-v2\n"
     "    [*] --> pending : Final server sends " MCP_SAMPLE "\n"
     "\n"
     "    pending --> completed : Client [[calls {respond_to_sampling}||answers]]\n"
     "    pending --> expired : Timeout reached\n"
     "    pending --> rejected : Final server disconnects\n"
     "\n"
     "    completed --> [*] : Response sent to final server\n"
     "    expired --> [*] : Error sent to final server\n"
     "    rejected --> [*] : Error (server gone)"},
    {"tool_call_lifecycle", "Flow showing how tool calls are promoted to tasks on timeout",
     "stateDiagram-v2\n"
     "    [*] --> in_flight : [[{execute_tool} called||Tool called]]\n"
     "\n"
     "    in_flight --> returned_result : Completes within timeout\n"
     "    in_flight --> promoted_to_task : Timeout expires\n"
     "\n"
     "    returned_result --> [*] : Result returned to client (no task created)\n"
     "\n"
     "    promoted_to_task --> task_working : Task created\n"
     "\n"
     "    state task_working {\n"
     "        [*] --> waiting\n"
     "        waiting --> completed : Result received\n"
     "        waiting --> failed : Error received\n"
     "    }"},
    {"entity_relationships", "Overview of all proxy entities and how they interact",
     "flowchart TB\n"
     "    subgraph \"Original Client\"\n"
     "        OC[Client Tools]\n"
     "    end\n"
     "\n"
     "    subgraph \"MCP Proxy\"\n"
     "        Tasks[(Proxy Tasks)]\n"
     "        Elicit[(Pending Elicitations)]\n"
     "        Sampling[(Pending Sampling)]\n"
     "        Notif[(Buffered Notifications)]\n"
     "        Logs[(Buffered Logs)]\n"
     "    end\n"
     "\n"
     "    subgraph \"Final Servers\"\n"
     "        FS1[Server 1]\n"
     "        FS2[Server 2]\n"
     "    end\n"
     "\n"
     "    OC -->|[[{execute_tool}||call]]| Tasks\n"
     "    OC -->|[[{respond_to_elicitation}||answer]]| Elicit\n"
     "    OC -->|[[{respond_to_sampling}||answer]]| Sampling\n"
     "    OC -->|[[{await_activity}||wait]]| Tasks & Elicit & Sampling & Notif & Logs\n"
     "\n"
     "    FS1 -->|" MCP_ELICIT "| Elicit\n"
     "    FS1 -->|" MCP_SAMPLE "| Sampling\n"
     "    FS1 -->|notifications/*| Notif\n"
     "    FS1 -->|logging/message| Logs\n"
     "    FS2 -->|" MCP_ELICIT "| Elicit\n"
     "    FS2 -->|" MCP_SAMPLE "| Sampling"},
};

bool doc_resources_are_offered(const struct call *call)
{
    return !client_knows_tasks(call);
}

bool doc_resources_replace(const struct call *call, struct str error)
{
    struct str code = json_member(error, "code");
    return doc_resources_are_offered(call) && str_equal(code, STR("-32601"));
}

static void write_diagram(struct buffer *out, const struct diagram *diagram, struct str mermaid)
{
    buffer_append_text(out, out->bytes[out->length - 1] == '[' ? "{" : ",{");
    json_add_text(out, "name", diagram->name);
    json_add_text(out, "description", diagram->description);
    json_add_str(out, "mermaid", mermaid);
    buffer_append_char(out, '}');
}

static void write_seed(const struct call *call, struct buffer *out)
{
    for (size_t i = 0; i < sizeof seed / sizeof *seed; i++) {
        OWNED_BUFFER(mermaid);
        pseudo_tools_write_text(call, seed[i].mermaid, &mermaid);
        write_diagram(out, &seed[i], buffer_str(&mermaid));
    }
}

/* ---- ours ---- */

#define FIRST_LINES                                                                                \
    "stateDiagram-v2\n"                                                                            \
    "    [*] --> %s : a rule says approve\n"                                                       \
    "    [*] --> %s : a rule says forward, and the call asks for a task\n"                         \
    "    [*] --> %s : a forwarded call outlasts its client's patience\n"

/* How a state is called in one of our two diagrams. */
typedef const char *(*state_name)(enum task_state state);

static const char *client_status(enum task_state state)
{
    return dialect_status(state, DIALECT_PENDING_INPUT_REQUIRED);
}

/* Whether an earlier state of the enum has the same name; the diagram has it only once then. */
static bool doc_resources_is_repeated(state_name name, enum task_state state)
{
    for (unsigned i = 0; i < (unsigned)state; i++) {
        if (strcmp(name((enum task_state)i), name(state)) == 0)
            return true;
    }
    return false;
}

static void doc_resources_append_line(struct buffer *lines, const char *from, const char *to,
                                      const char *label)
{
    OWNED_BUFFER(line);
    buffer_append_format(&line, label[0] ? "    %s --> %s : %s\n" : "    %s --> %s\n", from, to,
                         label);
    if (!memmem(lines->bytes, lines->length, line.bytes, line.length))
        buffer_append(lines, buffer_str(&line));
}

static void write_moves(struct buffer *out, state_name name)
{
    size_t position = 0;
    struct task_move move;
    buffer_append_format(out, FIRST_LINES, name(TASK_PENDING), name(TASK_APPROVED),
                         name(TASK_EXECUTING));
    while (task_next_move(&position, &move)) {
        if (strcmp(name(move.from), name(move.to)) != 0)
            doc_resources_append_line(out, name(move.from), name(move.to), move.name);
    }
    for (unsigned i = 0; i < TASK_STATE_COUNT; i++) {
        enum task_state state = (enum task_state)i;
        if (task_state_is_terminal(state) && !doc_resources_is_repeated(name, state))
            doc_resources_append_line(out, name(state), "[*]", "");
    }
    out->length--; /* the last line has no end, as in the fixed ones */
}

static void write_own(const struct call *call, struct buffer *out)
{
    static const struct {
        struct diagram diagram;
        state_name state_name;
    } rows[] = {
        {{"task_states",
          "The states of a task inside the gateway, and the decision behind each move", NULL},
         task_state_name},
        {{"task_statuses", "The status of a task in tasks/get, for each state", NULL},
         client_status},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        OWNED_BUFFER(mermaid);
        write_moves(&mermaid, rows[i].state_name);
        write_diagram(out, &rows[i].diagram, buffer_str(&mermaid));
    }
}

/* ---- the resources ---- */

static const struct {
    const char *uri, *name, *description;
    void (*write)(const struct call *call, struct buffer *out);
} resources[] = {
    {"emceepee://diagrams", "diagrams",
     "State and flow diagrams (Mermaid) of calls that outlast a client's patience", write_seed},
    {"taskgate://diagrams", "taskgate-diagrams",
     "State diagrams (Mermaid) of this gateway's tasks, made from its own table of moves",
     write_own},
};
#define RESOURCE_COUNT (sizeof resources / sizeof *resources)

static size_t find(struct str uri)
{
    size_t i = 0;
    while (i < RESOURCE_COUNT && !str_equal(uri, str_from(resources[i].uri)))
        i++;
    return i;
}

bool doc_resources_have(struct str uri)
{
    return find(uri) < RESOURCE_COUNT;
}

void doc_resources_write_entries(struct buffer *out)
{
    for (size_t i = 0; i < RESOURCE_COUNT; i++) {
        buffer_append_text(out, i > 0 ? ",{" : "{");
        json_add_text(out, "uri", resources[i].uri);
        json_add_text(out, "name", resources[i].name);
        json_add_text(out, "description", resources[i].description);
        json_add_text(out, "mimeType", "application/json");
        buffer_append_char(out, '}');
    }
}

void doc_resources_write_contents(const struct call *call, struct buffer *out)
{
    struct str uri = call->envelope.uri.text;
    OWNED_BUFFER(text);
    buffer_append_text(&text, "{\"diagrams\":[");
    resources[find(uri)].write(call, &text);
    buffer_append_text(&text, "]}");
    buffer_append_text(out, "{\"contents\":[{");
    json_add_str(out, "uri", uri);
    json_add_text(out, "mimeType", "application/json");
    json_add_str(out, "text", buffer_str(&text));
    buffer_append_text(out, "}]}");
}
