// Calls that are selected, and one decision over all of them.
import { plural } from './text.js';
import { may } from './votes.js';

const byId = (id) => document.getElementById(id);

export class Selection {
  /** `rows()`: rows that wait and are known, in the order of the list; `matching()`: how many calls there are;
   * `every()` reads them; `decide(selection, verb)` for a press of a button. */
  constructor({ rows, stacks, matching, every, decide }) {
    this.rows = rows;
    this.stacks = stacks;
    this.matching = matching;
    this.every = every;
    this.isAll = false; // also the calls that are not known here
    this.last = null;
    for (const verb of ['approve', 'reject']) byId(`selection-${verb}`).addEventListener('click', () => decide(this, verb));
    byId('selection-clear').addEventListener('click', () => this.clear());
    byId('select-all').addEventListener('click', () => this.all(byId('select-all').checked));
  }

  /** Selected rows, and of these only the ones that this person may decide with `verb`. */
  picked(verb) {
    return this.rows().filter((row) => row.isPicked && (!verb || may(row.task, verb)));
  }

  /** The calls of a decision: all that match only to reject them, because nobody has seen those that were not loaded. */
  async chosen(verb) {
    return this.isAll && verb === 'reject' ? this.every() : this.picked(verb);
  }

  pick(row, isPicked, isRange = false) {
    this.isAll = false;
    const rows = this.rows().filter((other) => !other.element.hidden || !other.element.isConnected);
    const [from, to] = [rows.indexOf(this.last), rows.indexOf(row)];
    if (isRange && from >= 0 && to >= 0) for (const other of rows.slice(Math.min(from, to), Math.max(from, to) + 1)) other.pick(isPicked);
    else row.pick(isPicked);
    this.last = row;
    this.show();
  }

  all(isPicked) {
    this.isAll = isPicked && this.matching() > this.rows().length;
    for (const row of this.rows()) row.pick(isPicked);
    this.show();
  }

  clear() {
    this.all(false);
  }

  show() {
    const rows = this.rows();
    const picked = rows.filter((row) => row.isPicked);
    byId('selection').hidden = picked.length === 0;
    if (picked.length === 0) this.isAll = false;
    const count = this.isAll ? Math.max(this.matching(), picked.length) : picked.length;
    byId('selection-count').textContent = `${plural(count, 'call')} selected${count > picked.length ? `; ${picked.length.toLocaleString()} of them, which are loaded, can be approved` : ''}`;
    for (const verb of ['approve', 'reject']) byId(`selection-${verb}`).hidden = !picked.some((row) => may(row.task, verb));
    byId('select-all').checked = picked.length > 0 && picked.length === rows.length;
    byId('select-all').indeterminate = picked.length > 0 && picked.length < rows.length;
    for (const stack of this.stacks()) stack.showPicked();
    for (const row of rows) row.element.classList.toggle('picked', row.isPicked);
  }
}
