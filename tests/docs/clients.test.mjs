// The clients of docs/clients.md have the versions with which the tests run, and each pair of eras has its tests.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { read } from './lib/documents.mjs';

const document = read('docs/clients.md');
const npm = (folder, name) => JSON.parse(read(`tests/${folder}/package.json`)).devDependencies[name];
const found = (file, pattern) => pattern.exec(read(file))[1];

const pinned = {
  'TypeScript SDK 1': npm('integration', '@modelcontextprotocol/sdk'),
  'TypeScript SDK 2': npm('integration', '@modelcontextprotocol/client'),
  'the same with ext-tasks': npm('integration', '@modelcontextprotocol/ext-tasks'),
  'Python SDK 2': found('tests/clients/requirements.txt', /^mcp==(\S+)$/m),
  'Go SDK': found('tests/clients/go/go.mod', /go-sdk v(\S+)/),
  'Rust SDK': found('tests/clients/rust/Cargo.toml', /^rmcp = \{ version = "=([\d.]+)"/m),
  'Inspector, command line': npm('conformance', '@modelcontextprotocol/inspector'),
};

test('each client that was tried has the version of the tests', () => {
  const [, section] = /^### Clients that were tried\n([^]*?)^###? /m.exec(document);
  const rows = [...section.matchAll(/^\| ([^|]+) \| ([\d.]+) \|/gm)].map(([, client, version]) => [client, version]);
  assert.deepEqual(new Set(rows.map(([client]) => client)), new Set(Object.keys(pinned)));
  for (const [client, version] of rows) assert.equal(version, pinned[client], client);
});

test('each of the four pairs of eras cites a test', () => {
  const [, section] = /^### The four pairs\n([^]*?)^###? /m.exec(document);
  const pairs = section.split(/^- /m).slice(1);
  assert.deepEqual(pairs.map((pair) => /^(\w+) client, (\w+) server/.exec(pair).slice(1)), [['Legacy', 'legacy'], ['Legacy', 'modern'], ['Modern', 'modern'], ['Modern', 'legacy']]);
  for (const pair of pairs) assert.match(pair, /^ {2}- `tests\/[\w./-]+\.mjs` “[^”]+”$/m, pair);
});
