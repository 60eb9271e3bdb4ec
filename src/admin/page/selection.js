// Calls that are selected, and one decision over all of them.
import { plural } from './text.js';
import { may } from './votes.js';

const byId = (id) => document.getElementById(id);

export class Selection {
  /** `rows()`: rows that wait, in the order of the list; `decide(rows, verb)` for a press of a button. */
  constructor({ rows, groups, decide }) {
    this.rows = rows;
    this.groups = groups;
    this.last = null;
    for (const verb of ['approve', 'reject']) byId(`selection-${verb}`).addEventListener('click', () => decide(this.picked(verb), verb));
    byId('selection-clear').addEventListener('click', () => this.clear());
    byId('select-all').addEventListener('click', () => this.all(byId('select-all').checked));
  }

  /** Selected rows, and of these only the ones that this person may decide with `verb`. */
  picked(verb) {
    return this.rows().filter((row) => row.isPicked && (!verb || may(row.task, verb)));
  }

  pick(row, isPicked, isRange = false) {
    const rows = this.rows().filter((other) => !other.element.hidden);
    const [from, to] = [rows.indexOf(this.last), rows.indexOf(row)];
    if (isRange && from >= 0 && to >= 0) for (const other of rows.slice(Math.min(from, to), Math.max(from, to) + 1)) other.pick(isPicked);
    else row.pick(isPicked);
    this.last = row;
    this.show();
  }

  all(isPicked) {
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
    byId('selection-count').textContent = `${plural(picked.length, 'call')} selected`;
    for (const verb of ['approve', 'reject']) byId(`selection-${verb}`).hidden = !picked.some((row) => may(row.task, verb));
    byId('select-all').checked = picked.length > 0 && picked.length === rows.length;
    byId('select-all').indeterminate = picked.length > 0 && picked.length < rows.length;
    for (const group of this.groups()) group.showPicked();
    for (const row of rows) row.element.classList.toggle('picked', row.isPicked);
  }
}
