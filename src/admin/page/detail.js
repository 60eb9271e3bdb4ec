// The details of one task: what surrounds the call, then the call itself, then the decision.
import { lastApproved } from './api.js';
import { linkOf } from './address.js';
import { askBlock, blocks } from './block.js';
import { changeElement } from './changes.js';
import { putContext, putFacts } from './context.js';
import { differences } from './diff.js';
import { Edit } from './edit.js';
import { Execution } from './execution.js';
import { GrantWish } from './grant_wish.js';
import { JsonObject, jsonPieces } from './json.js';
import { notesOf } from './marks.js';
import { hasApproved, putPast } from './past.js';
import { endOf, PART_NAMES, putKeepingRoom, Seen } from './seen.js';
import { plural, putPieces, putText, timeText } from './text.js';
import { isPending, may, needsReason, neededOf, VERBS, whyNot } from './votes.js';

// Above so many lines the arguments are folded, which is said beside them.
const TALL_LINES = 24;
const TALL_CHARACTERS = 3000;

/* What somebody fills in, in words. */
const FIELDS = {
  '.reason': 'Reason',
  '.edited': 'New arguments',
  '.grant-wanted': 'Allow the same call again without being asked',
  '.grant-for': 'Allow it for',
  '.grant-calls': 'Allow so many calls',
};

export class Detail {
  /** `decide(verb, reason)` is called for a press of a button whose reason is there. */
  constructor(row, decide) {
    this.row = row;
    this.element = document.getElementById('detail').content.firstElementChild.cloneNode(true);
    this.part = (name) => this.element.querySelector(name);
    const { task } = row;
    for (const verb of VERBS) {
      // The second click of two on a dialog's button comes down on what was below it.
      this.part(`button.${verb}`).addEventListener('click', ({ detail }) => detail < 2 && this.hasReason(verb) && this.hasTerms(verb) && decide(verb, this.reason));
    }
    this.part('.unfold').addEventListener('click', () => this.fold(!this.part('.arguments').classList.contains('folded')));
    this.part('button.block').addEventListener('click', () => askBlock(this.task, (text) => this.row.setProblem(text)));
    this.part('.copy-link').addEventListener('click', () => this.copyLink());
    this.part('.reason').id = `reason-${task.id}`;
    this.part('.reason-label').htmlFor = `reason-${task.id}`;
    this.wish = new GrantWish(this.part('.grant-wish'));
    this.edit = new Edit(this.part('.edit'));
    this.execution = new Execution(this.part, row);
    for (const button of this.element.querySelectorAll('button')) this.nameButton(button);
    for (const [name, words] of Object.entries(FIELDS)) this.part(name).setAttribute('aria-label', `${words}: ${row.name}`);
    this.controls = [...this.part('.decision').childNodes];
    this.seen = new Seen(() => this.putSeen());
    this.putArguments(task);
    this.putMore('.meta', task.meta, task, '_meta');
    this.putMore('.other-params', task.otherParams, task, 'params');
    this.putMore('.headers', task.headers, task, 'headers');
    this.seen.watch(this.element);
  }

  /* Controls of different calls have different names. */
  nameButton(button) {
    button.setAttribute('aria-label', `${button.textContent}: ${this.row.name}`);
  }

  get reason() {
    return this.part('.reason')?.value.trim() ?? '';
  }

  putArguments(task) {
    const pieces = jsonPieces(task.arguments, task.redactFields, task.highlight, false, notesOf(task));
    putPieces(this.part('.arguments'), pieces);
    this.part('.arguments').append(endOf('the arguments'));
    const lines = pieces.reduce((count, piece) => count + (piece.kind === 'break' ? 1 : piece.text.split('\n').length - 1), 1);
    const characters = pieces.reduce((count, piece) => count + piece.text.length, 0);
    this.isTall = lines > TALL_LINES || characters > TALL_CHARACTERS;
    this.size = `${lines} ${lines === 1 ? 'line' : 'lines'}, ${characters.toLocaleString()} characters`;
    this.part('.unfold').hidden = !this.isTall;
    this.fold(this.isTall);
  }

  /** The parts of a call beside its arguments; most calls have none. */
  putMore(name, value, task, top) {
    const isNothing = value === undefined || (value instanceof JsonObject && value.members.length === 0);
    this.part(name).closest('.box').hidden = isNothing;
    if (isNothing) return;
    putPieces(this.part(name), jsonPieces(value, task.redactFields, [], false, notesOf(task, top)));
    this.part(name).append(endOf(PART_NAMES[top]));
  }

  fold(isFolded) {
    this.part('.arguments').classList.toggle('folded', isFolded);
    this.part('.unfold').textContent = isFolded ? 'Show all' : 'Show less';
    this.nameButton(this.part('.unfold'));
    this.part('.unfold').setAttribute('aria-expanded', String(!isFolded));
    this.part('.size').textContent = this.isTall ? `${this.size}${isFolded ? ' · scroll or' : ''}` : '';
  }

  /** Shows the task as it is now. */
  update(task) {
    this.task = task;
    this.part('button.block').hidden = !blocks.mayBlock;
    putFacts(this.part('.facts'), task);
    putContext(this.part, task);
    putPast(this.part('.past'), task);
    this.execution.update(task);
    this.putOriginal();
    this.putControls();
  }

