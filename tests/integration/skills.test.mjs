// The skills extension: lists, entries and directories are judged by the URIs that they name, in both eras.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { stage as bridgedStage } from './lib/bridged_stage.mjs';
import { key } from './lib/modern_client.mjs';
import { modernScene } from './lib/modern_scene.mjs';
import { scene } from './lib/scene.mjs';
import { until } from './lib/wait.mjs';

const file = (uri) => ({ uri, digest: `sha256:${'0'.repeat(64)}`, size: 1 });
const skill = (path, resources = [`skill://${path}/SKILL.md`]) => ({ uri: `skill://${path}/SKILL.md`, frontmatter: { name: path.split('/').at(-1), description: 'd', 'x y': [1] }, resources: Array.isArray(resources) ? resources.map(file) : resources });
const GOOD = skill('good', ['skill://good/SKILL.md', 'skill://good/a.md']);
const DYNAMIC = skill('dynamic', 'dynamic');
const HIDDEN_FILE = skill('half', ['skill://half/SKILL.md', 'SKILL://h%69dden/x.md']);
const DENIED_FILE = skill('part', ['skill://part/SKILL.md', 'skill://part/../denied/x.md']);
const ASKED_FILE = skill('ask', ['skill://ask/SKILL.md', 'skill://asks/x.md']);
const SKILLS = [GOOD, skill('hidden'), skill('denied'), DYNAMIC, skill('hidden', 'dynamic'), HIDDEN_FILE, DENIED_FILE, ASKED_FILE];
const MALFORMED = [null, 7, 'x', [], {}, { uri: 5, resources: [] }, { uri: 'skill://a/SKILL.md', resources: {} }, { uri: 'skill://a/SKILL.md', resources: 3 }, { uri: 'skill://a/SKILL.md', resources: [7] }, { uri: 'skill://a/SKILL.md', resources: [{ uri: 'skill://good/a' }, { digest: 'x' }] }];
const CHILDREN = ['skill://good/a.md', 'skill://hidden/b', 'skill://denied/c', 'skill://asks/d', 'skill://good/sub'].map((uri) => ({ uri, name: uri.slice(-1), mimeType: 'text/markdown' }));

const gates = { expose: { mode: 'blocklist', tools: ['skill://hidden/**', 'skill://hidden'] }, rules: [['skill://denied/**', 'deny'], ['skill://part/denied/**', 'deny'], ['skill://asks/**', 'approve'], ['skill://denied', 'deny'], ['skill://asks', 'approve']] };
const capabilities = (settings = { directoryRead: true }) => ({ tools: {}, resources: {}, extensions: { [key('skills')]: settings } });
const handlers = (more = {}) => ({
  'skills/list': ({ reply }) => reply.result({ resultType: 'complete', skills: SKILLS, nextCursor: 'n', ...more }),
  'skills/get': ({ reply, params }) => {
    const found = SKILLS.find(({ uri }) => uri === params.uri);
    return found ? reply.result({ resultType: 'complete', skill: found, ...more }) : reply.error(-32602, 'no such skill');
  },
  'resources/directory/read': ({ reply }) => reply.result({ resultType: 'complete', resources: CHILDREN }),
});
const PUBLIC = { ttlMs: 300_000, cacheScope: 'public' };
const PRIVATE = { ttlMs: 60_000, cacheScope: 'private' };

/** [what, stage, client, the cache members of its results] of each combination that has the extension. */
async function everywhere(t, { settings, ...more } = {}) {
  const upstream = { capabilities: capabilities(settings), handlers: handlers(PUBLIC) };
  const legacy = await scene(t, { ...gates, ...more, upstream });
  const modern = await modernScene(t, { ...gates, ...more, upstream });
  const bridged = await modernScene(t, { ...gates, ...more, upstream, source: { era: 'modern', ...more.source } });
  return [
    ['legacy', legacy, await legacy.connect(), PRIVATE],
    ['modern', modern, modern.modern(), PRIVATE],
    ['a legacy client before a modern server', bridged, await bridged.connect(), {}],
  ];
}

