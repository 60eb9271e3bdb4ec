// The members of a task about deciding, in words.

/* Why somebody with the role to decide may not decide this call, by the code of the API. */
const WHY_NOT = {
  own_call: 'This is your own call: somebody else must approve it.',
  not_an_approver: 'You are not among those who decide this workflow.',
  definition_changed: 'The server has changed the tool since this call was made: the agent has to call again.',
};

export const VERBS = ['approve', 'reject', 'withdraw', 'emergency'];

export const isPending = (task) => task.state === 'pending';

export const may = (task, verb) => task.you.get(verb) === true;

export const whyNot = (task) => (may(task, 'approve') ? '' : WHY_NOT[task.you.get('code')] ?? '');

/** Whether this vote must have a reason. */
export const needsReason = (task, verb) => verb === 'emergency' || task.reasons?.get(verb) === 'required';

/** How many persons must approve. */
export function neededOf(task) {
  const sum = (object) => object.members.reduce((all, [, number]) => all + Number(number.text), 0);
  return task.quorum ? sum(task.quorum) : sum(task.missing) + approvalsOf(task).length;
}

const approvalsOf = (task) => task.votes.filter((vote) => vote.get('verb') === 'approve');

/** {count: n} or {GROUP: n} in words: "1 more", "1 of dba, 2 of security". */
function missingOf(task) {
  const count = task.missing.get('count');
  if (count !== undefined && (!task.quorum || task.quorum.get('count') !== undefined)) return `${count.text} more`;
  return task.missing.members.map(([group, number]) => `${number.text} of ${group}`).join(', ');
}

/** Votes as a sentence: "1 of 2: alice; needs 1 of security". '' where one person decides. */
export function votesOf(task) {
  const needed = neededOf(task);
  const approvals = approvalsOf(task);
  if (needed < 2 && approvals.length < 2 && !task.emergency) return '';
  const names = approvals.map((vote) => `${vote.get('person')}${vote.get('reason') ? ` (“${vote.get('reason')}”)` : ''}`);
  const said = `${task.emergency ? 'In an emergency, alone' : `${approvals.length} of ${needed}`}${names.length > 0 ? `: ${names.join(', ')}` : ''}`;
  return task.missing.members.length > 0 ? `${said}; needs ${missingOf(task)}` : said;
}

/** Milliseconds until it is too late to decide; NaN when nothing runs out. */
export const timeLeft = (task, now = Date.now()) => (isPending(task) && task.decideBy ? Date.parse(task.decideBy) - now : NaN);

/** The order of the inbox: what runs out first stands first. */
export function bySoonest(a, b) {
  const [first, second] = [a, b].map((task) => (task.decideBy ? Date.parse(task.decideBy) : Infinity));
  if (first !== second) return first - second;
  return Date.parse(a.createdAt) - Date.parse(b.createdAt) || (a.id < b.id ? -1 : 1);
}

/** The outcome of a task, as a sentence. '' while it waits. */
export function outcomeOf(task, timeText) {
  if (isPending(task)) return '';
  // Another person may have stopped the call later: only the message names that one.
  const wasApproved = task.decidedBy && (task.executeBy || task.wasApproved);
  // A row does not say whether the call was approved before it was ended.
  if (task.isRow && task.state === 'cancelled' && !wasApproved) return task.statusMessage;
  const verb = wasApproved ? 'Approved' : { rejected: 'Rejected', cancelled: 'Cancelled' }[task.state] ?? 'Approved';
  const said = [];
  if (task.decidedBy) said.push(`${verb} by ${task.decidedBy}${task.decidedAt ? `, ${timeText(task.decidedAt)}` : ''}`);
  if (task.reason) said.push(`“${task.reason}”`);
  const repeats = !wasApproved && (task.state === 'rejected' || task.state === 'cancelled');
  if (task.statusMessage && !(said.length > 0 && repeats)) said.push(task.statusMessage);
  return said.join(' · ');
}
