// Every table of the store and every map in memory has a bound, of each principal and in all. One that is new must be listed here.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const read = (file) => fs.readFileSync(path.join(root, file), 'utf8');
const filesBelow = (folder) =>
  fs.readdirSync(path.join(root, folder), { recursive: true }).map((file) => `${folder}/${file}`).filter((file) => /\.[ch]$/.test(file));

/**
 * A bound is one of: `limits.KEY`, a key of the configuration; `NAME in FILE`, a constant there; `as NAME`, a row or entry for each
 * of another one of these lists; `configured`, no more than the configuration or the schema names; `operators`, made by operators
 * alone; `audited`, kept as the audit trail is; `kinds`, as SEEN_TABLES has it of each kind; `once`, one row; `unwritten`, of an older version that may run beside; `passing`, gone with the request or load that made it.
 * There is no `each` where clients are no principals.
 */
const isBound = (bound, listed) => {
  const [, name, file] = /^(\w+) in (\S+)$/.exec(bound) ?? [];
  if (file) return new RegExp(`\\b${name}\\b`).test(read(file));
  const [, key] = /^limits\.(\w+)$/.exec(bound) ?? [];
  if (key) return read('src/config/keys.c').includes(`{"limits", "${key}",`);
  const [, other] = /^as (\S+)$/.exec(bound) ?? [];
  if (other) return other in listed;
  return ['configured', 'operators', 'audited', 'kinds', 'once', 'unwritten', 'passing'].includes(bound);
};

const SESSIONS = 'src/store/session_operations.c';
const OUTBOX = { all: 'as task' };

/** By its name without `taskgate_`, in both databases. */
const TABLES = {
  task: { each: 'limits.pending_per_principal', all: 'limits.store_bytes' },
  task_request: { each: 'as task', all: 'as task' },
  task_outcome: { each: 'as task', all: 'as task' },
  task_claim: { each: 'as task', all: 'as task' },
  reminder: OUTBOX,
  outbox_thread: OUTBOX,
  outbox_notice: { all: 'NOTICE_RETENTION_MS in src/store/sweep.c' },
  outbox_delivery: { all: 'as outbox_notice' },
  outbox_target: { all: 'configured' },
  approval_grant: { all: 'operators' },
  grant: { all: 'operators' },
  block: { all: 'operators' },
  definition: { all: 'DEFINITIONS_MOST in include/taskgate/config/definitions.h' },
  limited: { each: 'as task', all: 'as task' },
  totals: { all: 'once' },
  audit: { all: 'limits.store_bytes' },
  tally: { each: 'TALLY_RETENTION_MS in src/store/sweep.c', all: 'limits.store_bytes' },
  audit_kept: { all: 'once' },
  audit_anchor: { all: 'audited' },
  session: { each: `KEPT_OF_OWNER in ${SESSIONS}`, all: `KEPT in ${SESSIONS}` },
  session_home: { each: 'as session', all: 'as session' },
  pair: { each: 'as session', all: `PAIRS_KEPT in ${SESSIONS}` },
  sign_in: { all: 'KEPT in src/store/sign_in_operations.c' },
  sign_in_attempt: { all: 'unwritten' },
  replica: { all: 'GONE_RETENTION_MS in src/store/replica_operations.c' },
  lease: { all: 'as replica' },
  hold: { all: 'once' },
  feed: { all: 'REPLICA_FEED_RETENTION_MS in src/store/replica.h' },
  mark: { all: 'as replica' },
  schema: { all: 'once' },
  probe: { all: 'once' },
};

const QUESTIONS = 'src/gateway/conversation/question_table.h';

