// One run against one endpoint: the facts that the requirements share. Each is fetched once, at its first use.
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { Client } from './client.mjs';
import { demand, fail, isObject, outcome, resultOf, shown, skip } from './verdict.mjs';

export const PROTOCOL = '2025-11-25';
export const RELATED_TASK = 'io.modelcontextprotocol/related-task';
export const SUPPORT = ['forbidden', 'optional', 'required'];
export const STATUSES = ['working', 'input_required', 'completed', 'failed', 'cancelled'];
const TERMINAL = ['completed', 'failed', 'cancelled'];
const PAGES = 100;

/** Declares tasks, so that the endpoint treats this client as one that knows them. */
const CAPABILITIES = { tasks: {} };

export const isTerminal = (task) => TERMINAL.includes(task.status);

export class Run {
  /** Options: see options.mjs. */
  constructor(options) {
    this.options = options;
    this.exchanges = []; // of JSON-RPC requests in good order, for the requirements about all of them
    this.tasks = []; // every task object seen: {where, task}
    this.idsGiven = []; // by creates, in their order
    this.clients = [];
    this.facts = new Map();
    this.client = this.newClient();
  }

  /** Fetches a fact once; a failure to fetch it is kept, too. */
  once(name, fetch) {
    if (!this.facts.has(name)) this.facts.set(name, fetch());
    return this.facts.get(name);
  }

  newClient(headers = this.options.headers) {
    const client = new Client(this.options.url, { headers, timeout: this.options.timeout, record: (answer) => this.exchanges.push(answer) });
    this.clients.push(client);
    return client;
  }

  /** The first `initialize`. Rejects with Unreachable when nothing answers. */
  async open() {
    this.initialize = await this.client.initialize(PROTOCOL, CAPABILITIES);
    this.capabilities = this.initialize.message?.result?.capabilities ?? {};
    this.version = this.initialize.message?.result?.protocolVersion;
  }

  /** Leaves nothing behind: tasks are cancelled, sessions ended. */
  async close() {
    this.listening?.then((stream) => stream.abort(), () => {});
    const left = [...new Set(this.idsGiven)].filter((id) => !this.ended(id));
    await Promise.all(left.map((taskId) => this.client.send('tasks/cancel', { taskId }, { odd: true }).catch(() => {})));
    await Promise.all(this.clients.map((client) => client.end()));
    for (const client of this.clients) client.close();
  }

  ended(taskId) {
    return this.tasks.some(({ task }) => task.taskId === taskId && isTerminal(task));
  }

  /** A further client after its handshake. */
  async connected(headers) {
    const client = this.newClient(headers);
    resultOf(await client.initialize(PROTOCOL, CAPABILITIES));
    client.version = this.version;
    await client.notify('notifications/initialized');
    return client;
  }

  /** A client that does not own this run's tasks. */
  stranger() {
    return this.once('stranger', async () => {
      const { headers, otherHeaders } = this.options;
      const authorized = Object.keys(headers).some((name) => name === 'authorization');
      if (!Object.keys(otherHeaders).length && authorized) {
        skip('both clients would have the same Authorization; give another with --other-header or --other-header-env');
      }
      if (!Object.keys(otherHeaders).length && !this.client.session) skip('the endpoint has no sessions that could tell two clients apart');
      const stranger = await this.connected({ ...headers, ...otherHeaders });
      if (!Object.keys(otherHeaders).length && stranger.session === this.client.session) skip('all clients have the same session here');
      return stranger;
    });
  }

  /** The stream of the session, open from the first time it is asked for. */
  stream() {
    return (this.listening ??= this.client.listen());
  }

  // Tools

  /** All pages: {pages: [result], tools}. */
  toolsList() {
    return this.once('tools', async () => {
      const pages = await this.pages('tools/list');
      return { pages, tools: pages.flatMap((page) => (Array.isArray(page.tools) ? page.tools.filter(isObject) : [])) };
    });
  }

