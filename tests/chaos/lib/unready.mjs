// A replica that does not come back: what it says of itself, and its last words.

const LOG_LINES = 40;
const PATIENCE_MS = 2_000;

/** A sentence with the status and the body of /ready, or why there is none. */
async function readiness({ admin }) {
  let timer;
  const silence = new Promise((resolve) => (timer = setTimeout(resolve, PATIENCE_MS, `no answer within ${PATIENCE_MS} ms`)));
  const answer = admin.get('/ready').then(({ status, text }) => `HTTP ${status} ${text.trim()}`, (error) => error.message);
  const said = await Promise.race([answer, silence]);
  clearTimeout(timer);
  return `/ready: ${said}`;
}

const lastLines = ({ child }) => child.stderr.trimEnd().split('\n').slice(-LOG_LINES).join('\n');

/** All that can be learnt of it from outside, as text. */
export async function describe(replica) {
  return `replica ${replica.number}, ${await readiness(replica)}\nits last lines:\n${lastLines(replica)}`;
}

/** `launch`, a promise of its start; an error says in addition what the replica says. */
export async function explained(replica, launch) {
  try {
    return await launch;
  } catch (error) {
    throw new Error(`${error.message}\n${await describe(replica)}`);
  }
}
