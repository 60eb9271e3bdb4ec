// Other arguments in place of the client's, at the paths where the workflow allows it.
import { changeElement } from './changes.js';
import { differences } from './diff.js';
import { JsonObject, jsonPieces, readJson } from './json.js';
import { putText, visibleText } from './text.js';

const jsonText = (value) => jsonPieces(value, [], [], true).map((piece) => piece.text).join('');

export class Edit {
  constructor(element) {
    this.element = element;
    this.part = (name) => element.querySelector(name);
    this.part('.edit-begin').addEventListener('click', () => this.begin());
    this.part('.edit-drop').addEventListener('click', () => this.drop());
    this.part('.edited').addEventListener('input', () => this.show());
  }

  /** Offers what the workflow allows, to whom it allows it. Hidden values cannot be sent back, so they forbid it. */
  offer(task) {
    this.task = task;
    this.isOffered = task.allowEdit?.length > 0 && task.you.get('edit') === true && task.redactFields.length === 0;
    this.element.hidden = !this.isOffered;
    if (!this.isOffered) return;
    putText(this.part('.edit-paths'), `You may change ${task.allowEdit.map((path) => visibleText(path)).join(', ')}.`);
  }

  get isOpen() {
    return this.isOffered && !this.part('.edit-area').hidden;
  }

  begin() {
    const area = this.part('.edited');
    area.value = jsonText(this.task.arguments);
    area.rows = Math.min(24, area.value.split('\n').length + 1);
    this.part('.edit-area').hidden = false;
    this.part('.edit-begin').hidden = true;
    this.show();
    area.focus();
  }

  drop() {
    this.part('.edit-area').hidden = true;
    this.part('.edit-begin').hidden = false;
    this.part('.edit-begin').focus();
  }

  /** The new arguments as a JSON value; null when what is typed is none. */
  get value() {
    try {
      const value = readJson(this.part('.edited').value);
      return value instanceof JsonObject ? value : null;
    } catch {
      return null;
    }
  }

  show() {
    const { value } = this;
    const found = value ? differences(this.task.arguments, value) : { changes: [] };
    this.part('.edit-changes').replaceChildren(...found.changes.map(changeElement));
    this.part('.edit-note').textContent = !value ? 'This is not a JSON object.' : found.changes.length === 0 ? 'Nothing is changed.' : found.isCut ? 'There are more changes than are shown here.' : '';
    this.isChanged = found.changes.length > 0;
  }

  /** The text to send with an approval; undefined: the client's arguments; null: it cannot be sent. */
  get text() {
    if (!this.isOpen) return undefined;
    if (!this.value) return null;
    return this.isChanged ? this.part('.edited').value : undefined;
  }

  /** The task as it would be with the new arguments. */
  get edited() {
    return this.text ? { ...this.task, arguments: this.value } : this.task;
  }
}