  /** Results of a list, page by page, until there is no further cursor. */
  async pages(method, client = this.client) {
    const pages = [];
    const cursors = new Set();
    for (let cursor; ; ) {
      const page = resultOf(await client.send(method, cursor === undefined ? {} : { cursor }));
      pages.push(page);
      cursor = page.nextCursor;
      if (typeof cursor !== 'string') return pages;
      if (cursors.has(cursor)) return Object.assign(pages, { endless: `the cursor ${shown(cursor)} comes again` });
      if (pages.length === PAGES) return Object.assign(pages, { endless: `there are more than ${PAGES} pages` });
      cursors.add(cursor);
    }
  }

  /**
   * The tool that is called as a task: {name, arguments, support}. Calling a tool can do harm, so without --tool it is only
   * one that says of itself that it is read-only and that takes no arguments.
   */
  taskTool() {
    return this.once('task tool', () => this.chosen('tool', (support) => support === 'required' || support === 'optional', 'is called as a task'));
  }

  /** Every tool that --tool names, the first of which is the task tool. */
  async taskTools() {
    return [await this.taskTool(), ...this.options.tools.slice(1)];
  }

  /** The tool that is called without a task, chosen likewise. */
  plainTool() {
    return this.once('plain tool', () => this.chosen('plainTool', (support) => support !== 'required', 'is called without a task'));
  }

  async chosen(option, fits, purpose) {
    const { tools } = await this.toolsList().catch(() => skip('tools/list does not say which tools there are'));
    const flag = option === 'tool' ? '--tool' : '--plain-tool';
    const named = option === 'tool' ? this.options.tools[0] : this.options.plainTool;
    if (named) {
      const tool = tools.find(({ name }) => name === named.name) ?? skip(`tools/list has no tool ${named.name}`);
      return fits(supportOf(tool)) ? { ...named, support: supportOf(tool) } : skip(`${named.name} ${purpose}, but its taskSupport is ${supportOf(tool)}`);
    }
    const harmless = tools.find((tool) => fits(supportOf(tool)) && tool.annotations?.readOnlyHint === true && !tool.inputSchema?.required?.length);
    if (!harmless) skip(`no tool that ${purpose} is known to be harmless; name one with ${flag}`);
    return { name: harmless.name, arguments: {}, support: supportOf(harmless) };
  }

  /** Calls the tool for tasks, with the given `task`. */
  async callAsTask(task, tool) {
    const { name, arguments: args } = tool ?? (await this.taskTool());
    const answer = await this.client.send('tools/call', { name, arguments: args, task });
    this.seen('tools/call', answer);
    return answer;
  }

  // Tasks

  /** Notes each task object in an answer. */
  seen(where, answer) {
    const result = answer.message?.result;
    if (!isObject(result)) return;
    const found = [result, result.task, ...(Array.isArray(result.tasks) ? result.tasks : [])].filter((task) => isObject(task) && typeof task.taskId === 'string');
    for (const task of found) this.tasks.push({ where, task });
    if (where === 'tools/call' && found.length > 0) this.idsGiven.push((found[1] ?? found[0]).taskId);
  }

  /** A tasks/… request of the owner, its task noted. */
  async ask(method, params, options) {
    const answer = await this.client.send(method, params, options);
    this.seen(method, answer);
    return answer;
  }

  /** The task as tasks/get has it. */
  async get(taskId) {
    return resultOf(await this.ask('tasks/get', { taskId }));
  }

  /** A fresh task, its create result: nothing is demanded of it but an id. */
  async create(task = { ttl: this.options.ttl }, tool = undefined) {
    const answer = await this.callAsTask(task, tool);
    const result = resultOf(answer);
    const taskId = result.task?.taskId ?? result.taskId;
    demand(typeof taskId === 'string' && taskId !== '', `no task id: ${outcome(answer)}`);
    return { taskId, result };
  }

