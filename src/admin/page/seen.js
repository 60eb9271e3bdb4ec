// A request is decided on when its end was on screen: each part of it ends in an element that is watched for.
import { make } from './text.js';

/** The parts of a request beside its arguments, for a person. */
export const PART_NAMES = { _meta: 'the metadata', params: 'the other parameters', headers: 'the headers' };

/** An element at the end of a part of a request. `name` is the part, for a person. */
export function endOf(name) {
  const end = make('span', 'end-of-request');
  end.dataset.part = name;
  return end;
}

/* Whether an element is within the window and within every box around it that scrolls, and nothing lies over it. */
function isOnScreen(element) {
  const { left, right, top, bottom } = element.getBoundingClientRect();
  if (bottom <= top || document.visibilityState !== 'visible') return false;
  let [from, to] = [0, innerHeight];
  for (let box = element.parentElement; box && box !== document.documentElement; box = box.parentElement) {
    if (getComputedStyle(box).overflowY === 'visible') continue;
    const outer = box.getBoundingClientRect();
    [from, to] = [Math.max(from, outer.top), Math.min(to, outer.bottom)];
  }
  if (top < from - 1 || bottom > to + 1) return false;
  return [left, (left + right) / 2, right - 1].every((x) => {
    const over = document.elementFromPoint(x, (top + bottom) / 2);
    return over === null || over.contains(element);
  });
}

/* Those with an end that is not seen yet. An end comes out from below the bar of the selection by scrolling alone, of
 * which the observer says nothing. */
const looking = new Set();
document.addEventListener('scroll', () => {
  for (const seen of looking) seen.look();
}, { capture: true, passive: true });

/** Says what is left to see. Less text, or none, leaves the buttons below where they are. */
export function putKeepingRoom(element, text) {
  if (text !== '') element.textContent = text;
  element.classList.toggle('done', text === '');
  element.style.minHeight = `${element.getBoundingClientRect().height}px`;
}

export class Seen {
  /** `changed()` is called when an end came on screen. */
  constructor(changed) {
    this.changed = changed;
    this.ends = new Set();
    this.observer = new IntersectionObserver(() => this.look());
  }

  /** Watches all ends in these elements; those of before are done with. */
  watch(...elements) {
    this.observer.disconnect();
    this.ends = new Set(elements.flatMap((element) => [...element.querySelectorAll('.end-of-request')]));
    for (const end of this.ends) this.observer.observe(end);
    this.look();
  }

  /** Looks now, for those who cannot wait for the next frame. */
  look() {
    for (const end of this.ends) {
      if (!isOnScreen(end)) continue;
      this.ends.delete(end);
      this.observer.unobserve(end);
    }
    if ([...this.ends].some((end) => end.isConnected)) looking.add(this);
    else looking.delete(this);
    this.changed();
  }

  /** A sentence on what is left to see; '' when nothing is. */
  get text() {
    const parts = [...new Set([...this.ends].map((end) => end.dataset.part))];
    return parts.length === 0 ? '' : `Approving is possible when the end of each of these was on screen: ${parts.join(', ')}.`;
  }
}
