// `taskgate schema`: a JSON Schema that refuses what a typist gets wrong, and accepts whatever `taskgate check` accepts.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import Ajv from 'ajv';
import { parse } from 'yaml';
import { blocks, files, read } from '../docs/lib/documents.mjs';
import { BINARY } from './lib/gateway.mjs';

const schema = JSON.parse(execFileSync(BINARY, ['schema'], { encoding: 'utf8' }));
const validate = new Ajv({ allErrors: true, strict: true, allowUnionTypes: true }).compile(schema);

/** Helm reads YAML 1.1, where `off` is false, and keeps dates as texts; editors read YAML 1.2. */
const versions = ['1.1', '1.2'];
const customTags = (tags) => tags.filter(({ tag }) => tag !== 'tag:yaml.org,2002:timestamp');
const findings = (text, version) => (validate(parse(text, { version, customTags })) ? [] : validate.errors.map(({ instancePath, message, params }) => [instancePath, message, params]));

const folder = mkdtempSync(path.join(tmpdir(), 'taskgate-schema-'));
after(() => rmSync(folder, { recursive: true }));
const file = path.join(folder, 'config.yaml');
const check = (text) => {
  writeFileSync(file, text);
  const { status, stderr } = spawnSync(BINARY, ['check', '--config', file], { encoding: 'utf8', env: { PATH: process.env.PATH, SECRET: 'a secret of some length' } });
  return { accepts: status === 0, stderr };
};

const head = 'schema: 1\nsources: [{id: up, kind: mcp, url: http://127.0.0.1:3000/mcp}]\n';
const minimal = `${head}governance: {defaults: {action: forward}}\n`;

/** Each whole configuration in the repository: [place, text]. */
function configurations() {
  const whole = (text) => /^schema: 1$/m.test(text);
  const inYaml = files('.yaml')
    .filter((name) => !name.includes('/templates/'))
    .flatMap((name) => {
      const text = read(name);
      if (/^schema: 1$/m.test(text)) return [[name, text]];
      // In a ConfigMap it is a text. The chart's values lack the keys that are the user's.
      const texts = [...text.matchAll(/^( +)\S+: \|\n((?:\1 +.*\n|\n)+)/gm)].map(([, , block]) => block.replace(/^ {4}/gm, '')).filter(whole);
      return texts.map((each) => [name, each]);
    });
  const inDocuments = files('.md').flatMap((name) => blocks(read(name)).filter(({ language, text }) => language === 'yaml' && whole(text)).map(({ line, text }) => [`${name}:${line}`, text]));
  return [...inYaml, ...inDocuments];
}