test('skills/list leaves out each skill of which the uri or a file is hidden or not forwarded, and shortens none', async (t) => {
  for (const [what, { upstream }, client, kept] of await everywhere(t)) {
    const { resultType, ...result } = await client.result('skills/list', { cursor: 'c' });
    assert.deepEqual(result, { skills: [GOOD, DYNAMIC], nextCursor: 'n', ...kept }, what);
    assert.equal(resultType, what === 'modern' ? 'complete' : resultType && 'complete', what);
    assert.equal(upstream.of('skills/list').at(-1).rpc.params.cursor, 'c', what);
    for (const skills of [MALFORMED, 'x', null, {}]) {
      upstream.handlers['skills/list'] = ({ reply }) => reply.result({ resultType: 'complete', skills, ttlMs: 'x' });
      assert.deepEqual((await client.result('skills/list')).skills, [], `${what} ${JSON.stringify(skills)}`);
    }
    upstream.handlers['skills/list'] = ({ reply }) => reply.result({ resultType: 'complete', digest: 'x', tag: 'y', skills: SKILLS });
    const { digest, tag, skills } = await client.result('skills/list');
    assert.deepEqual([digest, tag, skills.length], [undefined, undefined, 2], what);
  }
});

test('a legacy list that says nothing of caches and has nothing left out passes as it is', async (t) => {
  const plain = { skills: [GOOD], _meta: { 'a.b/c': 1 } };
  const { connect } = await scene(t, { ...gates, upstream: { capabilities: capabilities(), handlers: { 'skills/list': ({ reply }) => reply.result(plain), 'skills/get': ({ reply }) => reply.result({ skill: GOOD }) } } });
  const client = await connect();
  assert.deepEqual(await client.result('skills/list'), plain);
  assert.deepEqual(await client.result('skills/get', { uri: GOOD.uri }), { skill: GOOD });
});

test('skills/get: hidden is -32602 as an unknown one, denied is -32014, also for a file of the skill', async (t) => {
  for (const [what, { upstream }, client, kept] of await everywhere(t)) {
    const { resultType: _, ...result } = await client.result('skills/get', { uri: GOOD.uri });
    assert.deepEqual(result, { skill: GOOD, ...kept }, what);
    for (const [uri, code, goesUp] of [['skill://hidden/SKILL.md', -32602, 0], ['SKILL://h%69dden/SKILL.md', -32602, 0], ['skill://denied/SKILL.md', -32014, 0], ['skill://asks/x', -32014, 0], [HIDDEN_FILE.uri, -32602, 1], [DENIED_FILE.uri, -32014, 1], [ASKED_FILE.uri, -32014, 1], ['skill://none/SKILL.md', -32602, 1], [7, -32602, 0]]) {
      const before = upstream.of('skills/get').length;
      const { message } = await client.send('skills/get', { uri });
      assert.deepEqual([message.error?.code, message.result, upstream.of('skills/get').length - before], [code, undefined, goesUp], `${what} ${uri}`);
    }
    for (const entry of [...MALFORMED, undefined]) {
      upstream.handlers['skills/get'] = ({ reply }) => reply.result({ resultType: 'complete', skill: entry });
      assert.equal((await client.error('skills/get', { uri: GOOD.uri })).code, -32602, `${what} ${JSON.stringify(entry)}`);
    }
  }
});

test('resources/directory/read leaves out children that are hidden or not forwarded, and is unknown where the server does not say directoryRead', async (t) => {
  for (const [what, , client] of await everywhere(t)) {
    const { resources, ttlMs, cacheScope } = await client.result('resources/directory/read', { uri: 'skill://good' });
    assert.deepEqual([resources, ttlMs, cacheScope], [[CHILDREN[0], CHILDREN[4]], undefined, undefined], what);
    for (const [uri, code] of [['skill://hidden', -32602], ['skill://denied', -32014], ['skill://asks', -32014], [null, -32602]]) assert.equal((await client.error('resources/directory/read', { uri })).code, code, `${what} ${uri}`);
  }
  for (const settings of [{}, { directoryRead: 'true' }]) {
    for (const [what, { upstream }, client] of await everywhere(t, { settings })) {
      const { message, status } = await client.send('resources/directory/read', { uri: 'skill://good' });
      assert.deepEqual([message.error.code, status, upstream.of('resources/directory/read').length], [-32601, what === 'modern' ? 404 : 200, 0], what);
    }
  }
});

