/*
 * The profile of a client: its key, and what it knows, from its session, its token and the
 * configuration. Any thread; functions with a call belong to the call's loop.
 */
#pragma once

#include "call.h"

#define CLIENT_KEY_BYTES 256

/* ---- the key of a client: one session of one source, or one token where there is no session; ""
 * for a client that has neither, and then nothing is kept for it ---- */
void client_key_of_session(const struct config_source *source, const char *session, char key[]);
void client_key_of_call(const struct call *call, char key[]); /* after call_identify() */
/* The same for all sessions of the call's owner; "" for an anonymous one. */
void client_key_of_owner(const struct call *call, char key[]);
void client_key_of_task(const struct task *task, char key[]);
void client_key_of_task_owner(const struct task *task, char key[]);
/* The same, but the task's id where its client has no key. */
void client_key_or_id_of_task(const struct task *task, char key[]);

/* The beginning of the keys of all clients of a source. */
void client_key_prefix(const char *source, char prefix[]);

/* ---- what it knows; after call_with_facts(), or once its `initialize` was read ---- */
/* Whether its session has this version of the protocol or a later one. Versions are dates, which
 * compare as text. */
bool client_has_version(const struct call *call, const char *version);
/* The one question about a client and tasks. A tasks client of the legacy era is one of
 * `clients[].tasks: yes` or, unless that says `no`, one that declared tasks and negotiated
 * 2025-11-25 or later; in the modern era it is one whose request declares the extension. Any other
 * client is a plain client: it calls as without the gateway, and what a human must approve is held
 * for it. */
bool client_knows_tasks(const struct call *call);
/* Whether the client is shown the gateway's own tools: it is a plain client, unless
 * `pseudo_tools.mode` says otherwise. */
bool client_is_shown_tools(const struct call *call);
/* Whether a call of the client's that no rule holds may become a task: it is a plain client of the
 * legacy era, and `pseudo_tools.promote` lets it. */
bool client_may_be_promoted(const struct call *call);
/* A client without a session is known by its owner alone: any such client of the owner counts,
 * since the gateway started. */
void client_remember_without_session(struct call *call); /* once its `initialize` was read */
/* False when none of them has initialized since then, and when the call has a session. */
bool client_find_without_session(const struct call *call, struct session_facts *facts);
/* How long a call of the client is held before it is told what is pending: `clients[].wait`, else
 * as `pseudo_tools` has it for a client that hears of progress meanwhile, or does not. */
int64_t client_wait_ms(const struct call *call, bool hears);
/* `clients[].wait`, or 0. */
int64_t client_own_wait_ms(const struct call *call);

/* The status shown for a task that waits for approval. */
enum dialect_pending client_pending_look(const struct call *call);

/* ---- the gateway's own tools, by the configuration and the catalogue ---- */
/* Whether the server has a tool of this name, by the list of the call's owner. Lists of other
 * owners change nothing. After call_identify(). */
bool client_server_has_tool(const struct call *call, struct str name);
/* Whether clients of the call's era are offered the tool. */
bool client_era_has_tool(const struct call *call, enum config_pseudo_tool tool);
/* The tool of ours that the call names; PSEUDO_TOOL_COUNT if it names none. A name that the server
 * has is the server's. A name with our prefix is always ours. */
enum config_pseudo_tool client_own_tool_called(struct call *call);

/* ---- the extensions of its server ---- */
/* Writes a result of `initialize` or `server/discover` without the extensions that the client may
 * not see: those that neither the table nor `extensions.allow` names, those that `extensions.deny`
 * names, and those that are not bridged. The first two are logged, once each, and counted. */
void client_write_extensions(struct call *call, struct str result, struct buffer *out);

/* The client as operators see it: its name, and enough of the owner's digest to tell two apart. The
 * caller frees it. */
char *client_describe(const struct call *call);
