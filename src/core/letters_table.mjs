// Writes letters_table.h: node src/core/letters_table.mjs > src/core/letters_table.h
//
// By the Unicode data of node: letters and the marks on them, in ranges with their script. A range goes on over code
// points that are not assigned.
const SCRIPTS = ['Latin', 'Cyrillic', 'Greek', 'Armenian', 'Cherokee'];
const known = SCRIPTS.map((name) => [name.toUpperCase(), new RegExp(`^\\p{Script=${name}}$`, 'u')]);

function scriptOf(character) {
  if (/^[^\p{L}\p{M}]$/u.test(character)) return null;
  return known.find(([, script]) => script.test(character))?.[0] ?? 'OTHER';
}

const ranges = [];
let last = null;
for (let point = 0; point <= 0x10ffff; point++) {
  const character = String.fromCodePoint(point);
  if (/^\p{Cn}$/u.test(character)) continue;
  const script = scriptOf(character);
  if (script && last?.script === script) last.last = point;
  else if (script) ranges.push((last = { first: point, last: point, script }));
  else last = null;
}

const hex = (point) => `0x${point.toString(16).toUpperCase().padStart(4, '0')}`;
process.stdout.write(`/* Made by letters_table.mjs, by the data of Unicode ${process.versions.unicode}. */\n#pragma once\n\n/* clang-format off */\n#define LETTER_RANGES(X) \\\n${ranges
  .map(({ first, last: end, script }) => `    X(${hex(first)}, ${hex(end)}, ${script})`)
  .join(' \\\n')}\n/* clang-format on */\n`);