test('an extension that deny hides has no methods; modern clients before a legacy server have no skills', async (t) => {
  const denied = await everywhere(t, { source: { extensions: { deny: ['*/skills'] } } });
  const down = await bridgedStage(t, { ...gates, config: { methods: { allow: ['skills/*'] } }, upstream: { capabilities: capabilities(), handlers: handlers() } });
  for (const [what, { upstream }, client] of [...denied, ['bridged down', down, down.modern()]]) {
    for (const method of ['skills/list', 'skills/get', 'resources/directory/read']) {
      assert.equal((await client.error(method, { uri: GOOD.uri })).code, -32601, `${what} ${method}`);
      assert.equal(upstream.of(method).length, 0, what);
    }
  }
});

const LARGEST = 16 * 1024 * 1024;
const digestOf = (bytes) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
/** A server's only skill: what it says of its files, and what it gives for each. */
const pinned = (files, { resources = Object.entries(files), ...more } = {}) => ({
  uri: 'skill://live/SKILL.md',
  frontmatter: { name: 'live', description: 'd' },
  resources: Array.isArray(resources) ? resources.map(([name, { bytes }]) => ({ uri: `skill://live/${name}`, digest: digestOf(bytes), size: Buffer.byteLength(bytes) })) : resources,
  ...more,
});
const contentOf = (uri, { bytes, isBlob }) => (isBlob ? { uri, blob: Buffer.from(bytes).toString('base64') } : { uri, text: bytes });
const serve = (upstream, skills, files) => {
  Object.assign(upstream.handlers, {
    'skills/list': ({ reply }) => reply.result({ resultType: 'complete', skills }),
    'skills/get': ({ reply }) => reply.result({ resultType: 'complete', skill: skills[0] }),
    'resources/read': ({ reply, params }) => reply.result({ resultType: 'complete', contents: [contentOf(params.uri, files[params.uri.split('/').at(-1).replace('%61', 'a')])] }),
  });
};

test('pin.skills approve: a changed skill is absent until it is accepted, and files that are not those of an accepted skill do not go down', async (t) => {
  const first = { 'SKILL.md': { bytes: 'Do “this”.\n' }, 'a.bin': { bytes: 'abcd', isBlob: true } }, second = { ...first, 'SKILL.md': { bytes: 'Do “that”.\n' }, 'new.md': { bytes: 'n' } };
  for (const [what, { upstream, admin }, client] of await everywhere(t, { source: { pin: { skills: 'approve' } } })) {
    const uris = async () => (await client.result('skills/list')).skills.map(({ uri }) => uri);
    const read = async (name) => {
      const { message } = await client.send('resources/read', { uri: `skill://live/${name}` });
      return message.error ? [message.error.code, message.error.data.error_type] : message.result.contents[0].text ?? message.result.contents[0].blob;
    };
    const MISMATCH = [-32602, 'digest_mismatch'];
    const skill = async (state) => until(async () => (await admin.get('/api/v1/definitions?kind=skill')).json.definitions.find((row) => row.state === state), `${what} ${state}`);
    const accept = async () => {
      const { source, kind, name, digest } = await skill('changed');
      assert.equal((await admin.post('/api/v1/definitions/accept', { source, kind, name, digest })).status, 200, what);
    };
    serve(upstream, [pinned(first)], first);
    assert.deepEqual(await read('SKILL.md'), MISMATCH, `${what}: nothing is known yet`);
    assert.deepEqual(await uris(), ['skill://live/SKILL.md'], what);
    assert.deepEqual([await read('SKILL.md'), await read('a.bin'), await read('%61.bin')], [first['SKILL.md'].bytes, 'YWJjZA==', 'YWJjZA=='], what);
    serve(upstream, [pinned(first)], { ...second, 'a.bin': { bytes: 'abce', isBlob: true } });
    assert.deepEqual([await read('SKILL.md'), await read('a.bin'), await read('%61.bin')], [MISMATCH, MISMATCH, MISMATCH], what);
    await skill('accepted');
    serve(upstream, [pinned(second)], second);
    assert.deepEqual([await uris(), (await client.error('skills/get', { uri: 'skill://live/SKILL.md' })).code], [[], -32602], what);
    assert.deepEqual([await read('SKILL.md'), await read('new.md'), await read('a.bin')], [MISMATCH, MISMATCH, 'YWJjZA=='], what);
    await accept();
    assert.deepEqual([await uris(), (await client.result('skills/get', { uri: 'skill://live/SKILL.md' })).skill], [['skill://live/SKILL.md'], pinned(second)], what);
    assert.deepEqual([await read('SKILL.md'), await read('new.md')], [second['SKILL.md'].bytes, 'n'], what);
    serve(upstream, [pinned({}, { resources: 'dynamic' })], { ...second, 'x.md': { bytes: 'x' } });
    assert.deepEqual([await uris(), await read('x.md')], [[], MISMATCH], `${what}: an array that became "dynamic" is a change`);
    await accept();
    assert.deepEqual([await uris(), await read('x.md')], [['skill://live/SKILL.md'], 'x'], what);
  }
});

