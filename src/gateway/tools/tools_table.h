/*
 * The gateway's own tools, as a model reads of them: TOOL(symbol, title, effect, handler,
 * description, parameters…), in the order in which they are listed, with PARAMETER(name, type,
 * required, description, more…). Included by tools.c, and by methods/tools_call.c for the
 * handlers. Names of other tools are in the texts as tools.h has it.
 */
/* clang-format off */
TOOL(LIST_TASKS, "List tasks", READS, pseudo_tool_list_tasks,
     "List your tasks: tool calls that wait for a human's approval or that took too long to be answered at once. Shows those that are still working; ended ones too with include_completed or status.",
     PARAMETER("server", TEXT, false, "Only tasks of this server"),
     PARAMETER("status", TEXT, false, "Only tasks with this status", .choices = {"working", "completed", "failed", "cancelled", "expired"}),
     PARAMETER("include_completed", BOOLEAN, false, "Also list tasks that have ended", .default_json = "false"))
TOOL(GET_TASK, "Get a task", READS, pseudo_tool_get_task,
     "Look at one task without waiting: its status, what it waits for, and the questions that its server has for you.",
     PARAMETER("task_id", TEXT, true, "Id of the task, as the answer that created it says"))
TOOL(GET_TASK_RESULT, "Get a task's result", READS, pseudo_tool_get_task_result,
     "Wait until a task has ended and return the result of its tool call. If it is still working after timeout_ms, an error says so: call this again, the task goes on meanwhile. A result can be fetched more than once.",
     PARAMETER("task_id", TEXT, true, "Id of the task"),
     PARAMETER("timeout_ms", NUMBER, false, "Milliseconds to wait at most; without it for as long as the task may take. Stay below your own limit for a tool call, often 60000", .minimum = 0, .maximum = 86400000))
TOOL(CANCEL_TASK, "Cancel a task", CHANGES, pseudo_tool_cancel_task,
     "Cancel a task that is still working: withdraws a call that waits for approval, and stops one that runs as far as its server can.",
     PARAMETER("task_id", TEXT, true, "Id of the task"))
TOOL(AWAIT_ACTIVITY, "Wait for activity", READS, pseudo_tool_await_activity,
     "Wait until anything happens: a task ends, the server asks you something, or a notification comes. Returns at once when something has happened since you were last told, else at the latest after timeout_ms, with what happened, the tasks that are still working and the questions that wait for you. Better than asking for each task again and again.",
     PARAMETER("timeout_ms", NUMBER, false, "Milliseconds to wait at most", .minimum = 0, .maximum = 900000, .default_json = "30000"))
TOOL(EXECUTE_TOOL, "Call a tool with patience", CALLS, pseudo_tool_execute_tool,
     "Call a tool of a server and wait up to timeout_ms. If it takes longer, or needs a human's approval, you get a task id instead of the result[[; fetch the result later with {get_task_result}||, and the call goes on]].",
     PARAMETER("server", TEXT, true, "Name of the server[[, as {list_servers} gives it]]"),
     PARAMETER("tool", TEXT, true, "Name of the tool[[, as {list_tools} gives it]]"),
     PARAMETER("args", OBJECT, false, "Arguments of the tool"),
     PARAMETER("timeout_ms", NUMBER, false, "Milliseconds to wait for the result. Stay below your own limit for a tool call, often 60000. Without it at most two minutes, and less if your client does not ask for progress", .minimum = 0, .maximum = 900000))
TOOL(GET_ELICITATIONS, "Get questions for the user", READS, pseudo_tool_get_elicitations,
     "List the questions that servers ask the user and that are not answered yet. A call that asked one waits for the answer.")
TOOL(RESPOND_TO_ELICITATION, "Answer a question for the user", CHANGES, pseudo_tool_respond_to_elicitation,
     "Answer a question [[of {get_elicitations}||for the user]] with what the user said. Ask the user; do not make an answer up.",
     PARAMETER("request_id", TEXT, true, "requestId of the question"),
     PARAMETER("action", TEXT, true, "accept: the user answered; decline: the user said no; cancel: the user did not choose", .choices = {"accept", "decline", "cancel"}),
     PARAMETER("content", OBJECT, false, "With accept: the answer, as the question's requestedSchema has it"))
TOOL(CANCEL_ELICITATION_REQUEST, "Dismiss a question for the user", CHANGES, pseudo_tool_cancel_elicitation_request,
     "Dismiss a question [[of {get_elicitations}||for the user]] without an answer.",
     PARAMETER("request_id", TEXT, true, "requestId of the question"),
     PARAMETER("reason", TEXT, false, "Why", .default_json = "\"User cancelled\""))
TOOL(GET_SAMPLING_REQUESTS, "Get requests for a model", READS, pseudo_tool_get_sampling_requests,
     "List the texts that servers ask a model to write and that are not answered yet. A call that asked for one waits for it.")
TOOL(RESPOND_TO_SAMPLING, "Answer a request for a model", CHANGES, pseudo_tool_respond_to_sampling,
     "Answer a request [[of {get_sampling_requests}||for a model]] with what you write for it.",
     PARAMETER("request_id", TEXT, true, "requestId of the request"),
     PARAMETER("role", TEXT, true, "The speaker, as a rule assistant", .choices = {"user", "assistant"}),
     PARAMETER("content", TEXT, true, "The text"),
     PARAMETER("model", TEXT, true, "Name of the model that wrote it"),
     PARAMETER("stop_reason", TEXT, false, "Why the text ends", .choices = {"endTurn", "maxTokens", "stopSequence", "toolUse"}))
TOOL(CANCEL_SAMPLING_REQUEST, "Refuse a request for a model", CHANGES, pseudo_tool_cancel_sampling_request,
     "Refuse a request [[of {get_sampling_requests}||for a model]].",
     PARAMETER("request_id", TEXT, true, "requestId of the request"),
     PARAMETER("reason", TEXT, false, "Why", .default_json = "\"User cancelled\""))
TOOL(GET_NOTIFICATIONS, "Get notifications", READS, pseudo_tool_get_notifications,
     "Return the notifications that servers have sent since you last asked. Each is returned once.")
TOOL(GET_LOGS, "Get log messages", READS, pseudo_tool_get_logs,
     "Return log messages of servers, the newest last. Each is returned once.",
     PARAMETER("server", TEXT, false, "Only messages of this server"),
     PARAMETER("level", TEXT, false, "Only messages that are at least this grave", .choices = {"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}),
     PARAMETER("limit", NUMBER, false, "At most so many, the newest", .minimum = 1, .maximum = 500, .default_json = "100"))
TOOL(LIST_SERVERS, "List servers", READS, pseudo_tool_list_servers,
     "List the servers whose tools can be called here.")
TOOL(LIST_TOOLS, "List tools", READS, pseudo_tool_list_tools,
     "List the servers' tools with their input schemas.",
     PARAMETER("server", TEXT, false, "Regular expression (POSIX extended) on the server's name", .default_json = "\".*\""),
     PARAMETER("tool", TEXT, false, "Regular expression (POSIX extended) on the tool's name", .default_json = "\".*\""))
/* clang-format on */
