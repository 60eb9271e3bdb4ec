// The context of a call: the words of its rule, of its caller and of the server, each as what it is.
import { changeElement } from './changes.js';
import { differences } from './diff.js';
import { JsonObject, jsonPieces } from './json.js';
import { addMark } from './marks.js';
import { askerText, make, putPieces, putText, timeElement, timeText } from './text.js';

// The line above has a name as long as that whole.
const LONG_NAME = 128;

const WITNESSES = {
  client: 'the client says so; nobody has verified it',
  issuer: 'verified by the issuer',
  gateway: 'a token of this gateway',
};

/* The hints of the protocol, in words: [when true, when false]. */
const HINTS = {
  readOnlyHint: ['only reads', 'may change things'],
  destructiveHint: ['may destroy', 'destroys nothing'],
  idempotentHint: ['twice is like once', 'twice is not like once'],
  openWorldHint: ['reaches the world outside', 'stays inside'],
};

function addFact(list, name, value, { title, hint, mark } = {}) {
  if (value === null || value === undefined || value === '') return;
  const description = make('dd');
  if (value instanceof Node) description.append(value);
  else putText(description, value);
  if (hint) description.append(' ', make('span', 'hint', hint));
  if (title) description.title = title;
  if (mark) addMark(description, ...mark);
  list.append(make('dt', '', name), description);
}

/** Fills the list of facts about `task`. */
export function putFacts(list, task) {
  list.replaceChildren();
  if (task.tool.length > LONG_NAME) addFact(list, 'Tool', make('div', 'whole-name', task.tool));
  addFact(list, 'Asked by', askerText(task), { hint: WITNESSES[task.principalBy] && `(${WITNESSES[task.principalBy]})`, mark: [task, 'principal'] });
  addFact(list, 'Rule', task.rule, { hint: task.ruleDescription && `— ${task.ruleDescription}` });
  addFact(list, 'Server', task.source);
  addFact(list, 'Workflow', task.workflow);
  addFact(list, 'Asked at', timeElement(task.createdAt));
  if (task.execution) addFact(list, 'Execution', make('span', 'execution', executionText(task.execution)));
  if (task.grant) addFact(list, 'Grant', grantText(task.grant));
  addFact(list, 'Task', task.id, { title: `SHA-256 of the arguments: ${task.argumentsDigest}\nof the whole request: ${task.requestDigest ?? 'unknown'}` });
}

/* Of an approved call: what became of it. */
function executionText(execution) {
  const [state, until, started, took] = ['state', 'until', 'startedAt', 'durationMs'].map((name) => execution.get(name));
  if (until) return `waits for the credentials of its caller, until ${timeText(until)}`;
  if (!started) return 'never begun';
  const trace = execution.get('traceId') ? ` · trace ${execution.get('traceId')}` : '';
  return (state === 'executing' ? `runs since ${timeText(started)}` : `began ${timeText(started)}, took ${Number(took?.text ?? 0).toLocaleString('en')} ms`) + trace;
}

function grantText(grant) {
  const calls = grant.get('calls')?.text;
  return grant.get('use') ? `call ${grant.get('use').text} of ${calls} of ${grant.get('id')}` : `given with this approval, for ${calls} more: ${grant.get('id')}`;
}

function hintElements(annotations) {
  const known = Object.entries(HINTS).filter(([name]) => typeof annotations.get(name) === 'boolean');
  return known.map(([name, [yes, no]]) => {
    const item = make('li', name === 'destructiveHint' && annotations.get(name) ? 'risky' : '', annotations.get(name) ? yes : no);
    item.title = `${name}: ${annotations.get(name)}`;
    return item;
  });
}

function objectOf(members) {
  const object = new JsonObject();
  object.members = Object.entries(members).filter(([, value]) => value !== null);
  return object;
}

/* Of a tool that is another one now. */
function putDefinition(box, { definitionChanged, toolDescription, toolAnnotations, toolNow }) {
  box.hidden = !definitionChanged;
  if (!definitionChanged) return;
  const now = { description: toolNow.get('description'), annotations: toolNow.get('annotations') };
  const { changes } = differences(objectOf({ description: toolDescription, annotations: toolAnnotations }), objectOf(now));
  box.querySelector('.changes').replaceChildren(...changes.map(changeElement));
  box.querySelector('.note').textContent = changes.length === 0 ? 'Its schema or its title has changed.' : '';
}

function putAgentSays(box, task) {
  box.hidden = !task.reasonOfAgent;
  putText(box.querySelector('.reason-of-agent'), task.reasonOfAgent);
  addMark(box.querySelector('.reason-of-agent'), task, 'taskgate_reason');
}

/** The words of the agent, as in the card; none where it says nothing. */
export function agentSays(task) {
  if (!task.reasonOfAgent) return [];
  const box = document.getElementById('detail').content.querySelector('.agent-says').cloneNode(true);
  putAgentSays(box, task);
  return [box];
}

/** Fills the box with the sentence of the rule and the words of the server. */
export function putContext(part, task) {
  part('.summary').hidden = !task.summary;
  putText(part('.summary'), task.summary);
  putAgentSays(part('.agent-says'), task);
  part('.unlisted').hidden = task.listed !== false;
  const annotations = task.toolAnnotations instanceof JsonObject ? task.toolAnnotations : null;
  part('.server-says').hidden = !task.toolDescription && !annotations;
  // Its lines stay lines, within the border that marks them as the server's.
  part('.description').replaceChildren(...(task.toolDescription ?? '').split(/\r?\n/).map((line) => make('span', 'paragraph', line)));
  part('.hints').replaceChildren(...(annotations ? hintElements(annotations) : []));
  const others = annotations?.members.filter(([name, value]) => !(name in HINTS && typeof value === 'boolean')) ?? [];
  const rest = new JsonObject();
  rest.members = others;
  putDefinition(part('.definition-now'), task);
  part('.annotations').hidden = others.length === 0;
  putPieces(part('.annotations'), others.length > 0 ? jsonPieces(rest) : []);
}
