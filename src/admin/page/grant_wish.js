// The wish beside an approval: the same call again, for a while and so often.
import { putText, visibleText } from './text.js';

const UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const CHOICES = ['10m', '30m', '1h', '4h', '8h', '1d'];

/** Milliseconds of a duration as the configuration has it: "1h30m". */
export function durationMs(text) {
  return [...text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)].reduce((sum, [, number, unit]) => sum + Number(number) * UNITS[unit], 0);
}

/* With several votes all must ask for the same, so the first wish is offered to the next. */
const firstWish = (task) => task.votes.map((vote) => vote.get('grant')).find((grant) => grant?.get?.('for'));

export class GrantWish {
  constructor(element) {
    this.element = element;
    this.part = (name) => element.querySelector(name);
    this.part('.grant-wanted').addEventListener('change', () => this.show());
  }

  /** Offers what the workflow allows, to whom it allows it. */
  offer(task) {
    const offer = task.grantOffer;
    this.isOffered = Boolean(offer) && task.you.get('grant') === true;
    this.element.hidden = !this.isOffered;
    if (!this.isOffered || this.isFilled) return;
    this.isFilled = true;
    const most = offer.get('max');
    const wish = firstWish(task);
    const shorter = CHOICES.filter((choice) => durationMs(choice) < durationMs(most));
    this.part('.grant-for').replaceChildren(...[...shorter, most].map((choice) => new Option(choice, choice)));
    if (wish && ![...shorter, most].includes(wish.get('for'))) this.part('.grant-for').add(new Option(wish.get('for'), wish.get('for')));
    this.part('.grant-for').value = wish?.get('for') ?? most;
    this.part('.grant-calls').max = offer.get('maxCalls').text;
    this.part('.grant-calls').value = wish?.get('calls').text ?? offer.get('maxCalls').text;
    const vary = (offer.get('vary') ?? []).map((path) => visibleText(path)).join(', ');
    putText(this.part('.grant-vary'), vary ? `Only these arguments may differ: ${vary}.` : 'Every argument must be the same.');
    this.show();
  }

  show() {
    this.part('.grant-terms').hidden = !this.part('.grant-wanted').checked;
  }

  /** {for, calls}, or undefined; null when what is typed is no number that is allowed. */
  get value() {
    if (!this.isOffered || !this.part('.grant-wanted').checked) return undefined;
    const calls = this.part('.grant-calls');
    if (!calls.checkValidity() || calls.value === '') return null;
    return { for: this.part('.grant-for').value, calls: Number(calls.value) };
  }
}
