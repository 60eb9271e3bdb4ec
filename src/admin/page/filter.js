// The search and the filters above the lists.
import { searchedText } from './brief.js';
import { may } from './votes.js';

const byId = (id) => document.getElementById(id);
const texts = new WeakMap(); // task -> what a search compares

function textOf(task) {
  if (!texts.has(task)) texts.set(task, searchedText(task));
  return texts.get(task);
}

const CHOICES = ['source', 'workflow', 'risk'];

/** The filter, read from the controls. */
export const filter = {
  /** Calls `changed` after every change; letters of the search one by one. */
  listen(changed) {
    byId('search').addEventListener('input', changed);
    for (const name of CHOICES) byId(`filter-${name}`).addEventListener('change', changed);
    byId('filter-mine').addEventListener('change', changed);
    byId('filter-clear').addEventListener('click', () => (filter.clear(), changed()));
  },

  clear() {
    byId('search').value = '';
    for (const name of CHOICES) byId(`filter-${name}`).value = '';
    byId('filter-mine').checked = false;
  },

  get text() {
    return byId('search').value.trim().replace(/\s+/g, ' ');
  },

  get words() {
    return filter.text.toLowerCase().split(' ').filter(Boolean);
  },

  get isOn() {
    return filter.words.length > 0 || byId('filter-mine').checked || CHOICES.some((name) => byId(`filter-${name}`).value !== '');
  },

  /** Whether a task is asked for. Every word of the search must be somewhere in it, unless the gateway has found it there. */
  accepts(task, isFound = false) {
    if (CHOICES.some((name) => byId(`filter-${name}`).value !== '' && task[name] !== byId(`filter-${name}`).value)) return false;
    if (byId('filter-mine').checked && !may(task, 'approve')) return false;
    return isFound || filter.words.every((word) => textOf(task).includes(word));
  },

  /** The same question to the API, for the decided ones; what it cannot ask, accepts() asks. */
  parameters() {
    const asked = {};
    if (filter.text) asked.q = filter.text;
    for (const name of ['source', 'workflow']) if (byId(`filter-${name}`).value) asked[name] = byId(`filter-${name}`).value;
    return asked;
  },

  /** The same question to the inbox. */
  inboxParameters() {
    const asked = {};
    if (filter.text) asked.q = filter.text;
    for (const name of CHOICES) if (byId(`filter-${name}`).value) asked[name] = byId(`filter-${name}`).value;
    if (byId('filter-mine').checked) asked.mine = 'true';
    return asked;
  },

  /** Offers the values that there are; a filter with nothing to choose is not shown. */
  offer(tasks) {
    for (const name of CHOICES) {
      const select = byId(`filter-${name}`);
      const values = [...new Set(tasks.map((task) => task[name]).filter(Boolean))].sort();
      if (select.value && !values.includes(select.value)) values.push(select.value);
      select.closest('label').hidden = values.length < 2 && !select.value;
      if (values.join('\n') === [...select.options].slice(1).map((option) => option.value).join('\n')) continue;
      const chosen = select.value;
      select.replaceChildren(select.options[0], ...values.map((value) => new Option(value, value)));
      select.value = chosen;
    }
  },
};
