// A reporter for node's test runner: the files in which a test failed, one a line, each once.
export default async function* failedFiles(events) {
  const told = new Set();
  for await (const { type, data } of events) {
    const file = data?.file;
    if (type !== 'test:fail' || file === undefined || told.has(file)) continue;
    told.add(file);
    yield `${file}\n`;
  }
}
