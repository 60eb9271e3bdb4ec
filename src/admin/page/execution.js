// The end of an approved call: the first words of its outcome, and the button that ends it early.
import { cancelCall, outcomeOfCall } from './api.js';
import { putText } from './text.js';

const MOST_BYTES = 1024;
const CANCELLABLE = new Set(['approved', 'executing']);

/* The first text of a result, or the message of an error. */
function wordsOf({ result, error }) {
  if (error) return { title: 'Error', text: error.message ?? '' };
  const first = result?.content?.find?.(({ type }) => type === 'text')?.text;
  return { title: result?.isError ? 'Error of the tool' : 'Result', text: first ?? JSON.stringify(result?.structuredContent ?? result ?? null) };
}

function cut(text) {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= MOST_BYTES) return text;
  return `${new TextDecoder().decode(bytes.slice(0, MOST_BYTES)).replace(/\uFFFD$/, '')}…`;
}

export class Execution {
  constructor(part, row) {
    this.part = part;
    this.row = row;
    part('button.cancel').addEventListener('click', () => this.cancel());
  }

  update(task) {
    this.task = task;
    const isApprover = document.getElementById('may-not-decide').hidden;
    this.part('button.cancel').hidden = !(isApprover && CANCELLABLE.has(task.state));
    if (this.isOpen) this.shown();
  }

  /** Somebody looks at it: the outcome is asked for once. */
  async shown() {
    this.isOpen = true;
    if (this.isAsked || this.task.execution?.get('state') !== 'done' || !this.task.execution.get('startedAt')) return;
    this.isAsked = true;
    try {
      const { title, text } = wordsOf(await outcomeOfCall(this.task.id));
      this.part('.outcome-title').textContent = title;
      putText(this.part('.outcome-text'), cut(text));
      this.part('.outcome-box').hidden = false;
    } catch {
      this.isAsked = false; // the connection, which the page speaks of elsewhere
    }
  }

  async cancel() {
    if (!confirm(`Cancel ${this.row.name}? What has begun at the server may have had its effect.`)) return;
    const button = this.part('button.cancel');
    button.disabled = true;
    try {
      await cancelCall(this.task.id);
    } catch (error) {
      this.row.setProblem(error.message);
    } finally {
      button.disabled = false;
    }
  }
}
