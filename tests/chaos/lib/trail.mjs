// The audit trail against the ledger: what was told and what ran must be in it, once.
import assert from 'node:assert/strict';

const PAGE = 1000;

/** Every row of the trail, by task: id → names of the events in their order. */
export async function eventsByTask(admin) {
  const events = new Map();
  let after = 0;
  let rows = 0;
  while (after !== null) {
    const answer = await admin.get(`/api/v1/audit?after=${after}&limit=${PAGE}`);
    assert.equal(answer.status, 200, `the audit trail: HTTP ${answer.status} ${answer.text}`);
    for (const { taskId, event } of answer.json.entries) {
      if (!taskId) continue;
      if (!events.has(taskId)) events.set(taskId, []);
      events.get(taskId).push(event);
    }
    rows += answer.json.entries.length;
    after = answer.json.nextAfter;
  }
  return { events, rows };
}

const count = (list, event) => list.filter((one) => one === event).length;
/** The row that a state needs. */
const ROW = { approved: 'approve', executing: 'approve', completed: 'execute', rejected: 'reject', cancelled: 'cancel', expired: 'expire' };

/** The faults in the rows of these tasks, as sentences. */
export function gapsOfTrail(events, tasks, ledger) {
  const gaps = [];
  for (const task of tasks.values()) {
    const rows = events.get(task.id) ?? [];
    const say = (what) => gaps.push(`${task.id} is ${task.state} and has ${what} in the audit trail: ${rows.join(', ')}`);
    if (count(rows, 'create') !== 1) say(`${count(rows, 'create')} rows "create"`);
    if (ROW[task.state] && !rows.includes(ROW[task.state])) say(`no row "${ROW[task.state]}"`);
    if (count(rows, 'execute') > 1) say('more than one row "execute"');
    if (ledger.calls.has(task.arguments.marker) && !(rows.indexOf('approve') >= 0 && rows.indexOf('approve') < rows.indexOf('execute'))) say('no "approve" before an "execute", and upstream was called');
  }
  return gaps;
}
