// Checks an endpoint: requirement after requirement, each to one verdict.
import { Unreachable } from './client.mjs';
import { ModernRun } from './modern.mjs';
import { requirements } from './requirements/index.mjs';
import { modern } from './requirements/modern.mjs';
import { Run } from './run.mjs';
import { Failed, isObject, Skipped } from './verdict.mjs';

/** Nothing can be said of this endpoint, for the reason that the message gives. */
export class CannotCheck extends Error {}

/** The check that all others follow. */
const FIRST = 'initialize-answered';

/**
 * Returns [{name, source, verdict: 'PASS' | 'FAIL' | 'SKIP', detail}], one for each requirement of the eras that the endpoint
 * speaks; `report` gets each as it is known. Rejects with CannotCheck if the endpoint cannot be reached or refuses the credentials.
 */
export async function check(options, report = () => {}) {
  const run = new Run(options);
  const results = new Map();
  const judgeAll = async (list, of, first) => {
    for (const requirement of list) {
      const result = { name: requirement.name, source: requirement.source, ...(await judge(requirement, of, results, first)) };
      results.set(result.name, result);
      report(result);
    }
  };
  let modernRun;
  try {
    await begin(run);
    modernRun = await ModernRun.open(options);
    // An endpoint that is modern alone need not meet what it does not speak.
    if (!modernRun || isObject(run.initialize.message?.result)) await judgeAll(requirements, run, FIRST);
    if (modernRun) await judgeAll(modern, modernRun, modern[0].name);
    return [...results.values()];
  } finally {
    await modernRun?.close();
    await run.close();
  }
}

async function begin(run) {
  try {
    await run.open();
  } catch (error) {
    if (error instanceof Unreachable) throw new CannotCheck(`${run.options.url} cannot be reached: ${error.message}`);
    throw error;
  }
  const { status } = run.initialize;
  if (status === 401 || status === 403) throw new CannotCheck(`${run.options.url} refuses initialize with HTTP ${status}; give credentials with --header-env`);
}

async function judge({ name, needs = [], seedOnly, check }, run, results, first) {
  if (seedOnly && run.options.mcpOnly) return { verdict: 'SKIP', detail: 'left out by --mcp-only' };
  const missing = [first, ...needs].find((need) => need !== name && results.get(need)?.verdict !== 'PASS');
  if (missing) return { verdict: 'SKIP', detail: reasonOf(results.get(missing)) };
  try {
    return { verdict: 'PASS', detail: (await check(run)) ?? '' };
  } catch (error) {
    if (error instanceof Skipped) return { verdict: 'SKIP', detail: error.message };
    // Any other error was caused by an unexpected answer.
    return { verdict: 'FAIL', detail: error instanceof Failed || error instanceof Unreachable ? error.message : `unexpected: ${error.message}` };
  }
}

/** The reason to skip a requirement that needs this one; if this one was skipped for lack of a tool, the same reason. */
const reasonOf = ({ name, verdict, detail }) => (verdict === 'SKIP' ? detail : `needs ${name}`);
