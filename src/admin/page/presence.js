// Whether somebody is at the list of calls: by the focus, the pointer, or a finger that has just left. Nothing in it moves meanwhile.
const TOUCH_REST_MS = 10_000;
const hasHover = matchMedia('(hover: hover)');
const byId = (id) => document.getElementById(id);

/** What changes in this element from now on moves nothing below it. */
export function hold(element) {
  element.style.height = `${element.getBoundingClientRect().height}px`;
  element.classList.add('held');
}

export function letGo(element) {
  element.classList.remove('held');
  element.style.height = '';
}

export class Presence {
  /** `left()` is called when somebody may have left the list. */
  constructor(list, left) {
    this.list = list;
    this.left = left;
    this.touched = -TOUCH_REST_MS;
    list.addEventListener('pointerleave', () => this.leaveSoon());
    list.addEventListener('focusout', (event) => event.relatedTarget !== byId('arrange') && this.leaveSoon());
    list.addEventListener('pointerdown', (event) => event.pointerType !== 'mouse' && this.touch(), true);
    list.addEventListener('touchmove', () => this.touch(), { passive: true });
    byId('decide').addEventListener('close', () => this.leaveSoon());
  }

  get isThere() {
    if (this.list.childElementCount === 0) return false;
    return byId('decide').open || this.list.contains(document.activeElement) || (hasHover.matches && this.list.matches(':hover')) || performance.now() - this.touched < TOUCH_REST_MS;
  }

  touch() {
    this.touched = performance.now();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.left(), TOUCH_REST_MS + 1);
  }

  leaveSoon() {
    setTimeout(() => this.left());
  }
}
