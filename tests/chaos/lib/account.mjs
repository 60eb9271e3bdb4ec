// The account at the end, when all is quiet: the state of everything beside what clients were told.
import { allTasks } from '../../faults/lib/ledger.mjs';
import { ADMIN_TOKEN } from '../../integration/lib/gateway.mjs';
import { until } from '../../integration/lib/wait.mjs';
import { allGrants } from './ledger.mjs';
import { eventsByTask, gapsOfTrail } from './trail.mjs';

/** A replica that says nothing for 20 s is dead to the others, and what it executed ends then. */
export const SETTLED_MS = 60_000;
/** Results that each client fetches once more at the end of a leg. */
const FETCHED_AGAIN = 25;
/** Approved calls of each client that are run at the end of a leg. */
const RUN_AT_LAST = 10;

/** No answer is lost: a client fetches results again that the store says it has, from whatever replica it meets. */
async function fetchAgain({ ledger }, traffic, client, tasks, found) {
  const done = client.tasks.filter((id) => tasks.get(id)?.state === 'completed').slice(-FETCHED_AGAIN);
  for (const id of done) {
    const { marker, text } = ledger.tasks.get(id);
    ledger.tasks.get(id).text = undefined;
    await until(async () => {
      await traffic.of(client).result(client, id);
      return ledger.tasks.get(id).text;
    }, `the result of ${id}`, { deadline: 10_000 }).catch((error) => found.lost.push(error.message));
    const again = ledger.tasks.get(id).text;
    if (again !== `did ${marker}` || (text ?? again) !== again) found.lost.push(`the result of ${id} was ${text} and is ${again}; its server said: did ${marker}`);
  }
  return done.length;
}

/** Owners come back to what was approved and has not run. It runs now; what has run already would run twice. */
export async function comeBack(place, traffic) {
  const approved = new Set([...(await allTasks(place.replicas[0].admin)).values()].filter(({ state }) => state === 'approved').map(({ id }) => id));
  const ask = async (client) => {
    for (const id of client.tasks.filter((one) => approved.has(one)).slice(-RUN_AT_LAST)) await traffic.of(client).repeat(1, () => traffic.of(client).result(client, id));
  };
  await Promise.all(place.clients.map(ask));
}

async function chainIsWhole(replica) {
  const { code, stdout, stderr } = await replica.cli(['audit', 'verify', '--insecure'], { env: { TASKGATE_TOKEN: ADMIN_TOKEN } });
  return code === 0 ? [] : [`replica ${replica.number}: ${stdout}${stderr}`];
}

/** The same tasks at each replica. */
async function compare({ ledger, replicas }) {
  let tasks;
  let found;
  const holds = async () => {
    tasks = await allTasks(replicas[0].admin);
    found = ledger.breaches(tasks, await allGrants(replicas[0].admin));
    const executing = [...tasks.values()].filter(({ state }) => state === 'executing');
    for (const task of executing) found.lost.push(`${task.id} is still executing: ${JSON.stringify({ ...task, arguments: undefined })}`);
    return Object.values(found).every((list) => list.length === 0);
  };
  // A call that could not begin is begun some seconds later: the list may be older than the calls.
  await until(holds, 'the tasks to be as everybody was told', { deadline: SETTLED_MS, every: 500 }).catch(() => {});
  const others = await Promise.all(replicas.slice(1).map(async ({ admin }) => ledger.breaches(await allTasks(admin), await allGrants(admin))));
  for (const theirs of others) {
    for (const kind of Object.keys(found)) found[kind].push(...theirs[kind].filter((what) => !found[kind].includes(what)));
  }
  return { tasks, found };
}

/** Everything that is left, compared with everything that was told; `endless` are the questions without an end. */
export async function accountFor(place, traffic, endless) {
  const { ledger, replicas, problems, clients } = place;
  const { tasks, found } = await compare(place);
  found.questions.push(...endless);
  const again = await Promise.all(clients.map((client) => fetchAgain(place, traffic, client, tasks, found)));
  const trail = await eventsByTask(replicas[0].admin);
  found.audit = gapsOfTrail(trail.events, tasks, ledger);
  found.audit.push(...(await Promise.all(replicas.map(chainIsWhole))).flat());
  found.others = [...[...traffic.clients, ...traffic.operators].flatMap((one) => one.problems), ...problems];
  return { tasks, found, again: again.reduce((a, b) => a + b), rows: trail.rows };
}

const EXAMPLES = 5;
/** Complaints that break no promise. */
const LAST = ['audit', 'others'];

/** Prints the findings in a few lines, and throws an error with examples if there are any. Returns the kinds of traffic. */
export function report(name, { ledger }, { tasks, found, again, rows }) {
  const promises = Object.entries(found).filter(([kind]) => !LAST.includes(kind));
  console.log(`${name}: ${tasks.size} tasks, ${ledger.calls.size} calls upstream, ${again} results fetched again`);
  console.log(`  tasks: ${JSON.stringify(ledger.counts(tasks))}`);
  const kinds = ledger.kinds(tasks);
  console.log(`  traffic: ${JSON.stringify(kinds)}; states of held calls that a clock made old: ${ledger.stale}`);
  console.log(`  ledger: ${promises.map(([kind, list]) => `${kind} ${list.length}`).join(', ')}; audit: ${rows} rows, ${found.audit.length === 0 ? 'the chain is whole' : `${found.audit.length} BREACHES`}; other complaints: ${found.others.length}`);
  const all = Object.entries(found).flatMap(([kind, list]) => list.slice(0, EXAMPLES).map((what) => `  ${kind}: ${what.stack ?? what}`));
  if (all.length > 0) throw new Error(`${name}: the ledger does not hold\n${all.join('\n')}`);
  return kinds;
}
