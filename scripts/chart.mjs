#!/usr/bin/env node
// Makes parts of the Helm chart: its README from the comments of values.yaml, and the schema of the value `config` from
// what `taskgate schema` prints.
//
//   scripts/chart.mjs            the README on stdout
//   scripts/chart.mjs --write    both, into deploy/helm/taskgate; the program is $TASKGATE_BIN, or build/taskgate
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const HERE = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const CHART = path.join(HERE, 'deploy/helm/taskgate');
const WIDTH = 120;

const INTRODUCTION = `# The chart taskgate

A policy gateway for MCP servers, as a pod of its own or beside a server in its pod. It needs Kubernetes 1.30.
[On Kubernetes](../../../docs/kubernetes.md) explains it, with examples. The chart has no rules: without
\`config.governance\` it is not installed. A misspelt value is refused.

\`\`\`sh
helm install gate deploy/helm/taskgate --values values.yaml
helm test gate
\`\`\`

## Values

\`scripts/chart.mjs --write\` makes this list from \`values.yaml\`. Each value has its default in brackets.
`;

/** [{path, value, comment}] in the order of the file. A key above others has the value null. */
export function values(text) {
  const found = [];
  const parents = []; // {indent, key}
  let above = [];
  for (const line of text.split('\n')) {
    const comment = /^ *# ?(.*)$/.exec(line);
    const entry = /^( *)([\w.-]+):(?: +("[^"]*"|.*?))?(?: +# (.*))?$/.exec(line);
    if (comment) {
      above.push(comment[1]);
    } else if (entry) {
      const [, { length: indent }, key, value, beside] = entry;
      while (parents.length > 0 && parents.at(-1).indent >= indent) parents.pop();
      parents.push({ indent, key });
      const words = [...above, ...(beside ? [beside] : [])].join(' ');
      found.push({ path: parents.map((parent) => parent.key).join('.'), value: value ?? null, comment: words });
      above = [];
    } else if (line.trim() === '') {
      above = [];
    } else {
      throw new Error(`"${line}" is not read: write a list in one line`);
    }
  }
  return found;
}

function wrapped(text, begin, indent) {
  const lines = [begin];
  for (const word of text.split(' ')) {
    if (lines.at(-1).length + 1 + word.length > WIDTH) lines.push(indent + word);
    else lines[lines.length - 1] += (/\S$/.test(lines.at(-1)) ? ' ' : '') + word;
  }
  return lines.join('\n');
}

function item({ path: name, value, comment }) {
  const shown = value === null ? '' : ` (\`${value}\`)`;
  return wrapped(`\`${name}\`${shown}${comment ? `: ${comment}` : ''}`, '- ', '  ');
}

export const readme = (text) => `${INTRODUCTION}\n${values(text).map(item).join('\n')}\n`;

/** A schema without its prose, which docs/configuration.md has. */
function bare(schema) {
  if (Array.isArray(schema)) return schema.map(bare);
  if (schema === null || typeof schema !== 'object') return schema;
  // A key of the configuration may have any name: the names below `properties` stay.
  const { description, ...rest } = schema;
  const inner = ([name, value]) => [name, name === 'properties' ? Object.fromEntries(Object.entries(value).map(([key, each]) => [key, bare(each)])) : bare(value)];
  return Object.fromEntries(Object.entries(rest).map(inner));
}

/**
 * The schema of the values with the configuration's in it. The chart says by itself, with the reason, which of its keys
 * are missing, and its templates read a mapping.
 */
export function withConfig(valuesSchema, configSchema) {
  const { $schema, title, required, pattern, ...config } = bare(configSchema);
  return { ...valuesSchema, properties: { ...valuesSchema.properties, config: { ...config, type: 'object' } } };
}

function write() {
  const file = path.join(CHART, 'values.schema.json');
  const program = process.env.TASKGATE_BIN ?? path.join(HERE, 'build/taskgate');
  const printed = JSON.parse(execFileSync(program, ['schema'], { encoding: 'utf8' }));
  const schema = withConfig(JSON.parse(fs.readFileSync(file, 'utf8')), printed);
  fs.writeFileSync(file, `${JSON.stringify(schema, null, 2)}\n`);
  fs.writeFileSync(path.join(CHART, 'README.md'), readmeOfToday());
}

const readmeOfToday = () => readme(fs.readFileSync(path.join(CHART, 'values.yaml'), 'utf8'));

function main(words) {
  if (words.length === 0) return process.stdout.write(readmeOfToday());
  if (words.length === 1 && words[0] === '--write') return write();
  console.error('usage: scripts/chart.mjs [--write]');
  process.exitCode = 2;
}

if (process.argv[1] && fs.realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) main(process.argv.slice(2));
