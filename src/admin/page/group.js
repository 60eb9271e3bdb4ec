// The line above equal calls of one owner: it stands for all of them.
import { briefOf } from './brief.js';
import { make, putAsker, putText, shortened, visibleText } from './text.js';

export class Group {
  /** `host`: picked(group, isPicked), toggled(group). */
  constructor(digest, host) {
    this.digest = digest;
    this.isOpen = false;
    this.rows = [];
    this.element = document.getElementById('group').content.firstElementChild.cloneNode(true);
    this.element.dataset.digest = digest;
    this.part = (name) => this.element.querySelector(name);
    const toggle = () => (this.open(!this.isOpen), host.toggled(this));
    this.part('.more').addEventListener('click', toggle);
    this.part('.line').addEventListener('click', (event) => !event.target.closest('button, input') && toggle());
    this.part('.pick').addEventListener('click', (event) => host.picked(this, event.target.checked));
  }

  get isPending() {
    return this.rows.some((row) => row.isPending);
  }

  /** Shows that `rows` are its members, the most urgent first. */
  update(rows) {
    this.rows = rows;
    const { task } = rows[0];
    const name = shortened(visibleText(task.tool), 128);
    const title = this.part('.tool');
    title.id = `group-${this.digest}`;
    title.textContent = name;
    this.element.setAttribute('aria-labelledby', title.id);
    title.append(make('span', 'times', ` × ${rows.length}`));
    this.part('.brief').textContent = briefOf(task);
    putAsker(this.part('.asker'), task);
    this.part('.pick').setAttribute('aria-label', `Select all ${rows.length} equal calls of ${name}`);
    this.part('.more').setAttribute('aria-label', `The ${rows.length} equal calls of ${name}`);
    this.open(this.isOpen);
    this.showPicked();
    this.tick();
  }

  open(isOpen) {
    this.isOpen = isOpen;
    this.element.classList.toggle('open', isOpen);
    this.part('.more').setAttribute('aria-expanded', String(isOpen));
    for (const row of this.rows) row.element.hidden = !isOpen;
  }

  showPicked() {
    const picked = this.rows.filter((row) => row.isPicked).length;
    this.part('.pick').checked = picked > 0 && picked === this.rows.length;
    this.part('.pick').indeterminate = picked > 0 && picked < this.rows.length;
    this.element.classList.toggle('picked', picked > 0);
  }

  tick() {
    const text = this.rows[0]?.deadlineText ?? '';
    if (this.part('.deadline').textContent !== text) this.part('.deadline').textContent = text;
  }

  focus() {
    this.element.focus({ preventScroll: true });
    this.element.scrollIntoView({ block: 'nearest' });
  }
}
