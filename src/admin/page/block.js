// Blocks: the dialog that stops the caller of a task for a while.
import { ApiError, blockCaller } from './api.js';
import { askerText, putText, timeText } from './text.js';

const byId = (id) => document.getElementById(id);

/** Whether this person may block; set once it is known who they are. */
export const blocks = { mayBlock: false };

let asked; // {task, told} of the open dialog

/** Asks for a block of the task's caller, and makes it. `told(text)` when it is made. */
export function askBlock(task, told) {
  asked = { task, told };
  putText(byId('block-asker'), `${askerText(task)} at ${task.source}`);
  // A new session of a caller that is not verified is a new owner.
  byId('block-scope').value = task.principalBy === 'issuer' ? 'owner' : 'client';
  byId('block-reason').value = '';
  byId('block-problem').textContent = '';
  byId('block-dialog').showModal();
  byId('block-reason').focus();
}

async function make() {
  const { task, told } = asked;
  const button = byId('block-confirm');
  button.disabled = true;
  try {
    const { until } = await blockCaller({ task: task.id, scope: byId('block-scope').value, for: byId('block-for').value, reason: byId('block-reason').value.trim() });
    byId('block-dialog').close();
    told(`Blocked until ${timeText(until)}`);
  } catch (error) {
    putText(byId('block-problem'), error instanceof ApiError && error.status > 0 ? `Not done: ${error.message}` : 'It is not known whether this block arrived: the gateway does not answer.');
  } finally {
    button.disabled = false;
  }
}

byId('block-form').addEventListener('submit', (event) => {
  event.preventDefault();
  make();
});
byId('block-cancel').addEventListener('click', () => byId('block-dialog').close());
