// The ledger of the chaos: beside what every ledger has, votes of several, grants, and questions of servers.
import assert from 'node:assert/strict';
import { Ledger, TERMINAL } from '../../faults/lib/ledger.mjs';

/** Votes that the call of `wipe_user` needs. */
export const QUORUM = 2;
/** Uses of each grant. */
export const GRANT_CALLS = 4;

/** Adds the message of what `look` throws. */
function note(list, look) {
  try {
    look();
  } catch (error) {
    list.push(error.message);
  }
}

const RUN = ['approved', 'executing', 'completed'];

export class ChaosLedger extends Ledger {
  constructor() {
    super();
    // name → {fate, allowed, used: calls upstream that only a grant allows, isAsked, isGiven, isUnwanted, isEnded, isRevoked, late}
    this.series = new Map();
    this.grants = new Map(); // id → name of its series
    this.questions = new Map(); // marker → [{sent: Set of answers, acted: [answer]}], one for each round
    this.strange = []; // sentences about answers that no client has given
    this.lastAnswer = 0;
    this.withoutTasks = new Set(); // markers of clients without tasks
    this.stale = 0; // states of held calls that a leaping clock has made old
    this.held = new Map(); // marker → the state that a client without tasks was told
  }

  mayRun(marker) {
    const { votes, series, hasGrant } = this.sent.get(marker);
    if (votes) return votes.size >= QUORUM;
    return super.mayRun(marker) || (hasGrant && this.series.get(series).allowed > 0);
  }

  called(marker) {
    super.called(marker);
    const { series, verbs } = this.sent.get(marker);
    if (series === undefined || verbs.has('approve')) return;
    const { allowed } = this.series.get(series);
    const used = ++this.series.get(series).used;
    assert.ok(used <= allowed, `upstream was called ${used} times by grants of ${series}, which allow ${allowed}`);
  }

  /* ---- votes: `sent.votes` are the persons who have at least sent theirs, less those who are told that it is back ---- */

  markVoted() {
    return this.mark({ votes: new Set(), told: new Set() });
  }

  voting(marker, person) {
    this.sent.get(marker).votes.add(person);
  }

  toldVote(marker, person) {
    this.sent.get(marker).told.add(person);
  }

  withdrawing(marker, person) {
    this.sent.get(marker).told.delete(person);
  }

  toldWithdrawn(marker, person) {
    this.sent.get(marker).votes.delete(person);
  }

  checkVotes(task) {
    const { votes, told } = this.sent.get(task.arguments.marker);
    const approving = new Set(task.votes.filter(({ verb }) => verb === 'approve').map(({ person }) => person));
    const names = [...approving].join(', ') || 'nobody';
    for (const person of told) assert.ok(approving.has(person), `${task.id} lacks the vote of ${person}; it has those of ${names}`);
    for (const person of approving) assert.ok(votes.has(person), `${task.id} has a vote of ${person}, who has not sent one or has it back`);
  }

  /** As the store has it, beside what the ledger has seen of those who vote. */
  checkQuorum(task) {
    const approving = new Set(task.votes.filter(({ verb }) => verb === 'approve').map(({ person }) => person));
    const names = [...approving].join(', ') || 'nobody';
    const mayRun = RUN.includes(task.state) || this.calls.has(task.arguments.marker);
    assert.ok(!mayRun || approving.size >= QUORUM, `${task.id} is ${task.state} with the votes of ${names}`);
  }

  /* ---- grants: a call may run by a grant of its series, unless it was made after somebody was told of its end ---- */

  startSeries(fate) {
    const name = `series ${this.series.size + 1}`;
    this.series.set(name, { fate, allowed: 0, used: 0, isAsked: false, isGiven: false, isUnwanted: false, isEnded: false, isRevoked: false, late: 0 });
    return name;
  }

  /** `isAstray`: the call has another argument than the grant is for. */
  markOfSeries(name, { isAstray = false } = {}) {
    const series = this.series.get(name);
    if (series.isRevoked) series.late++;
    return this.mark({ series: name, hasGrant: !series.isEnded && !isAstray, isAstray });
  }

  granting(name) {
    const series = this.series.get(name);
    series.allowed += GRANT_CALLS;
    series.isAsked = true;
  }

  toldGrant(id, name) {
    this.grants.set(id, name);
    this.series.get(name).isGiven = true;
  }

  /** Somebody is told that it has ended; `isRevoked`: by his word. */
  toldEnd(name, isRevoked) {
    const series = this.series.get(name);
    Object.assign(series, { isEnded: true, isRevoked: series.isRevoked || isRevoked });
  }

  /** Each grant by the list of grants and by the tasks; `grants` is a Map by id. */
  grantBreaches(grants, tasks) {
    const found = [];
    const uses = new Map([...grants.keys()].map((id) => [id, []]));
    for (const task of tasks.values()) {
      const id = /^grant:(.*)/.exec(task.decidedBy)?.[1];
      if (id === undefined) continue;
      if (!uses.has(id)) found.push(`${task.id} was decided by ${id}, which is not there`);
      else uses.get(id).push(task);
    }
    for (const [id, name] of this.grants) {
      const grant = grants.get(id);
      if (!grant) found.push(`the grant ${id} of ${name} was told to somebody and is not there`);
      else if (this.series.get(name).isEnded && grant.state !== 'ended') found.push(`the grant ${id} of ${name} is ${grant.state}, and somebody was told of its end`);
    }
    for (const [id, used] of uses) found.push(...this.usesBreaches(grants.get(id), used));
    return found;
  }