/** By the file that makes it, and the member that has it. */
const MAPS = {
  'src/approval/terms.c known': { all: 'passing' },
  'src/core/budget.c shares': { each: 'limits.share_percent', all: 'limits.bodies_bytes' },
  'src/core/metrics.c all_series': { all: 'cap in src/core/metrics.c' },
  'src/core/metrics.c kept': { all: 'passing' },
  'src/core/metrics.c values': { all: 'cap in src/core/metrics.c' },
  'src/identity/exchanger.c trades': { all: 'MAX_UNDER_WAY in src/identity/exchanger.c' },
  'src/mcp/elicitation.c choices': { all: 'passing' },
  'src/mcp/elicitation.c map': { all: 'passing' },
  'src/notify/redact.c steps': { all: 'configured' },
  'src/policy/index.c counts': { all: 'passing' },
  'src/policy/pins.c sources': { all: 'configured' },
  'src/policy/pins.c names': { all: 'DEFINITIONS_MOST in include/taskgate/config/definitions.h' },
  'src/policy/policy.c force_required': { all: 'configured' },
  'src/store/definitions.c before': { all: 'passing' },
  'src/store/definitions.c after': { all: 'passing' },
  'src/slack/slack.c told': { all: 'MOST_TOLD in src/slack/slack.c' },
  'src/upstream/curl_client.c pools': { all: 'max_idle_pools in src/upstream/curl_client.c' },
  'src/upstream/http1_client.c hosts': { all: 'HTTP1_MOST_HOSTS in src/upstream/http1_client.h' },
  'src/upstream/http1_client.c used': { all: 'passing' },
  'src/gateway/decision/log_aggregate.c kinds': { all: 'LOG_AGGREGATE_FIELDS_MAX in src/gateway/decision/log_aggregate.c' },
  'src/admin/inbox.c stacks': { each: 'limits.pending_per_principal', all: 'limits.pending_total' },
  'src/gateway/gateway.c waiters': { each: 'limits.pending_per_principal', all: 'limits.connections' },
  'src/gateway/gateway.c executions': { each: 'limits.pending_per_principal', all: 'limits.pending_total' },
  'src/gateway/gateway.c legs': { all: 'limits.connections' },
  'src/gateway/gateway.c conversations': { each: 'limits.share_percent', all: 'SESSION_POOL_MOST in src/gateway/server/sessions.h' },
  'src/gateway/gateway.c answers': { each: 'limits.pending_per_principal', all: 'limits.pending_total' },
  'src/gateway/gateway.c detached_tasks': { each: 'limits.pending_per_principal', all: 'limits.pending_total' },
  'src/gateway/inbox/inbox.c by_key': { each: 'MOST_BYTES in src/gateway/inbox/inbox.c', all: 'ALL_CLIENTS_BYTES in src/gateway/inbox/inbox.c' },
  'src/gateway/inbox/inbox.c warned': { all: 'configured' },
  'src/gateway/conversation/question_table.c buckets': { each: `QUESTIONS_PER_KEY in ${QUESTIONS}`, all: `QUESTIONS_MOST in ${QUESTIONS}` },
  'src/gateway/conversation/question_table.c ids': { each: `QUESTIONS_PER_KEY in ${QUESTIONS}`, all: `QUESTIONS_MOST in ${QUESTIONS}` },
  'src/gateway/server/catalogue.c cursors': { all: 'passing' },
  'src/gateway/replicas/relay_signature.c nonces': { all: 'NONCES_MAX in src/gateway/replicas/replicas.c' },
  'src/gateway/replicas/replicas.c met': { all: 'as replica' },
  'src/gateway/call/headers.c long_list': { all: 'passing' },
  'src/gateway/call/request_headers.c kept': { each: 'limits.pending_per_principal', all: 'limits.pending_total' },
  'src/gateway/state/task_aliases.c by_id': { each: 'limits.pending_per_principal', all: 'limits.pending_total' },
  'src/gateway/state/tool_catalog.c told': { each: 'as src/gateway/state/tool_lists.c', all: 'limits.sessions' },
  'src/gateway/state/tool_catalog.c lists': { each: 'as src/gateway/state/tool_lists.c', all: 'limits.sessions' },
  'src/gateway/state/tool_catalog.c views': { each: 'as src/gateway/state/tool_lists.c', all: 'limits.sessions' },
  'src/gateway/state/definition_watch.c first': { all: 'passing' },
  'src/gateway/state/definition_watch.c folded': { all: 'passing' },
  'src/gateway/state/definition_watch.c sources': { all: 'configured' },
  'src/gateway/state/skill_files.c skills': { all: 'SKILL_FILES_MOST in src/gateway/state/skill_files.h' },
  'src/gateway/state/skill_files.c sources': { all: 'configured' },
  'src/gateway/state/quota.c counts': { each: 'limits.share_percent', all: 'limits.pending_total' },
  'src/gateway/state/seen_table.c entries': { all: 'kinds' },
  'src/gateway/state/seen_table.c owners': { all: 'kinds' },
  'src/gateway/state/source_eras.c entries': { all: 'configured' },
  'src/gateway/state/quota.c holders': { each: 'limits.share_percent', all: 'limits.pending_total' },
  'src/gateway/state/tool_catalog.c sources': { all: 'configured' },
  'src/gateway/state/tool_lists.c tools': { each: 'LIST_TOOLS_MOST in src/gateway/state/tool_lists.h', all: 'limits.sessions' },
};