  /** Somebody looks at it: what must be asked of the gateway first is asked now. */
  shown() {
    if (!this.isShown && isPending(this.task) && hasApproved(this.task)) this.compare();
    this.isShown = true;
    this.seen.look();
    this.execution.shown();
  }

  /* An approval by habit is the danger: what is different this time is before the arguments. The box has its room
   * before its words, or it would push the buttons away from under a press. */
  async compare() {
    this.part('.since-last').hidden = false;
    const say = (text) => putText(this.part('.since-last .arguments-title'), text);
    say('Looking for the last call that a person approved…');
    try {
      const last = await lastApproved(this.task);
      if (!last) return say('The last call that a person approved is not kept any more.');
      const title = `Compared with the call that ${last.decidedBy} approved, ${timeText(last.decidedAt ?? last.createdAt)}`;
      this.putDifferences('.since-last', title, last.arguments, this.task.arguments);
    } catch {
      say('The last call that a person approved could not be read.');
    }
  }

  /* The client's own arguments, when a changed call runs. */
  putOriginal() {
    const { originalArguments, decidedBy } = this.task;
    if (!originalArguments || this.hasOriginal) return;
    this.hasOriginal = true;
    this.putArguments(this.task);
    this.seen.watch(this.element);
    this.putDifferences('.since-original', `Changed by ${decidedBy}; the client asked for the values on top`, originalArguments, this.task.arguments);
  }

  putDifferences(name, title, before, after) {
    const hidden = this.task.redactFields;
    const found = differences(before, after, hidden);
    const box = this.part(name);
    box.hidden = false;
    const count = found.changes.length;
    putText(box.querySelector('.arguments-title'), count > 0 ? `${title}: ${plural(count, 'difference')}` : title);
    const list = box.querySelector('.changes');
    list.replaceChildren(...found.changes.map(changeElement));
    const notes = [];
    if (count === 0) notes.push('The arguments are the same.');
    if (found.isCut) notes.push('There are more differences than are shown here.');
    if (found.hasHidden) notes.push('Hidden values are not compared.');
    box.querySelector('.note').textContent = notes.join(' ');
  }

  async copyLink() {
    const button = this.part('.copy-link');
    try {
      await navigator.clipboard.writeText(linkOf(this.task.id));
      button.textContent = 'Copied';
    } catch {
      button.textContent = 'Not allowed here: copy the address of this page';
    }
    this.nameButton(button);
  }

  /** Whether the reason that this verb needs is there; else it is asked for. */
  hasReason(verb) {
    if (verb === 'withdraw' || !needsReason(this.task, verb) || this.reason) return true;
    this.row.setProblem(verb === 'emergency' ? 'An emergency needs a reason.' : 'This vote needs a reason.');
    this.part('.reason').focus();
    return false;
  }

  /** Whether the terms of the grant, where one is wished for, can be asked for. */
  hasTerms(verb) {
    if (verb !== 'approve') return true;
    if (this.grant === null) this.row.setProblem('The grant needs a number of calls that the workflow allows.');
    else if (this.edit.text === null) this.row.setProblem('The new arguments are not a JSON object.');
    else return true;
    return false;
  }

  /** The grant to ask for with an approval, or undefined. */
  get grant() {
    return this.wish.value;
  }

  /** Only the buttons that this person may press; without any, a word on why. */
  putControls() {
    const { task } = this;
    const decision = this.part('.decision');
    const isShown = isPending(task) && VERBS.some((verb) => may(task, verb));
    // The buttons below must not come under the next press when a call was just decided.
    const isHeld = !isShown && this.row.element.classList.contains('held');
    decision.style.minHeight = isHeld ? `${decision.getBoundingClientRect().height}px` : '';
    decision.hidden = !isShown && !isHeld;
    if (!isShown) decision.replaceChildren();
    else if (!decision.hasChildNodes()) decision.replaceChildren(...this.controls);
    if (isShown) this.putButtons();
    const why = isPending(task) ? whyNot(task) : '';
    this.part('.why-not').hidden = why === '';
    this.part('.why-not').textContent = why;
  }

  putButtons() {
    const { task } = this;
    for (const verb of VERBS) this.part(`button.${verb}`).hidden = !may(task, verb);
    // An emergency is for when the others cannot be reached: not beside a vote that decides by itself.
    this.putSeen();
    this.part('button.emergency').hidden ||= may(task, 'approve') && neededOf(task) < 2;
    this.wish.offer(task);
    this.edit.offer(task);
    const required = ['approve', 'reject'].filter((verb) => may(task, verb) && needsReason(task, verb));
    this.part('.reason').required = required.length > 0;
    this.part('.reason-label .hint').textContent = required.length > 0 ? `(required to ${required.join(' or ')}, kept with the decision)` : '(optional, kept with the decision)';
  }

  setBusy(isBusy) {
    this.isBusy = isBusy;
    for (const button of this.element.querySelectorAll('.buttons button')) button.disabled = isBusy;
    this.putSeen();
  }

  /* The parts are in the document only while somebody may decide. */
  putSeen() {
    const approve = this.part('button.approve');
    if (!approve) return;
    const { text } = this.seen;
    approve.disabled = this.isBusy === true || text !== '';
    const unseen = this.part('.unseen');
    this.hasUnseenRoom ||= this.isShown && text !== '';
    unseen.hidden = approve.hidden || !this.hasUnseenRoom;
    putKeepingRoom(unseen, text);
  }
}
