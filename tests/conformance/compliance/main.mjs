// `tests/conformance/run URL`: options.mjs describes it.
import { check, CannotCheck } from './check.mjs';
import { parse, USAGE, UsageError } from './options.mjs';
import { requirements } from './requirements/index.mjs';
import { modern } from './requirements/modern.mjs';

const width = (member) => Math.max(...[...requirements, ...modern].map((requirement) => requirement[member].length));
const [nameWidth, sourceWidth] = [width('name'), width('source')];

const line = ({ verdict, name, source, detail }) => `${verdict}  ${name.padEnd(nameWidth)}   ${source.padEnd(sourceWidth)}   ${onOneLine(detail)}`.trimEnd();

/** A server's text may have any characters; a line stays a line, and a terminal unharmed. */
const onOneLine = (text) => text.replace(/\s+/g, ' ').replace(/[\x00-\x1f\x7f-\x9f]/g, '?');

async function main() {
  const options = parse(process.argv.slice(2), process.env);
  if (options.help) {
    process.stdout.write(USAGE);
    return 0;
  }
  const results = await check(options, options.json ? () => {} : (result) => console.log(line(result)));
  const count = (verdict) => results.filter((result) => result.verdict === verdict).length;
  const summary = { passed: count('PASS'), failed: count('FAIL'), skipped: count('SKIP') };
  if (options.json) console.log(JSON.stringify({ url: options.url, ...summary, results }, null, 2));
  else console.log(`\n${summary.passed} passed, ${summary.failed} failed, ${summary.skipped} skipped`);
  return summary.failed > 0 ? 1 : 0;
}

main().then(
  (code) => (process.exitCode = code),
  (error) => {
    if (error instanceof UsageError) console.error(`conformance: ${error.message}; see --help`);
    else if (error instanceof CannotCheck) console.error(`conformance: ${error.message}`);
    else throw error;
    process.exitCode = 2;
  },
);
