// Single keys, for those who go through many calls. Off while something is typed or a dialog is open.
const KEY = 'taskgate-keys';
const byId = (id) => document.getElementById(id);

const isTyping = (element) => element.closest('textarea, select, input:not([type="checkbox"])') !== null;
const isPressed = (element) => element.closest('button, a, summary, input') !== null;

const isOn = () => localStorage.getItem(KEY) !== 'off';

/**
 * Listens. `actions` has a function for each of: move(step), open, close, decide(verb), select,
 * search, arrange, of which every one finds out for itself what is current; isDropped() says whether no key counts now.
 */
export function listenToKeys(actions) {
  const keys = {
    j: () => actions.move(1),
    k: () => actions.move(-1),
    Enter: () => actions.open(),
    Escape: () => actions.close(),
    a: () => actions.decide('approve'),
    r: () => actions.decide('reject'),
    x: () => actions.select(),
    '.': () => actions.arrange(),
    '/': () => actions.search(),
    '?': () => byId('help').showModal(),
  };
  addEventListener('keydown', (event) => {
    const { key, target } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.defaultPrevented) return;
    if (!(key in keys) || byId('board').hidden || document.querySelector('dialog[open]')) return;
    if (key !== 'Escape' && (isTyping(target) || !(isOn() || key === 'Enter'))) return;
    if (key === 'Enter' && isPressed(target)) return;
    if (actions.isDropped()) return event.preventDefault();
    if (keys[key]() !== false) event.preventDefault();
  });
}

byId('help-open').addEventListener('click', () => byId('help').showModal());
byId('help-close').addEventListener('click', () => byId('help').close());
byId('keys-on').checked = isOn();
byId('keys-on').addEventListener('change', () => (byId('keys-on').checked ? localStorage.removeItem(KEY) : localStorage.setItem(KEY, 'off')));
