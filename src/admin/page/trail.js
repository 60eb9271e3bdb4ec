// The calls of the audit trail that are no tasks any more, newest first. For auditors.
import { auditRows } from './api.js';
import { make, nameText, putText, timeElement } from './text.js';

const PAGE = 100;
const byId = (id) => document.getElementById(id);

/*
 * The trail is read forwards, by numbers that rise with the time. So the first row at or after a time is found by halving:
 * each question asks for one row.
 */
async function numberAt(time) {
  const isBefore = async (number) => {
    const [row] = await auditRows(number, 1);
    return row !== undefined && Date.parse(row.at) < time;
  };
  let [low, step] = [0, 1];
  while (await isBefore(low + step)) [low, step] = [low + step, step * 2];
  let high = low + step;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (await isBefore(middle)) low = middle;
    else high = middle;
  }
  return high;
}

const asked = (row) => `${row.event} ${row.tool ?? ''} ${row.person ?? row.actor ?? ''} ${row.reason ?? ''} ${row.principal ?? ''} ${row.taskId ?? ''}`.toLowerCase();

export class Trail {
  constructor(list) {
    this.list = list;
    byId('trail-older').addEventListener('click', () => this.older());
  }

  clear() {
    this.list.replaceChildren();
    this.end = null;
    this.offer(false);
  }

  /** Offers the trail to an auditor who has seen all tasks, the oldest of which was made at `before`. */
  offer(isOffered, before) {
    byId('trail-part').hidden = !isOffered;
    this.before = before;
  }

  async older() {
    const button = byId('trail-older');
    button.disabled = true;
    byId('trail-problem').textContent = '';
    try {
      this.end ??= await numberAt(Date.parse(this.before));
      const start = Math.max(0, this.end - PAGE);
      const rows = (await auditRows(start, PAGE)).filter((row) => row.sequence <= this.end);
      for (const row of rows.reverse()) this.list.append(this.element(row));
      this.end = start;
      const isEnd = start === 0 || rows.length === 0;
      button.hidden = isEnd;
      byId('trail-end').hidden = !isEnd;
    } catch (error) {
      putText(byId('trail-problem'), error.message);
    } finally {
      button.disabled = false;
    }
  }

  element(row) {
    const item = make('li', 'trail-row');
    const facts = [row.tool, row.person ?? row.actor, row.reason && `“${row.reason}”`, row.principal && `asked under the name ${nameText(row.principal)}`];
    item.append(timeElement(row.at), make('span', 'event', row.event), make('span', 'what', facts.filter(Boolean).join(' · ')));
    item.title = `Row ${row.sequence}${row.taskId ? `, task ${row.taskId}` : ''}`;
    item.dataset.text = asked(row);
    return item;
  }

  /** Shows the rows that have all of `words`. */
  hide(words) {
    for (const item of this.list.children) item.hidden = !words.every((word) => item.dataset.text.includes(word));
  }
}