const SESSIONS_SEEN = { all: 'limits.sessions' };

/** Tables of src/gateway/state/seen_table.h, by the file that makes it, and its kind. */
const SEEN_TABLES = {
  'src/gateway/gates/rate_limit.c kind': { all: 'MOST_PEERS in src/gateway/gates/rate_limit.c' },
  'src/gateway/methods/list_cache.c kept': { all: 'ALL_KEPT_BYTES in src/gateway/methods/list_cache.c' },
  'src/gateway/methods/list_cache.c rewritten': { all: 'ALL_REWRITTEN_BYTES in src/gateway/methods/list_cache.c' },
  'src/gateway/replicas/replicas.c homes': SESSIONS_SEEN,
  'src/gateway/state/session_table.c pairs_kind': { each: 'limits.sessions_per_principal', all: 'limits.sessions' },
  'src/gateway/state/session_table.c kind': SESSIONS_SEEN,
};

const CONNECTIONS = { all: 'limits.connections' };
const OPERATORS = { all: 'MAX_CONNECTIONS in src/admin/admin.c' };
const PASSES = { all: 'passing' };
const CONFIGURED = { all: 'configured' };

/** Lists and arrays, by the file that adds to one, and the list as it is written there. */
const LISTS = {
  'src/admin/events.c admin->streams': OPERATORS,
  'src/admin/feed.c feed->listeners': OPERATORS,
  'src/admin/probes.c admin->idle_waits': { all: 'WAITS_MOST in src/admin/probes.c' },
  'src/admin/inbox.c inbox->entries': PASSES,
  'src/admin/provider.c provider->inquiries': OPERATORS,
  'src/admin/results.c admin->waits': OPERATORS,
  'src/approval/terms.c names->items': CONFIGURED,
  'src/approval/terms.c terms->needs': CONFIGURED,
  'src/approval/votes.c votes->items': CONFIGURED,
  'src/core/budget.c budget->chosen': PASSES,
  'src/core/budget.c share->claims': { each: 'limits.share_percent', all: 'limits.bodies_bytes' },
  'src/core/metrics.c scrape->copies': PASSES,
  'src/gateway/client/legacy_stream.c call->worker->handovers': CONNECTIONS,
  'src/gateway/client/legacy_stream.c call->worker->streams': CONNECTIONS,
  'src/gateway/client/listen.c listening->tasks': { each: 'MCP_SUBSCRIPTION_MOST_TASKS in include/taskgate/mcp/subscription.h', all: 'limits.listens' },
  'src/gateway/client/listen.c call->worker->listens': { each: 'limits.listens_per_principal', all: 'limits.listens' },
  'src/gateway/decision/shadow.c shadow->queue': { all: 'QUEUE_BYTES_MAX in src/gateway/decision/shadow.c' },
  'src/gateway/gateway.c gateway->workers': CONFIGURED,
  'src/gateway/inbox/inbox.c client->waiter_count > 0 ? &clients->busy : &clients->idle': { each: 'limits.sessions_per_principal', all: 'limits.sessions' },
  'src/gateway/inbox/repeated_calls.c client->joins': { each: 'MOST_JOINS in src/gateway/inbox/repeated_calls.c', all: 'limits.sessions' },
  'src/gateway/inbox/inbox.c ring->entries': { each: 'MOST_BYTES in src/gateway/inbox/inbox.c', all: 'ALL_CLIENTS_BYTES in src/gateway/inbox/inbox.c' },
  'src/gateway/inbox/inbox.c entries': PASSES,
  'src/gateway/inbox/inbox.c client->waiters': { each: 'INBOX_MOST_WAITERS in src/gateway/inbox/inbox.h', all: 'limits.connections' },
  'src/gateway/conversation/answer_gate.c ended': PASSES,
  'src/gateway/conversation/answer_gate.c family->gates': { each: 'limits.pending_per_principal', all: 'limits.pending_total' },
  'src/gateway/conversation/conversation.c all': PASSES,
  'src/gateway/conversation/conversation.c conversation->held': { each: 'HELD_BYTES in src/gateway/conversation/conversation.c', all: 'SESSION_POOL_MOST in src/gateway/server/sessions.h' },
  'src/gateway/conversation/question_shown.c tasks': PASSES,
  'src/gateway/conversation/rounds.c fresh': PASSES,
  'src/gateway/conversation/question_table.c over': PASSES,
  'src/gateway/conversation/question_table.c fresh': PASSES,
  'src/gateway/conversation/question_table.c bucket->questions': { each: `QUESTIONS_PER_KEY in ${QUESTIONS}`, all: `QUESTIONS_MOST in ${QUESTIONS}` },
  'src/gateway/server/sessions.c worker->opened_sessions': { each: 'limits.share_percent', all: 'SESSION_POOL_MOST in src/gateway/server/sessions.h' },
  'src/gateway/server/own.c worker->parked_sessions': { all: 'MOST_PARKED in src/gateway/server/own.c' },
  'src/gateway/server/http.c worker->exchanges_reading': { each: 'limits.pending_per_principal', all: 'limits.connections' },
  'src/gateway/replicas/news.c recipients->items': PASSES,
  'src/gateway/replicas/news.c worker->news': { all: 'SENDING_MOST in src/gateway/replicas/news.c' },
  'src/gateway/replicas/carry.c listener->pulse->listeners': CONNECTIONS,
  'src/gateway/replicas/carry.c worker->pulses': { all: 'as replica' },
  'src/gateway/call/call.c worker->calls': CONNECTIONS,
  'src/gateway/call/call.c call->parts': PASSES,
  'src/gateway/call/headers.c headers->items': PASSES,
  'src/gateway/auth/token_exchange.c table->traders': CONFIGURED,
  'src/gateway/conversation/detach.c detached->base.worker->detached': { each: 'limits.pending_per_principal', all: 'limits.pending_total' },
  'src/gateway/conversation/waiting.c others': CONNECTIONS,
  'src/gateway/state/blocks.c table.items': { all: 'operators' },
  'src/gateway/state/seen_table.c shard->recent': { all: 'kinds' },
  'src/gateway/state/seen_table.c entry->owner->entries': { all: 'kinds' },
  'src/gateway/state/tool_catalog.c catalog->recent': { all: 'MOST_BYTES in src/gateway/state/tool_catalog.c' },
  'src/gateway/state/tool_catalog.c page->tools': { each: 'LIST_TOOLS_MOST in src/gateway/state/tool_lists.h', all: 'passing' },
  'src/gateway/state/tool_catalog.c view->variants': { all: 'MOST_BYTES in src/gateway/state/tool_catalog.c' },
  'src/http/connection.c server->idle[rank]': CONNECTIONS,
  'src/http/server.c server->connections': CONNECTIONS,
  'src/http/server.c server->departed': CONNECTIONS,
  'src/http/intake.c server->resting': CONNECTIONS,
  'src/http/port.c port->called': CONFIGURED,
  'src/http/port.c port->waiting': CONFIGURED,
  'src/http/response.c server->finished': CONNECTIONS,
  'src/identity/exchanger.c trade->waits': CONNECTIONS,
  'src/identity/fetch.c fetch->fetcher->fetches': CONNECTIONS,
  'src/identity/identity.c list->items': PASSES,
  'src/identity/issuer.c issuers->list': CONFIGURED,
  'src/identity/issuer.c issuer->waits': CONNECTIONS,
  'src/loop/loop.c edges->ready': CONNECTIONS,
  'src/loop/loop.c loop->posted': CONNECTIONS,
  'src/loop/loop.c end->loop->round_ends': CONFIGURED,
  'src/loop/loop.c loop->round_ends': CONFIGURED,
  'src/loop/timer.c heap->timers': CONNECTIONS,
  'src/loop/timer.c queue->timers': CONNECTIONS,
  'src/mcp/parameter_headers.c headers->items': PASSES,
  'src/notify/notifier.c target->deliveries': { all: 'TARGET_DELIVERIES in src/notify/notifier.c' },
  'src/notify/notifier.c notifier->targets': CONFIGURED,
  'src/notify/smtp.c client->calls': { all: 'TARGET_DELIVERIES in src/notify/notifier.c' },
  'src/slack/account.c account->channels': CONFIGURED,
  'src/slack/account.c account->slack->leaving': CONFIGURED,
  'src/slack/account.c slack->accounts': CONFIGURED,
  'src/slack/slack.c account->messages': { each: 'MOST_MESSAGES in src/slack/slack.c', all: 'configured' },
  'src/slack/slack.c before': PASSES,
  'src/telemetry/exporter.c exporter->queue': CONFIGURED,
  'src/telemetry/exporter.c batch': PASSES,
  'src/telemetry/exporter.c resource->items': CONFIGURED,
  'src/upstream/curl_call.c client->calls': CONNECTIONS,
  'src/upstream/curl_client.c client->deferred': CONNECTIONS,
  'src/upstream/curl_client.c client->idle_pools': { all: 'max_idle_pools in src/upstream/curl_client.c' },
  'src/upstream/curl_call.c head->spans': { each: 'MAX_HEADERS in src/upstream/curl_call.c', all: 'passing' },
  'src/upstream/http1_call.c client->calls': CONNECTIONS,
  'src/upstream/http1_client.c client->deferred': CONNECTIONS,
  'src/upstream/http1_client.c host->waiting': CONNECTIONS,
  'src/upstream/http1_connection.c client->idle': CONNECTIONS,
  'src/upstream/http1_connection.c connection->host->idle.next': CONNECTIONS,
  'src/upstream/http1_client.c client->outgoing': CONNECTIONS,
};

