// A reporter for node's test runner: the tests that failed, one a line: file, tab, name and reason.
export default async function* failedTests(events) {
  for await (const { type, data } of events) {
    const error = data?.details?.error;
    if (type !== 'test:fail' || data.file === undefined || error?.failureType === 'subtestsFailed') continue;
    const reason = String(error?.cause?.message ?? error?.message ?? 'no reason').replace(/\s+/g, ' ');
    yield `${data.file}\t${data.name}: ${reason.slice(0, 300)}\n`;
  }
}
