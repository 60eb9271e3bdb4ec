// The alarms and the dashboard: only metrics that exist, PromQL that Prometheus reads, alarms that fire.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { inRoot, missing, read, run, temporaryFolder } from './lib/tools.mjs';

const skip = missing('promtool', 'apt-get install prometheus');
const ALERTS = 'deploy/monitoring/alerts.yaml';
const dashboard = JSON.parse(read('deploy/monitoring/dashboard.json'));

/** Of each series that the table of metrics makes, its labels. */
function series() {
  const all = new Map();
  for (const [, kind, name, labels] of read('include/taskgate/core/metrics_table.h').matchAll(/^METRIC_ROW\(\w+, (\w+), "(\w+)", "([\w,]*)"/gm)) {
    const own = labels.split(',').filter(Boolean);
    if (kind !== 'HISTOGRAM') all.set(`thoughtgate_${name}`, own);
    for (const [end, more] of kind === 'HISTOGRAM' ? [['bucket', ['le']], ['sum', []], ['count', []]] : []) all.set(`thoughtgate_${name}_${end}`, [...own, ...more]);
  }
  return all;
}

const panels = dashboard.panels.filter(({ type }) => type !== 'row');
const queries = panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [title, expr]));
const variables = dashboard.templating.list.filter(({ type }) => type === 'query').map(({ name, definition }) => [name, definition]);
// A folded expression goes on in deeper lines.
const rules = [...read(ALERTS).matchAll(/- alert: (\w+)\n +expr: (?:>-\n((?: {10}.*\n)+)|(.*)\n)/g)].map(([, name, folded, plain]) => [name, (folded ?? plain).replace(/\s+/g, ' ').trim()]);
// The labels that Prometheus itself adds to each series.
const COMMON = ['job', 'instance', 'namespace'];

test('every metric that the dashboard and the alarms name is a row of the table, with its labels', () => {
  const known = series();
  assert.ok(known.size > 40, `${known.size}`);
  assert.equal(rules.length, (read(ALERTS).match(/^ +- alert:/gm) ?? []).length);
  for (const [where, text] of [...queries, ...variables, ...rules]) {
    const names = text.match(/\bthoughtgate_\w+/g) ?? [];
    assert.ok(names.length > 0 || /^up\{/.test(text), `${where}: no metric`);
    for (const name of names) assert.ok(known.has(name), `${where}: ${name} is no metric of the table`);
    const allowed = new Set([...COMMON, ...names.flatMap((name) => known.get(name) ?? [])]);
    const used = [...text.matchAll(/\{([^}]*)\}/g)].flatMap(([, selector]) => [...selector.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label]) => label));
    used.push(...[...text.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, labels]) => labels.split(',').map((label) => label.trim())));
    for (const label of used) assert.ok(allowed.has(label), `${where}: none of ${names.join(', ')} has the label ${label}`);
  }
});

test('the panels of the dashboard stand beside each other, each with an id of its own', () => {
  const cells = new Set(), ids = dashboard.panels.map(({ id }) => id);
  assert.equal(new Set(ids).size, ids.length);
  for (const { title, gridPos: { x, y, w, h } } of dashboard.panels) {
    assert.ok(x + w <= 24, title);
    for (let i = 0; i < w * h; i++) {
      const cell = `${x + (i % w)},${y + Math.floor(i / w)}`;
      assert.ok(!cells.has(cell), `${title} covers another panel`);
      cells.add(cell);
    }
  }
});

test('Prometheus reads the queries of the dashboard', { skip }, (t) => {
  const file = path.join(temporaryFolder(t), 'queries.yaml');
  const plain = (expr) => expr.replaceAll('$__rate_interval', '5m').replaceAll('$__range', '1h').replace(/\$\w+/g, '.*');
  const records = queries.map(([, expr], i) => `      - record: query_${i}\n        expr: ${JSON.stringify(plain(expr))}\n`);
  writeFileSync(file, `groups:\n  - name: dashboard\n    rules:\n${records.join('')}`);
  const { status, stdout, stderr } = run('promtool', ['check', 'rules', file]);
  assert.equal(status, 0, stderr);
  assert.match(stdout, new RegExp(`SUCCESS: ${queries.length} rules found`));
});

test('Prometheus reads the alarms', { skip }, () => {
  const { status, stdout, stderr } = run('promtool', ['check', 'rules', inRoot(ALERTS)]);
  assert.equal(status, 0, stderr);
  assert.match(stdout, new RegExp(`SUCCESS: ${rules.length} rules found`));
});

test('each alarm fires when it should, and keeps quiet otherwise', { skip }, () => {
  const { status, stdout, stderr } = run('promtool', ['test', 'rules', inRoot('tests/deploy/alerts.test.yaml')]);
  assert.equal(status, 0, stdout + stderr);
});

test('each alarm has a case in which it fires, one in which it does not, and a place in docs/metrics.md that its runbook_url names', () => {
  const cases = read('tests/deploy/alerts.test.yaml'), document = read('docs/metrics.md');
  for (const [name] of rules) {
    assert.match(cases, new RegExp(`alertname: ${name}\\n +exp_alerts:`), name);
    assert.match(cases, new RegExp(`alertname: ${name}\\}`), name);
    assert.match(document, new RegExp(`^### \`${name}\`\\n\\n\\S`, 'm'), `docs/metrics.md does not say what to do about ${name}`);
    const own = new RegExp(`- alert: ${name}\\n(?:(?!- alert:)[^])*?runbook_url: https://taskgate\\.dev/metrics\\.html#${name.toLowerCase()}\\n`);
    assert.match(read(ALERTS), own, `the runbook_url of ${name}`);
  }
});