/** Of these two layers nothing outlives a load or a command. */
const PASSING = /^src\/(cli|config)\//;
/** In these, arrays are of one text, decision or batch of a transaction. */
const PASSING_ARRAYS = /^src\/(json|policy|store|core\/(buffer|memory))/;

const found = (expression, files, name) => new Set(files.flatMap((file) => [...read(file).matchAll(expression)].map((match) => name(file, match))));

const tablesOf = (folder) => found(/CREATE TABLE (?:IF NOT EXISTS )?(?:taskgate_)?(\w+)/g, filesBelow(folder), (file, [, table]) => table);

test('every table of SQLite and PostgreSQL is listed with its bound, and no other', () => {
  const tables = new Set([...tablesOf('src/store/sqlite'), ...tablesOf('src/store/postgres')]);
  assert.deepEqual([...tables].sort(), Object.keys(TABLES).sort());
});

test('every map of the process is listed with its bound, and no other', () => {
  const files = filesBelow('src').filter((file) => !PASSING.test(file) && file !== 'src/core/map.c');
  const maps = found(/([\w\]\[]+) = map_create\(\)/g, files, (file, [, member]) => `${file} ${member}`);
  const calls = files.reduce((sum, file) => sum + read(file).split('map_create()').length - 1, 0);
  assert.deepEqual([...maps].sort(), Object.keys(MAPS).sort());
  const named = files.reduce((sum, file) => sum + [...read(file).matchAll(/([\w\]\[]+) = map_create\(\)/g)].length, 0);
  assert.equal(named, calls, 'a map has a name');
});

