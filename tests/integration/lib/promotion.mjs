// Shared by the tests of promoted calls: an upstream with slow tools that the test answers, and the promotion's shape.
import assert from 'node:assert/strict';
import { defer } from './lifetime.mjs';
import { scene } from './scene.mjs';
import { tool } from './upstream.mjs';

export const ULID = /^[0-9A-HJKMNP-TV-Z]{26}$/;
/** A client that declares nothing. */
export const PLAIN = { capabilities: {} };
/** Behaviour 11.10. */
export const SENTENCE = (ms, id) => new RegExp(`^Tool call exceeded timeout \\(${ms}ms\\)\\. Promoted to task ${id}\\. Use get_task_result to retrieve the result when ready\\.$`);


/**
 * A scene with an upstream that keeps each call of a tool `slow…` in `held` until the test answers it. `mode` and
 * `pseudoTasks` belong to the configuration; a plain call waits 400 ms.
 */
export async function stage(t, { mode, pseudoTasks, config = {}, upstream: upstreamOptions = {}, ...options } = {}) {
  const held = [];
  const set = await scene(t, {
    ...options,
    upstream: { tools: [tool('slow'), tool('read')], ...upstreamOptions },
    config: {
      pseudo_tools: { promote: 'wait', only: 'all', wait: '400ms', wait_max: '400ms', ...(mode ? { mode } : {}) },
      ...(pseudoTasks ? { pseudo_tasks: pseudoTasks } : {}),
      ...config,
    },
  });
  const { upstream } = set;
  upstream.handlers['tools/call'] ??= (call) => {
    if (!call.params.name.startsWith('slow')) return call.reply.result({ content: [{ type: 'text', text: `did ${call.params.name}` }] });
    held.push(call);
  };
  // A stopping gateway waits for its calls: they end with the test.
  defer(t, () => {
    for (const { reply } of held) if (!reply.response.writableEnded) reply.cut();
  });
  return { ...set, held };
}

/** The texts of a result's blocks. */
export function blocks(result) {
  return result.content.map((block) => block.text);
}

/** Asserts that `result` is a promotion, and takes it apart. */
export function promoted(result) {
  assert.ok(Array.isArray(result.content), JSON.stringify(result));
  const [text, second] = blocks(result);
  assert.match(text, /Promoted to task/, JSON.stringify(result));
  assert.equal(result.isError, false);
  const block = JSON.parse(second);
  const id = block.proxy_task.task_id;
  assert.match(id, ULID);
  return { id, text, block };
}
