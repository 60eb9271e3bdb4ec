// The page's signs outside itself: the tab's title and icon, and notifications of the browser.
import { askerText, shortened, visibleText } from './text.js';

const KEY = 'taskgate-notify';
const MOST_COUNTED = 9;
const byId = (id) => document.getElementById(id);

/** The number of waiting calls, in the title and on the icon. */
export function showWaiting(count) {
  document.title = count > 0 ? `(${count}) taskgate` : 'taskgate';
  const name = count === 0 ? 'icon.svg' : `icon-${count > MOST_COUNTED ? 'many' : count}.svg`;
  const icon = document.querySelector('link[rel="icon"]');
  if (icon.getAttribute('href') !== name) icon.setAttribute('href', name);
}

/** Says something to a screen reader. */
export function announce(text) {
  byId('announcer').textContent = visibleText(text);
}

const isAble = () => 'Notification' in window && isSecureContext;
const isOn = () => isAble() && Notification.permission === 'granted' && localStorage.getItem(KEY) === 'on';

function showButton() {
  const button = byId('notify');
  button.hidden = !isAble();
  button.setAttribute('aria-pressed', String(isOn()));
  button.textContent = isOn() ? 'Notifications on' : 'Notify me';
}

byId('notify').addEventListener('click', async () => {
  if (isOn()) localStorage.removeItem(KEY);
  else if ((await Notification.requestPermission()) === 'granted') localStorage.setItem(KEY, 'on');
  else announce('The browser does not allow notifications of this page.');
  showButton();
});
showButton();

/** Forgets the wish, as signing out does. */
export function stopNotifying() {
  localStorage.removeItem(KEY);
  showButton();
}

/** Tells somebody who asked for it, and who looks elsewhere, of a new call. Arguments stay on the page. */
export function notify(task, open) {
  if (!isOn() || document.visibilityState === 'visible') return;
  const note = new Notification(`${shortened(visibleText(task.tool), 80)} waits for a decision`, { body: `Asked by ${askerText(task)}`, tag: task.id, icon: 'icon.svg' });
  note.onclick = () => {
    window.focus();
    open();
    note.close();
  };
}