test('every table of entries that are seen is listed with its bound, and no other', () => {
  const tables = found(/\bseen_table_create\(&(\w+)\)/g, filesBelow('src'), (file, [, kind]) => `${file} ${kind}`);
  assert.deepEqual([...tables].sort(), Object.keys(SEEN_TABLES).sort());
});

test('every list and array of the process is listed with its bound, and no other', () => {
  const files = filesBelow('src').filter((file) => !PASSING.test(file));
  const name = (file, [, list]) => `${file} ${list.replace(/^&/, '')}`;
  const lists = found(/(?<!\w)list_append\(([^;]*?), [^,;]+\);/g, files, name);
  const arrays = found(/([\w>.[\]-]+) =\s+memory_grow_array\((?!NULL)/g, files.filter((file) => !PASSING_ARRAYS.test(file)), name);
  assert.deepEqual([...lists, ...arrays].sort(), Object.keys(LISTS).sort());
});

test('every bound is a key of the configuration, a constant of the sources, or said to be none', () => {
  const listed = { ...TABLES, ...MAPS, ...LISTS, ...SEEN_TABLES, ...Object.fromEntries(Object.keys(MAPS).map((map) => [map.split(' ')[0], {}])) };
  for (const [name, { each, all }] of Object.entries(listed)) {
    if (each !== undefined) assert.ok(isBound(each, listed), `${name}: "${each}" is no bound of each`);
    if (name in TABLES || name in MAPS || name in LISTS || name in SEEN_TABLES) assert.ok(isBound(all, listed), `${name}: "${all}" is no bound in all`);
  }
});

test('a table or map without a bound is found', () => {
  assert.ok(!isBound('limits.made_up', {}));
  assert.ok(!isBound('MADE_UP in src/store/sweep.c', {}));
  assert.ok(!isBound('as made_up', TABLES));
  assert.ok(!isBound('none', {}));
});