test('pin.skills approve: contents that come late, on another stream, are those of the URI that was asked for', async (t) => {
  const files = { 'SKILL.md': { bytes: 'good' }, 'b.md': { bytes: 'other' } };
  const { upstream, connect } = await scene(t, { upstream: { capabilities: capabilities(), handlers: handlers() }, source: { pin: { skills: 'approve' } } });
  const client = await connect();
  serve(upstream, [pinned(files)], files);
  await client.result('skills/list');
  let late;
  upstream.onHttp = ({ method, headers }, reply) => {
    if (method !== 'GET' || headers['last-event-id'] !== 'e-1') return false;
    const stream = reply.sse();
    stream.event(late);
    stream.end();
    return true;
  };
  /** The server breaks the stream of the read off, and goes on with `contents` where the client resumes it. */
  const resumed = async (uri, contents, more = {}) => {
    upstream.handlers['resources/read'] = ({ reply, id }) => {
      late = { jsonrpc: '2.0', id, result: { contents }, ...more };
      const stream = reply.sse();
      stream.raw('id: e-1\ndata: \n\n');
      stream.end();
    };
    await client.send('resources/read', { uri });
    const stream = await client.listen({ headers: { 'last-event-id': 'e-1' } });
    return stream.message((m) => m.id === late.id);
  };
  const good = contentOf('skill://live/SKILL.md', files['SKILL.md']), other = contentOf('skill://live/b.md', files['b.md']), free = { uri: 'file:///notes', text: 'evil' };
  assert.deepEqual((await resumed('skill://live/SKILL.md', [good])).result, { contents: [good] });
  assert.deepEqual((await resumed('file:///notes', [free])).result, { contents: [free] });
  const refused = ({ result, error }) => [result, error.code, error.data.error_type, error.data.details, error.data.hint];
  for (const contents of [[free], [other], [good, free]]) assert.deepEqual(refused(await resumed('skill://live/SKILL.md', contents)), [undefined, -32602, 'digest_mismatch', 'skill://live/SKILL.md', undefined], JSON.stringify(contents));
  const unknown = [undefined, -32602, 'digest_mismatch', undefined, 'The gateway knows of no such request any more. Read it again.'];
  assert.deepEqual(refused(await resumed('file:///notes', [free], { id: 99_999 })), unknown, 'a request that nobody has made here');
});

test('pin.skills approve: files up to 16 MiB are compared, larger ones refused; warn reads nothing', async (t) => {
  const largest = { bytes: Buffer.alloc(LARGEST, 7), isBlob: true }, tooLarge = { bytes: Buffer.alloc(LARGEST + 1, 7), isBlob: true };
  const files = { 'SKILL.md': { bytes: 's' }, 'largest': largest, 'larger': tooLarge, 'both': { bytes: 's' } };
  for (const [pin, wanted] of [['approve', { largest: undefined, larger: 'digest_mismatch', both: 'digest_mismatch' }], ['warn', { both: undefined }]]) {
    for (const [what, { upstream: server }, client] of await everywhere(t, { source: { pin: { skills: pin } } })) {
      serve(server, [pinned(files)], files);
      await client.result('skills/list');
      for (const [name, type] of Object.entries(wanted)) {
        if (name === 'both') server.handlers['resources/read'] = ({ reply }) => reply.result({ contents: [{ uri: 'skill://live/both', text: 's', blob: 'cw==' }] });
        assert.equal((await client.send('resources/read', { uri: `skill://live/${name}` })).message.error?.data.error_type, type, `${what} ${pin} ${name}`);
      }
    }
  }
});