test('it is a schema of draft 7, and each key of the reference is described in it', () => {
  assert.equal(schema.$schema, 'http://json-schema.org/draft-07/schema#');
  const names = (mapping, prefix) =>
    Object.entries(mapping.properties ?? {}).flatMap(([name, key]) => {
      assert.match(key.description, /\S/, prefix + name);
      const inner = key.properties ? [key, '.'] : key.items?.properties ? [key.items, '[].'] : key.additionalProperties?.properties ? [key.additionalProperties, '.*.'] : null;
      return [prefix + name, ...(inner ? names(inner[0], prefix + name + inner[1]) : [])];
    });
  const documented = [...read('docs/configuration.md').matchAll(/^- `([a-z][A-Za-z_.[\]*0-9]*)` \(/gm)].map(([, name]) => name);
  assert.ok(documented.length > 200, `${documented.length} keys`);
  assert.deepEqual(names(schema, '').sort(), documented.sort());
});

test('every configuration of the repository is valid in YAML 1.1 and 1.2', () => {
  const found = configurations();
  for (const name of ['deploy/compose/gateway/config.yaml', 'deploy/kubernetes/sidecar.yaml', 'policy/strict.yaml']) assert.ok(found.some(([place]) => place === name), name);
  for (const name of ['README.md', 'docs/configuration.md', 'docs/policy.md']) assert.ok(found.some(([place]) => place.startsWith(name)), name);
  for (const [place, text] of found) for (const version of versions) assert.deepEqual(findings(text, version), [], `${place}, YAML ${version}`);
});

const mistakes = {
  'a misspelt key at the top': [`${minimal}limit: {body_bytes: 4MiB}\n`, '', 'additionalProperty', 'limit'],
  'a misspelt key of a rule': [`${head}governance: {defaults: {action: deny}, rules: [{match: "*", action: deny, sources: up}]}\n`, '/governance/rules/0', 'additionalProperty', 'sources'],
  'a misspelt key of a workflow': [`${minimal}approval: {default: {time_out: 10m}}\n`, '/approval/default', 'additionalProperty', 'time_out'],
  'a misspelt action': [`${head}governance: {defaults: {action: aprove}}\n`, '/governance/defaults/action'],
  'a missing key': [`${head}governance: {}\n`, '/governance', 'missingProperty', 'defaults'],
  'an empty key that is required': [`${head}governance:\n`, '/governance'],
  'a mapping in place of a list': [`schema: 1\nsources: {id: up}\ngovernance: {defaults: {action: deny}}\n`, '/sources'],
  'a list in place of a mapping': [`${head}governance: [deny]\n`, '/governance'],
  'a list in place of a text': [`${minimal}store: {path: [a]}\n`, '/store/path'],
  'a number that is too large': [`${minimal}workers: 257\n`, '/workers', 'limit', 256],
  'a number that is none': [`${minimal}workers: many\n`, '/workers'],
  'a fraction': [`${minimal}workers: 1.5\n`, '/workers'],
  'a share above one': [`${minimal}telemetry: {sampling: {success_sample_rate: 2}}\n`, '/telemetry/sampling/success_sample_rate', 'limit', 1],
  'a duration without a unit': [`${minimal}approval: {default: {timeout: 10}}\n`, '/approval/default/timeout'],
  'a duration with an unknown unit': [`${minimal}approval: {default: {timeout: 10q}}\n`, '/approval/default/timeout'],
  'a size with an unknown unit': [`${minimal}limits: {body_bytes: 4Mo}\n`, '/limits/body_bytes'],
  'a truth value that is none': [`${minimal}pseudo_tools: {mode: maybe}\n`, '/pseudo_tools/mode'],
  'a URL without a scheme': [`schema: 1\nsources: [{id: up, kind: mcp, url: "localhost:3000"}]\ngovernance: {defaults: {action: deny}}\n`, '/sources/0/url'],
  'a URL that is a number': [`schema: 1\nsources: [{id: up, kind: mcp, url: 3000}]\ngovernance: {defaults: {action: deny}}\n`, '/sources/0/url'],
  'the name of a variable with a dollar': [`${minimal}admin: {tokens: [{name: a, token_env: $SECRET, roles: [viewer]}]}\n`, '/admin/tokens/0/token_env'],
  'a role that is none': [`${minimal}admin: {tokens: [{name: a, token_env: SECRET, roles: [admin]}]}\n`, '/admin/tokens/0/roles/0'],
  'roles without a list': [`${minimal}admin: {tokens: [{name: a, token_env: SECRET, roles: viewer}]}\n`, '/admin/tokens/0/roles'],
  'a digest that is too short': [`${minimal}admin: {tokens: [{name: a, token_sha256: abc1, roles: [viewer]}]}\n`, '/admin/tokens/0/token_sha256'],
  'a quorum of none': [`${minimal}approval: {default: {quorum: 0}}\n`, '/approval/default/quorum', 'limit', 1],
  'a header of the gateway\'s own with a blank in its name': [`schema: 1\nsources: [{id: up, kind: mcp, url: "http://a", headers: {"X Y": {env: SECRET}}}]\ngovernance: {defaults: {action: deny}}\n`, '/sources/0/headers'],
};

for (const [name, [text, place, param, value]] of Object.entries(mistakes)) {
  test(`it refuses ${name}, as check does`, () => {
    assert.equal(check(text).accepts, false);
    for (const version of versions) {
      const found = findings(text, version);
      assert.deepEqual([...new Set(found.map(([at]) => at))], [place], `YAML ${version}`);
      if (param) assert.ok(found.some(([, , params]) => params[param] === value), JSON.stringify(found));
    }
  });
}

// ---- agreement with the reader ----

/** Ways to write a value; among them are such as only a reader of untyped text takes. */
const VALUES = [
  '', '~', '0', '1', '5', '-1', '007', '100', '4096', '1.5', '1e3', '0x10', 'true', 'No', 'off', 'ON', '"yes"', '"5"', '"off"', 'a', '"a b"', '" a"', '"a\\tb"', '""', '"é"',
  'a.b.c', 'a..b', '"*"', '"get_*"', '"[a"', '10m', '"1h 30m"', 'PT10M', 'P1DT2.5S', '500ms', '2 weeks', '5minutes', '1M', '4MiB', '"512 kB"', '1g', '64B', '127.0.0.1', '"::1"',
  '0.0.0.0:7471', 'localhost:1', 'http://10.0.0.1:7471', 'https://idp.example/realms/a', 'HTTPS://idp.example', 'http://127.0.0.1:3000/mcp?a=b', 'smtp://mail.example:25', 'dba@example.com',
  'U012ABCDEF', 'S012ABCDEF', '"CN=alice,O=Example"', 'SECRET', '${SECRET}', '"x-${SECRET}"', 'ab'.repeat(32), '12'.repeat(32), '"Drops {schema}.{table}"', '"{{a}}"', '"{a"',
  '[]', '[a]', '[5, true]', '[viewer, approver]', '[all]', 'all', '[~]', '{}', '{a: 1}', '{a: b}', '{env: SECRET}', '{dba: 2, ops: 1}', '[{}]', '[{match: a}]', '{a: {}}', '{a: }', '1.2', '2024-01-01', '12:30:45',
];

/** Of mappings and lists only these: each takes a run of the program. */
const STRUCTURES = ['', '5', 'a', '${SECRET}', '[]', '[a]', '[{}]', '[{match: a}]', '{}', '{a: {}}', '{a: }', '{env: SECRET}'];

/** The other keys that a mapping needs. */
const REQUIRED = {
  '': { schema: '1', sources: '[{id: up, kind: mcp, url: "http://127.0.0.1:3000/mcp"}]', governance: '{defaults: {action: forward}}' },
  'sources[]': { id: 'up', kind: 'mcp', url: 'http://127.0.0.1:3000/mcp' },
  'sources[].auth': { issuer: 'https://idp.example', audience: 'a' },
  'sources[].auth.exchange': { token_url: 'https://idp.example/token', client_id: 'a' },
  'sources[].expose': { mode: 'all' },
  'sources[].headers.*': { env: 'SECRET' },
  'governance': { defaults: '{action: forward}' },
  'governance.defaults': { action: 'forward' },
  'governance.rules[]': { match: 'a', action: 'forward' },
  'approval.*.escalate': { after: '1m', notify: '[desk]' },
  'approval.*.emergency': { groups: '[dba]' },
  'approval.*.destination': { type: 'admin' },
  'cedar': { policies: '[a.cedar]' },
  'proxy.tls': { cert: 'c', key: 'k' },
  'admin.tls': { cert: 'c', key: 'k' },
  'admin.oidc': { issuer: 'https://idp.example', client_id: 'a' },
  'admin.people[]': { name: 'alice' },
  'admin.tokens[]': { name: 't', token_env: 'SECRET', roles: '[viewer]' },
  'clients[]': { match: 'a' },
  'notify[]': { id: 'desk', url: 'http://127.0.0.1:1/', secret_env: 'SECRET' },
  'notify[].tls': { ca: 'c' },
  'telemetry.otlp.tls': { ca: 'c' },
  'audit.anchor': { every: '1h' },
  'store.url': { env: 'SECRET' },
  'state_key': { env: 'SECRET' },
};

/** A configuration with this value at each of the keys, each on a line of its own: {text, lines}. */
function configuration(keys, value) {
  const lines = [];
  const places = new Map();
  const lay = (pattern, pad) => {
    const own = new Set(keys.filter((key) => key.slice(0, Math.max(key.lastIndexOf('.'), 0)) === pattern).map((key) => key.slice(key.lastIndexOf('.') + 1)));
    const below = new Map();
    for (const key of keys) {
      if (pattern && !key.startsWith(`${pattern}.`)) continue;
      const rest = (pattern ? key.slice(pattern.length + 1) : key).split('.');
      if (rest.length === 1) continue;
      const name = rest[1] === '*' && rest.length > 2 ? `${rest[0]}.*` : rest[0];
      below.set(name.replace(/\[\]|\.\*/g, ''), name);
    }
    for (const [name, text] of Object.entries(REQUIRED[pattern] ?? {})) if (!own.has(name) && !below.has(name)) lines.push(`${pad}${name}: ${text}`);
    for (const name of own) {
      if (below.has(name)) continue;
      lines.push(`${pad}${name}: ${value}`);
      places.set(lines.length, pattern ? `${pattern}.${name}` : name);
    }
    for (const [name, inner] of below) {
      lines.push(`${pad}${name}:`);
      if (inner.endsWith('[]')) lines.push(`${pad}  -`);
      if (inner.endsWith('.*')) lines.push(`${pad}  X-Name:`);
      lay(pattern ? `${pattern}.${inner}` : inner, `${pad}    `);
    }
  };
  lay('', '');
  return { text: `${lines.join('\n')}\n`, places };
}

test('it is never stricter than check: every key with many values', () => {
  const keys = [...read('docs/configuration.md').matchAll(/^- `([a-z][A-Za-z_.[\]*0-9]*)` \(/gm)].map(([, name]) => name);
  const holds = (key) => keys.some((other) => other.startsWith(`${key}.`) || other.startsWith(`${key}[].`));
  const single = (key, value) => configuration([key], value).text;
  const refuses = (key, value) => versions.some((version) => findings(single(key, value), version).length > 0);
  const counts = { accepted: 0, refused: 0 };
  const stricter = [];
  const verify = (key, value) => {
    if (check(single(key, value)).accepts) stricter.push(`${key}: ${value}`);
  };
  for (const value of VALUES) {
    const leaves = keys.filter((key) => !holds(key));
    const refused = leaves.filter((key) => refuses(key, value));
    counts.accepted += leaves.length - refused.length;
    counts.refused += refused.length;
    // One run has a finding for each of them; a key without one gets a run of its own.
    const { text, places } = configuration(refused, value);
    const found = new Set([...check(text).stderr.matchAll(/config\.yaml:(\d+):\d+: /g)].map(([, line]) => places.get(Number(line))));
    for (const key of refused) if (!found.has(key)) verify(key, value);
  }
  for (const key of keys.filter(holds)) for (const value of STRUCTURES) if (refuses(key, value)) verify(key, value);
  assert.deepEqual(stricter, []);
  assert.ok(counts.accepted > 3000 && counts.refused > 8000, JSON.stringify(counts));
});
