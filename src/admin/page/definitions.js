// Definitions of servers that have changed or look harmful, and how to accept a change.
import { acceptDefinition, ApiError, watchedDefinitions } from './api.js';
import { make, nameText, putText } from './text.js';

const REFRESH_MS = 30_000;
const byId = (id) => document.getElementById(id);
const KINDS = { tool: 'Tool', prompt: 'Prompt', skill: 'Skill' };

/* The flags of the API, in words. */
const FLAGS = {
  control: 'control characters',
  bidi: 'characters that change the direction of text',
  tag: 'tag characters, which are not shown',
  zero_width: 'characters without width',
  ansi: 'escape sequences of terminals',
  lookalike: 'another name of the server looks the same',
  duplicate: 'the list has the name twice',
  long: 'a very long description',
  instructions: 'words that instruct a model',
};

const keyOf = ({ source, kind, name }) => JSON.stringify([source, kind, name]);

/* Lines that went and came. */
function lineElement(line) {
  const name = { '-': 'del', '+': 'ins' }[line[0]];
  const item = make('li', 'line-of-text');
  const sign = make('span', 'sign', { '-': '−', '+': '+' }[line[0]] ?? '');
  sign.setAttribute('aria-hidden', 'true');
  const values = make('span', 'values');
  values.append(make(name ?? 'span', 'json-value', name ? line.slice(1) : line));
  item.append(sign, ...(name ? [make('span', 'sr-only', `${name === 'del' ? 'removed' : 'added'}: `)] : []), values);
  return item;
}

export class Definitions {
  /** `mayAccept()`: whether the buttons are shown; `refused(error)` ends the session. */
  constructor(list, { mayAccept, refused, announce }) {
    this.list = list;
    this.host = { mayAccept, refused, announce };
    this.clear();
    // The gateway sends nothing when a server changes what it says. The list holds still while somebody is at it.
    setInterval(() => this.isOn && !this.list.matches(':hover, :focus-within') && this.refresh(), REFRESH_MS);
  }

  clear() {
    this.isOn = false;
    this.show([]);
  }

  async refresh() {
    this.isOn = true;
    try {
      const found = await watchedDefinitions();
      if (this.isOn) this.show(found.definitions, found.hasMore);
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) this.host.refused(error);
    }
  }

  show(definitions, hasMore = false) {
    byId('definitions-part').hidden = definitions.length === 0;
    byId('definitions-count').textContent = definitions.length > 0 ? `${definitions.length}${hasMore ? '+' : ''}` : '';
    byId('definitions-more').hidden = !hasMore;
    const focused = this.list.contains(document.activeElement) ? document.activeElement.closest('li.row').dataset.definition : null;
    this.list.replaceChildren(...definitions.map((definition) => this.element(definition)));
    if (focused) (this.itemOf(focused)?.querySelector('button:not([hidden])') ?? byId('waiting')).focus();
  }

  itemOf(key) {
    return this.list.querySelector(`[data-definition="${CSS.escape(key)}"]`);
  }

  element(definition) {
    const item = byId('definition').content.firstElementChild.cloneNode(true);
    const part = (name) => item.querySelector(name);
    const isChanged = definition.state === 'changed';
    item.dataset.definition = keyOf(definition);
    putText(part('.tool'), definition.name);
    part('.brief').textContent = `${KINDS[definition.kind] ?? definition.kind} of ${nameText(definition.source)}`;
    const said = [isChanged ? 'Changed' : '', ...definition.flags.map((flag) => FLAGS[flag] ?? flag)].filter(Boolean).join('; ');
    putText(part('.terms'), `${said[0].toUpperCase()}${said.slice(1)}.`);
    part('.changes').append(...(definition.difference ?? '').split('\n').filter(Boolean).map(lineElement));
    const button = part('button');
    button.hidden = !isChanged || !this.host.mayAccept();
    button.append(make('span', 'sr-only', ` the definition of ${definition.name} of ${definition.source}`));
    button.addEventListener('click', () => this.accept(definition));
    return item;
  }

  /* The digest goes along: what the server says by now, and nobody has seen, is not accepted. */
  async accept(definition) {
    if (this.isAsking) return; // the button keeps the focus
    this.isAsking = true;
    let problem = '';
    try {
      await acceptDefinition(definition);
      this.host.announce(`The definition of ${definition.name} is accepted.`);
    } catch (error) {
      if (error.status === 401) this.host.refused(error);
      problem = error.status === 409 ? 'Not done: the server says something else now. Look at it again.' : `Not done: ${error.message}`;
    }
    if (this.isOn) await this.refresh();
    this.isAsking = false;
    const item = this.itemOf(keyOf(definition));
    if (item) putText(item.querySelector('.problem'), problem);
  }
}
