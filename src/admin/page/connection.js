// Staying connected: the lists once, then every change, and the lists again after a gap.
import { ApiError, decidedTasks, follow, inboxPage, whoami } from './api.js';

const RETRY_MIN_MS = 500;
const RETRY_MAX_MS = 15_000;

const pause = (ms, signal) =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => (clearTimeout(timer), resolve()));
  });

/* The stream is opened first and its events held back until the lists are here: so nothing
 * that happens in between is missed, and nothing old overwrites something new. */
async function followOnce(signal, { question, inboxQuestion, loaded, changed, grantChanged }) {
  let early = [];
  let failure = null;
  const own = new AbortController();
  signal.addEventListener('abort', () => own.abort());
  const load = async () => {
    const asked = inboxQuestion();
    const [who, pending, decided] = await Promise.all([whoami(), inboxPage(asked), decidedTasks(20, question())]);
    if (own.signal.aborted) return undefined;
    if (JSON.stringify(inboxQuestion()) !== JSON.stringify(asked)) return load(); // somebody has typed meanwhile
    loaded(who, pending, decided);
    for (const task of early) changed(task, false);
    early = null;
  };
  const opened = () =>
    load().catch((error) => {
      failure = error;
      own.abort();
    });
  try {
    await follow(own.signal, { opened, task: (task) => (early ? early.push(task) : changed(task, true)), grant: grantChanged });
  } catch (error) {
    throw failure ?? error;
  }
}

/**
 * Runs until `signal` aborts or the gateway refuses: `loaded(who, pending, decided)` with each
 * connection, `changed(task, isNews)`, `grantChanged()`, `link(state, text)` with connecting, live
 * or lost, and `refused(error)` at the end. `question()` gives the filter of the decided ones, and
 * `inboxQuestion()` that of those that wait.
 */
export async function stayConnected(signal, host) {
  let delay = RETRY_MIN_MS;
  host.link('connecting', 'Connecting…');
  const loaded = (...lists) => {
    host.loaded(...lists);
    delay = RETRY_MIN_MS;
  };
  const changed = (task, isNews) => host.changed(task, isNews);
  while (!signal.aborted) {
    try {
      await followOnce(signal, { question: host.question, inboxQuestion: host.inboxQuestion, loaded, changed, grantChanged: host.grantChanged });
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiError && (error.status === 401 || error.status === 403)) {
        host.refused(error);
        return;
      }
    }
    if (signal.aborted) return;
    host.link('lost', 'Connection lost');
    await pause(delay * (0.75 + Math.random() / 2), signal);
    delay = Math.min(delay * 2, RETRY_MAX_MS);
  }
}
