// A server of both eras that serves skills, in no more than the base of Node. `node skills_fixture.mjs PORT`.
import { createHash } from 'node:crypto';
import http from 'node:http';

const SKILLS = 'io.modelcontextprotocol/skills';
const markdown = (name) => `---\nname: ${name}\ndescription: The skill ${name}\n---\n\n# ${name}\n`;
const files = new Map([
  ['skill://acme/refunds/SKILL.md', markdown('refunds')],
  ['skill://acme/refunds/templates/email.md', 'Dear customer\n'],
  ['skill://acme/refunds/templates/eu/email.md', 'Dear European customer\n'],
  ['skill://git-workflow/SKILL.md', markdown('git-workflow')],
]);
const isIn = (uri, folder) => uri.startsWith(`${folder}/`);
const isFolder = (uri) => [...files.keys()].some((one) => isIn(one, uri));
const describe = (uri) => ({ uri, name: uri.split('/').at(-1), mimeType: 'text/markdown', description: `The file ${uri}` });

function entry(uri) {
  const folder = uri.slice(0, -'/SKILL.md'.length);
  const resources = [...files].filter(([one]) => isIn(one, folder));
  const name = folder.split('/').at(-1);
  return {
    uri,
    frontmatter: { name, description: `The skill ${name}` },
    resources: resources.map(([one, text]) => ({ uri: one, digest: `sha256:${createHash('sha256').update(text).digest('hex')}`, size: Buffer.byteLength(text) })),
  };
}

function children(folder) {
  const found = new Map();
  for (const uri of [...files.keys()].filter((one) => isIn(one, folder))) {
    const [name, ...rest] = uri.slice(folder.length + 1).split('/');
    const child = `${folder}/${name}`;
    found.set(child, rest.length > 0 ? { uri: child, name, mimeType: 'inode/directory' } : skillFile(child));
  }
  return [...found.values()];
}

const skillFile = (uri) => (uri.endsWith('/SKILL.md') ? { ...describe(uri), name: entry(uri).frontmatter.name, description: entry(uri).frontmatter.description } : describe(uri));

/** One of `items` each page. */
function page(items, cursor = '0') {
  const at = /^\d{1,3}$/.test(cursor) ? Number(cursor) : items.length;
  if (at > items.length) return undefined;
  return [items.slice(at, at + 1), at + 1 < items.length ? { nextCursor: String(at + 1) } : {}];
}

const unknown = (uri) => ({ error: { code: -32602, message: `nothing is served at ${uri}` } });
const capabilities = { resources: {}, extensions: { [SKILLS]: { directoryRead: true } } };
const serverInfo = { name: 'skills', version: '1.0.0' };
const KEPT = { ttlMs: 1000, cacheScope: 'public' };
const methods = {
  initialize: ({ protocolVersion }) => ({ result: { protocolVersion, capabilities, serverInfo } }),
  ping: () => ({ result: {} }),
  'server/discover': () => ({ result: { supportedVersions: ['2026-07-28'], capabilities, ...KEPT } }),
  'resources/list': () => ({ result: { resources: [...files.keys()].map(skillFile), ...KEPT } }),
  'resources/templates/list': () => ({ result: { resourceTemplates: [], ...KEPT } }),
  'resources/read': ({ uri }) => (files.has(uri) ? { result: { contents: [{ uri, mimeType: 'text/markdown', text: files.get(uri) }], ...KEPT } } : unknown(uri)),
  'skills/list'({ cursor }) {
    const [skills, more] = page([...files.keys()].filter((uri) => uri.endsWith('/SKILL.md')), cursor) ?? [];
    return skills ? { result: { skills: skills.map(entry), ...more, ...KEPT } } : { error: { code: -32602, message: 'no such cursor' } };
  },
  'skills/get': ({ uri }) => (files.has(uri) && uri.endsWith('/SKILL.md') ? { result: { skill: entry(uri), ...KEPT } } : unknown(uri)),
  'resources/directory/read'({ uri, cursor }) {
    const found = typeof uri === 'string' && isFolder(uri) && page(children(uri), cursor);
    return found ? { result: { resources: found[0], ...found[1] } } : unknown(uri);
  },
};

const server = http.createServer(async (request, response) => {
  let body = '';
  for await (const piece of request.setEncoding('utf8')) body += piece;
  const answer = (status, message) => response.writeHead(status, { 'content-type': 'application/json' }).end(message === undefined ? '' : JSON.stringify(message));
  if (request.method !== 'POST') return answer(405);
  const { id, method, params = {} } = JSON.parse(body);
  if (id === undefined) return answer(202);
  const handle = methods[method];
  if (!handle) return answer(404, { jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } });
  const { result, error } = handle(params);
  const isModern = params._meta?.['io.modelcontextprotocol/protocolVersion'] !== undefined;
  answer(200, { jsonrpc: '2.0', id, ...(error ? { error } : { result: { ...(isModern ? { resultType: 'complete' } : {}), ...result } }) });
});
server.listen(Number(process.argv[2] ?? 0), '127.0.0.1', () => console.log(`listening on port ${server.address().port}`));
process.once('SIGINT', () => server.close(() => process.exit(0)));
