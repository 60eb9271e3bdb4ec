// Tasks of a server (SEP-2663), for the SDK's server, which has none of its own.
import { randomUUID } from 'node:crypto';
import { ProtocolError } from '@modelcontextprotocol/server';

const TTL_MS = 600_000;
const POLL_MS = 50;
const done = { resultType: 'complete' };
const ended = ({ status }) => ['completed', 'failed', 'cancelled'].includes(status);

export class ServerTasks {
  tasks = new Map();

  methods = {
    'tasks/get': ({ taskId }) => ({ ...done, ...this.shown(this.find(taskId)) }),
    'tasks/update': ({ taskId, inputResponses = {} }) => this.update(this.find(taskId), inputResponses),
    'tasks/cancel': ({ taskId }) => this.cancel(this.find(taskId)),
  };

  /** A task of `run(more)`, where `more` are the parts of a call that a task has in another way. */
  create(run, { responses }) {
    const now = new Date().toISOString();
    const entry = { run, responses, aborter: new AbortController(), task: { taskId: randomUUID(), status: 'working', createdAt: now, lastUpdatedAt: now, ttlMs: TTL_MS, pollIntervalMs: POLL_MS } };
    this.tasks.set(entry.task.taskId, entry);
    this.continue(entry);
    return { resultType: 'task', ...entry.task };
  }

  find(taskId) {
    const entry = this.tasks.get(taskId);
    if (!entry) throw new ProtocolError(-32602, 'Unknown task');
    return entry;
  }

  shown({ task }) {
    const { inputRequests, ...rest } = task;
    return task.status === 'input_required' ? { ...rest, inputRequests } : rest;
  }

  change(entry, change) {
    if (!ended(entry.task)) Object.assign(entry.task, change, { lastUpdatedAt: new Date().toISOString() });
  }

  async continue(entry) {
    this.change(entry, { status: 'working' });
    try {
      const result = await entry.run({ responses: entry.responses, signal: entry.aborter.signal, progress: async () => {}, say: async () => {} });
      if (result.inputRequests) this.change(entry, { status: 'input_required', inputRequests: result.inputRequests });
      else this.change(entry, { status: 'completed', result: { ...done, ...result } });
    } catch (error) {
      this.change(entry, { status: 'failed', error: { code: error.code ?? -32603, message: error.message } });
    }
  }

  update(entry, inputResponses) {
    const asked = entry.task.status === 'input_required' ? entry.task.inputRequests : {};
    const known = Object.entries(inputResponses).filter(([name]) => name in asked);
    if (known.length === 0) return done;
    for (const [name, response] of known) {
      entry.responses = { ...entry.responses, [name]: response };
      const { [name]: _, ...left } = entry.task.inputRequests;
      this.change(entry, { inputRequests: left });
    }
    if (Object.keys(entry.task.inputRequests).length === 0) this.continue(entry);
    return done;
  }

  cancel(entry) {
    this.change(entry, { status: 'cancelled' });
    entry.aborter.abort();
    return done;
  }
}