  usesBreaches(grant, used) {
    const found = [];
    const numbers = used.map((task) => task.grant?.use).sort();
    const expected = used.map((_, i) => i + 1);
    if (used.length > GRANT_CALLS) found.push(`${grant.id} is for ${GRANT_CALLS} calls and has decided ${used.length}`);
    if (grant.used !== used.length) found.push(`${grant.id} says that it was used ${grant.used} times, and has decided ${used.length} calls`);
    if (numbers.join() !== expected.join()) found.push(`${grant.id} has numbered its calls ${numbers.join(', ')}`);
    for (const { id, arguments: { series } } of used) if (series !== grant.arguments.series) found.push(`${id} of ${series} was decided by ${grant.id} of ${grant.arguments.series}`);
    return found;
  }

  /* ---- questions: a server asks one after the other, and says which answer it has acted on ---- */

  asked(marker, round) {
    const rounds = this.questions.get(marker) ?? [];
    this.questions.set(marker, rounds);
    assert.equal(rounds.length, round, `the server asks question ${round} of ${marker} after ${rounds.length} of them`);
    rounds.push({ sent: new Set(), acted: [] });
  }

  /** Its client sees the question. A new answer, which nobody has given before. */
  answering(marker, round) {
    const question = this.questions.get(marker)?.[round];
    assert.ok(question, `a client of ${marker} is asked question ${round}, which its server has not asked`);
    const answer = `answer ${++this.lastAnswer}`;
    question.sent.add(answer);
    return answer;
  }

  acted(marker, round, answer) {
    const question = this.questions.get(marker)?.[round];
    if (!question?.sent.has(answer)) {
      this.strange.push(`the server got ${answer} to question ${round} of ${marker}, which its client has not given`);
      assert.fail(this.strange.at(-1));
    }
    question.acted.push(answer);
    assert.equal(question.acted.length, 1, `the server got ${question.acted.length} answers to question ${round} of ${marker}: ${question.acted.join(', ')}`);
  }

  markHeld() {
    const marker = this.mark();
    this.withoutTasks.add(marker);
    return marker;
  }

  isHeld(marker) {
    return this.withoutTasks.has(marker);
  }

  /** The end of a call whose client knows no task; without `state` it says nothing of one. */
  toldHeld(marker, text, state) {
    if (state === 'completed') assert.equal(text, `did ${marker}`, `the result of the held call ${marker}`);
    if (state) this.held.set(marker, state);
  }

  heldBreaches(tasks) {
    const states = new Map([...tasks.values()].map((task) => [task.arguments.marker, task.state]));
    return [...this.held].filter(([marker, state]) => states.get(marker) !== state).map(([marker, state]) => `the held call ${marker} was told to be ${state}, and is ${states.get(marker)}`);
  }

  questionBreaches(tasks) {
    const found = { answers: [...this.strange], questions: [] };
    for (const [marker, rounds] of this.questions)
      for (const [round, { acted }] of rounds.entries()) if (acted.length > 1) found.answers.push(`the server got ${acted.length} answers to question ${round} of ${marker}: ${acted.join(', ')}`);
    for (const task of tasks.values()) {
      const rounds = this.questions.get(task.arguments.marker) ?? [];
      const open = rounds.findIndex(({ acted }) => acted.length === 0);
      if (open >= 0 && task.state === 'completed') found.questions.push(`${task.id} is completed, and the server has no answer to question ${open}`);
      if (open >= 0 && !TERMINAL.includes(task.state)) found.questions.push(`${task.id} is ${task.state}, its server waits for the answer to question ${open}, and its client has been told neither that nor an end`);
    }
    return found;
  }

  /** How often each kind of traffic has come to what it is for: the name of the kind → a number. */
  kinds(tasks) {
    const ran = (isIt) => [...tasks.values()].filter((task) => this.calls.has(task.arguments.marker) && isIt(this.sent.get(task.arguments.marker), task)).length;
    const series = [...this.series.values()];
    const late = series.reduce((sum, one) => sum + one.late, 0);
    const answers = (isHeld) => [...this.questions].flatMap(([marker, rounds]) => (this.isHeld(marker) === isHeld ? rounds : [])).filter(({ acted }) => acted.length > 0).length;
    return {
      'calls run by several votes': ran(({ votes }) => votes),
      'grants told': this.grants.size,
      'calls run by a grant': ran((_, { decidedBy }) => /^grant:/.test(decidedBy)),
      'calls after the revocation of a grant': late,
      'calls outside of a grant': [...this.sent.values()].filter(({ isAstray }) => isAstray).length,
      'answers by tasks/update': answers(false),
      'answers by the call itself': answers(true),
    };
  }

  breaches(tasks, grants = new Map()) {
    const found = { ...super.breaches(tasks), votes: [], grants: this.grantBreaches(grants, tasks), ...this.questionBreaches(tasks) };
    found.lost.push(...this.heldBreaches(tasks));
    for (const task of tasks.values()) {
      const { votes } = this.sent.get(task.arguments.marker) ?? {};
      if (votes === undefined) continue;
      note(found.votes, () => this.checkVotes(task));
      note(found.unapproved, () => this.checkQuorum(task));
    }
    for (const [name, { used, allowed }] of this.series) if (used > allowed) found.grants.push(`upstream was called ${used} times by grants of ${name}, which allow ${allowed}`);
    return found;
  }
}

/** Every grant of the store, page by page. */
export async function allGrants(admin) {
  const grants = new Map();
  let cursor = '';
  do {
    const { status, text, json } = await admin.get(`/api/v1/grants?limit=100${cursor && `&cursor=${encodeURIComponent(cursor)}`}`);
    assert.equal(status, 200, `the grants: HTTP ${status} ${text}`);
    for (const grant of json.grants) grants.set(grant.id, grant);
    cursor = json.nextCursor;
  } while (cursor);
  return grants;
}
