// The outcomes of the other calls of a tool, beside one that is looked at.
import { putText, timeText } from './text.js';
import { isPending } from './votes.js';

const OUTCOMES = ['approved', 'rejected', 'expired', 'failed'];

function countsText(counts) {
  return OUTCOMES.map((name) => `${Number(counts.get(name).text).toLocaleString('en')} ${name}`).join(', ');
}

/* "30 days: 12 approved, …; this caller: …; …" */
function pastText(history) {
  const parts = [`${history.get('days').text} days: ${countsText(history)}`, `this caller: ${countsText(history.get('caller'))}`];
  const [same, last] = [history.get('same'), history.get('last')];
  if (same) parts.push(`approvals with these arguments: ${same.get('approved').text}, last ${timeText(same.get('at'))}`);
  if (last) parts.push(`last ${last.get('outcome')} by ${last.get('person')}, ${timeText(last.get('at'))}${last.get('reason') ? `: “${last.get('reason')}”` : ''}`);
  return parts.join('; ');
}

/** Whether the gateway knows of an approved call to compare with. */
export const hasApproved = ({ history }) => Number(history?.get('approved').text) > 0 || history?.get('last')?.get('outcome') === 'approved';

/**
 * Fills the line; a task that has just been decided comes without it, and leaves the line as it is. While the call waits
 * it stays what it was first: a longer one would move the buttons.
 */
export function putPast(line, task) {
  const { history } = task;
  if (!history || (isPending(task) && !line.hidden)) return;
  putText(line, pastText(history));
  line.hidden = false;
}
