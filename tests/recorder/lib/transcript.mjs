// The text of a recording: each end's exchanges in order, without what only chance decides.
import { exchangesOf } from './exchanges.mjs';
import { named } from './names.mjs';

const OWN = "the gateway's own";
/** Headers that node gives each message of a script. */
const OF_NODE = { '>': /^(host|connection):/i, '<': /^(date|connection|keep-alive):/i };

const NAMES = { '\r': '<CR>', '\t': '<TAB>' };
const escaped = (text) => text.replace(/[^\n\x20-\x7e]/gu, (c) => NAMES[c] ?? `<U+${c.codePointAt(0).toString(16)}>`);
const indented = (text) => escaped(text).split('\n').map((line) => (line === '' ? '' : `  ${line}`)).join('\n');

/** A body's lines; how it ends is visible. */
function body(text, isStream) {
  if (isStream) text = text.replace(/^:ping\r?\n\r?\n/gm, ''); // only time decides of them
  if (isStream) return indented(/\n\r?\n$/.test(text) ? text.replace(/\s+$/, '') : `${text}<unfinished>`);
  return indented(text.replace(/\n+$/, (all) => '<LF>'.repeat(all.length)));
}

function json(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Requests of a server that belong together: those of one session, in the order of their arrival; a stream by itself. */
function laneOf(exchange) {
  const { request, response, text, lane } = exchange;
  if (!lane.startsWith('server')) return lane;
  const message = json(text);
  const client = message?.params?.clientInfo?.name ?? message?.params?._meta?.['io.modelcontextprotocol/clientInfo']?.name;
  const session = request.value('mcp-session-id') ?? response?.value('mcp-session-id');
  return { client, session };
}

function withLanes(exchanges) {
  const owners = new Map(); // session -> whose it is
  const lanes = new Map();
  for (const exchange of exchanges) {
    let name = laneOf(exchange);
    if (typeof name !== 'string') {
      const { client, session } = name;
      if (session && client) owners.set(session, client);
      const isOwn = (session ? owners.get(session) : client) === 'taskgate';
      const what = isOwn ? OWN : session ? `session ${session}` : 'without a session';
      name = `${exchange.lane}, ${what}${exchange.request.start.startsWith('GET ') ? ', stream' : ''}`;
    }
    if (!lanes.has(name)) lanes.set(name, []);
    lanes.get(name).push(exchange);
  }
  return lanes;
}

function message(arrow, isScripted, { start, lines, value }, text) {
  const length = String(Buffer.byteLength(text));
  const shown = lines.filter((line) => !isScripted || !OF_NODE[arrow].test(line)).map((line) => (/^content-length:/i.test(line) && value('content-length') === length ? line.replace(length, '<length>') : line));
  return [`${arrow} ${start}`, ...shown.map((line) => `${arrow} ${escaped(line)}`), ...(text === '' ? [] : [body(text, /event-stream/.test(value('content-type') ?? ''))])].join('\n');
}

/** Whether the gateway sends it while it ends, and waits for no answer: chance decides whether one comes before the end. */
const isLastWord = ({ lane, request, text }, endsAt) => lane.startsWith('server') && request.at >= endsAt && !(json(text)?.method && json(text).id !== undefined);

function shown(exchange, endsAt) {
  const { lane, request, response, interim, text, answer, left, rest } = exchange;
  const isServers = lane.startsWith('server');
  const parts = [message('>', !isServers, request, text)];
  if (isLastWord(exchange, endsAt)) return parts[0];
  for (const one of interim) parts.push(message('<', isServers, one, ''));
  if (response) parts.push(message('<', isServers, response, answer));
  if (rest) parts.push(`< not HTTP:\n${indented(rest)}`);
  if (left) parts.push(`-- ${left === 'asker' ? 'whoever asked left' : 'whoever answers cut it'}`);
  return parts.join('\n');
}

/** Looks at a server's own task that saw the same are one: only time decides of their number. */
function withoutRepeatedLooks(list) {
  const masked = (text) => text?.replace(/"id":"[^"]*"/, '');
  const isLook = ({ text }) => json(text)?.method === 'tasks/get';
  return list.filter((exchange, i) => {
    const before = list[i - 1];
    if (!before || !isLook(exchange) || !isLook(before) || masked(exchange.text) !== masked(before.text)) return true;
    return exchange.response?.isWhole && masked(exchange.answer) !== masked(before.answer);
  });
}

/** Lanes of clients come first as the scenario made them, then those of servers: the gateway's own, the others by arrival. */
function ordered(lanes) {
  const rank = ([name]) => (!name.startsWith('server') ? 0 : name.includes(OWN) ? 1 : 2);
  const first = ([name, [{ at }]]) => [rank([name]), lanes.get(name.replace(/, stream$/, ''))?.[0].at ?? at, name];
  return [...lanes].sort((a, b) => {
    const [x, y] = [first(a), first(b)];
    for (let i = 0; i < 3; i++) if (x[i] !== y[i]) return x[i] < y[i] ? -1 : 1;
    return 0;
  });
}

/** The moments of all exchanges that one of `patterns` names, in their order at both ends. */
function orderOf(exchanges, patterns) {
  const marks = [];
  for (const { lane, request, response, text, answer } of exchanges) {
    const what = `${lane}: ${request.start.split(' ')[0]} ${json(text)?.method ?? (json(text) ? 'an answer' : '')}`.trimEnd();
    marks.push([request.doneAt ?? request.at, `> ${what}`]);
    if (!response) continue;
    marks.push([response.at, `< ${what}: ${response.start.split(' ')[1]}`]);
    if (!/event-stream/.test(response.value('content-type') ?? '')) continue;
    let soFar = '';
    let count = 0;
    for (const { at, bytes } of response.parts) {
      soFar += bytes.toString('utf8');
      const blocks = soFar.split(/\r?\n\r?\n/);
      soFar = blocks.pop();
      for (const block of blocks) {
        const data = json(/^data: (.*)$/m.exec(block)?.[1] ?? '');
        marks.push([at, `< ${what}: event ${++count} ${data?.method ?? (data ? 'the answer' : '')}`.trimEnd()]);
      }
    }
    if (response.isWhole && answer !== undefined) marks.push([response.doneAt, `< ${what}: end`]);
  }
  return marks.filter(([, text]) => patterns.some((pattern) => pattern.test(text))).sort((a, b) => a[0] - b[0]).map(([, text]) => text);
}

/**
 * The whole text. `order`: patterns of the moments whose order at both ends is part of it. `own`: with the requests that the
 * gateway sends for itself.
 */
export function transcript(journal, { title, ports, order, own, notes }) {
  const exchanges = exchangesOf(journal);
  const lanes = ordered(withLanes(exchanges)).filter(([name]) => own || !name.includes(OWN));
  const parts = [`# ${title}`];
  for (const [name, list] of lanes) parts.push(`== ${name}`, ...(name.startsWith('server') ? withoutRepeatedLooks(list) : list).map((exchange) => shown(exchange, journal.endsAt)));
  if (notes.length > 0) parts.push(['== also seen', ...notes].join('\n'));
  if (order) parts.push(['== in this order', ...orderOf(exchanges, order)].join('\n'));
  return named(`${parts.join('\n\n')}\n`, ports);
}
