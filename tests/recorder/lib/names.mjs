// Values that each run makes anew have stable names in their place, numbered in order of first appearance where identity matters.
import fs from 'node:fs';

const [, VERSION] = /^ *version: '([^']+)'/m.exec(fs.readFileSync(new URL('../../../meson.build', import.meta.url), 'utf8'));

const NUMBERED = {
  trace: /(?<=\b00-)[0-9a-f]{32}(?=-)/,
  span: /(?<=-)[0-9a-f]{16}(?=-0[01]\b)/,
  uuid: /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/,
  uuidInName: /(?<=tg_)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/,
  ulid: /\b[0-9][0-9A-HJKMNP-TV-Z]{25}\b/,
  token: /\beyJ[\w-]+\.[\w-]+\.[\w-]+/,
  state: /\btg1\.[\w-]+/,
};
const ALIASES = { uuidInName: 'uuid' };

const PLAIN = [
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)/g, '<time>'],
  [/\b[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT\b/g, '<date>'],
  [/\b1[789]\d{11}\b/g, '<ms>'],
  [/(?<="digest":")[0-9a-f]{64}/g, '<digest>'],
  [/(?<="ttlMs":)\d{7,}/g, (ms) => `<${Math.floor(ms / 60_000)} minutes>`],
];

/** `text` with names. `ports`: {port: name} of addresses on this machine. */
export function named(text, ports) {
  for (const [port, name] of Object.entries(ports)) text = text.replaceAll(`127.0.0.1:${port}`, `<${name}>`);
  for (const [pattern, name] of PLAIN) text = text.replace(pattern, name);
  text = text.replaceAll(`"version":"${VERSION}"`, '"version":"<version>"').replaceAll(`taskgate/${VERSION}`, 'taskgate/<version>');
  const seen = {};
  const kinds = Object.keys(NUMBERED);
  const any = new RegExp(kinds.map((kind) => `(?<${kind}>${NUMBERED[kind].source})`).join('|'), 'g');
  return text.replace(any, (value, ...rest) => {
    const found = rest.at(-1);
    const kind = kinds.find((name) => found[name] !== undefined);
    const known = (seen[ALIASES[kind] ?? kind] ??= new Map());
    if (!known.has(value)) known.set(value, known.size + 1);
    return `<${ALIASES[kind] ?? kind} ${known.get(value)}>`;
  });
}