  /** The first task, which several requirements look at. */
  firstTask() {
    return this.once('first task', () => this.create());
  }

  /** The ids of as many tasks as --tasks says, the first task among them. */
  severalTasks() {
    return this.once('several tasks', async () => {
      const ids = [(await this.firstTask()).taskId];
      while (ids.length < this.options.tasks) ids.push((await this.create()).taskId);
      return ids;
    });
  }

  /** A task that was cancelled: {taskId, answer, waiter}, `waiter` being a tasks/result that was open at the time. */
  cancelledTask() {
    return this.once('cancelled task', async () => {
      const { taskId } = await this.create();
      await this.stream().catch(() => {});
      let answered = false;
      const timeout = this.options.patience + this.options.timeout;
      const waiter = this.client.send('tasks/result', { taskId }, { timeout }).finally(() => (answered = true));
      waiter.catch(() => {});
      await pause(this.options.patience);
      const before = await this.get(taskId);
      const early = answered;
      const answer = await this.ask('tasks/cancel', { taskId });
      return { taskId, before, early, answer, waiter };
    });
  }

  /** A task that somebody has approved, once it has ended: {taskId, last, statuses}. */
  endedTask() {
    return this.once('ended task', async () => {
      const { taskId } = await this.create();
      await this.stream().catch(() => {});
      if (this.options.approve) await this.decide('approve', taskId);
      return this.followed(taskId);
    });
  }

  /** A task that somebody has rejected, once it has ended. */
  rejectedTask() {
    return this.once('rejected task', async () => {
      if (!this.options.approve) skip('nobody is there to reject a task; give --approve-url');
      const { taskId } = await this.create();
      await this.decide('reject', taskId);
      return this.followed(taskId);
    });
  }

  /** The first truthy value of `fact`, or undefined after the usual time. */
  async until(fact) {
    for (const end = Date.now() + this.options.timeout; ; await pause(20)) {
      const value = fact();
      if (value || Date.now() > end) return value;
    }
  }

  /** Polls a task until it has ended. */
  async followed(taskId) {
    const statuses = [];
    const end = Date.now() + this.options.timeout;
    for (;;) {
      const last = await this.get(taskId);
      if (statuses.at(-1) !== last.status) statuses.push(last.status);
      if (isTerminal(last)) return { taskId, last, statuses };
      if (Date.now() > end) {
        const still = `the task is still ${shown(last.status)} after ${this.options.timeout} ms`;
        if (this.options.approve) fail(`${still} (${shown(last.statusMessage)})`);
        skip(`${still}; give a longer --timeout, or --approve-url if somebody has to approve it`);
      }
      // No human will decide the task, so a short wait is enough.
      if (last.status === 'input_required' && !this.options.approve) skip('the task waits for somebody to approve it; give --approve-url');
      await pause(Math.min(Math.max(Number(last.pollInterval) || 100, 20), 200));
    }
  }

  /** Decides over the admin API. */
  async decide(verb, taskId) {
    const { url, token } = this.options.approve;
    const admin = new Client(`${url.replace(/\/+$/, '')}/api/v1/tasks/${encodeURIComponent(taskId)}/${verb}`, {
      headers: { accept: 'application/json', ...(token ? { authorization: `Bearer ${token}` } : {}) },
      timeout: this.options.timeout,
    });
    try {
      const { status, text } = await admin.exchange('POST', { body: JSON.stringify({ reason: 'compliance check' }) });
      demand(status === 200, `the admin API answers HTTP ${status} to ${verb} ${taskId}: ${shown(text)}`);
    } finally {
      admin.close();
    }
  }

  /** An id that no task has, in the form of those a gateway makes. */
  unknownId() {
    return `tg_${randomUUID()}`;
  }
}

/** Either spelling; nothing said means forbidden. */
export const supportOf = (tool) => tool.execution?.taskSupport ?? tool.annotations?.taskSupport ?? 'forbidden';
