// The text of the project is plain: a sentence begins with its subject, and only a question begins with a question's word.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { files, read } from './lib/documents.mjs';
import { comments, prose, riddles, titles } from './lib/prose.mjs';

/* This file has such sentences for the last test. The corpora are no text. */
const sources = files('').filter(
  (file) =>
    /^(?:src|include|tests|examples|scripts)\/.*(?:\.(?:c|h|mjs|js|py|sh|build|go|rs|css)|\/[^./]+)$/.test(file) &&
    !/\/corpus\/|^tests\/docs\/prose\.test\.mjs$/.test(file),
);
const documents = files('.md');
const found = (file, pieces) => pieces.flatMap(riddles).map(({ line, text }) => `${file}:${line}: ${text}`);

test('no sentence of a comment begins with a word for a question', () => {
  assert.deepEqual(sources.flatMap((file) => found(file, comments(file, read(file)))), []);
});

test('no title of a test begins with a word for a question', () => {
  assert.deepEqual(sources.flatMap((file) => found(file, titles(read(file)))), []);
});

for (const file of documents) {
  test(`${file}: no sentence begins with a word for a question`, () => {
    assert.deepEqual(found(file, [prose(read(file))]), []);
  });
}

test('such a sentence is found in each kind of comment, in titles and in prose, with its line', () => {
  const lines = (pieces) => pieces.flatMap(riddles).map(({ line, text }) => [line, text]);
  const c = '/*\n * A list. Who\n * asks first is first.\n */\nint a; /* what it holds */\n"/* Who */";\n/* The one who asks. What is it? */\n';
  assert.deepEqual(lines(comments('a.h', c)), [[2, 'Who asks first is first.'], [5, 'what it holds']]);
  const js = '// One. The rest,\n// Which ends.\ncall(); // where it ends\n/** Whose it is. */\n';
  assert.deepEqual(lines(comments('a.mjs', js)), [[3, 'where it ends'], [4, 'Whose it is.']]);
  assert.deepEqual(lines(comments('run', '#!/bin/sh\n# Whoever\n# runs it.\n')), [[2, 'Whoever runs it.']]);
  const tests = 'test(\'what is there\', () => {});\ntest(`a ${b}`);\nSTART_TEST(who_is_there)\ntest("it\'s whole");\n';
  assert.deepEqual(lines(titles(tests)), [[1, 'what is there'], [3, 'who is there']]);
  const text = '# What it is\n\nA fact. What is so\nis so.\n\n- Whoever asks\n- Where: here\n\n| Which | a |\n|---|---|\n| b | Who? |\n\n```\nWhat\n```\n';
  assert.deepEqual(lines([prose(text)]), [[3, 'What is so is so.'], [6, 'Whoever asks']]);
});
