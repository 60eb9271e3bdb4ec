// A stage for calls of the control plane: the gateway, its callers, and their requests.
import assert from 'node:assert/strict';
import { workflow } from './gateway.mjs';
import { scene } from './scene.mjs';
import { tool } from './upstream.mjs';

export const TOKENS = {
  CI_TOKEN: 'control-plane-ci-token-000001',
  CRON_TOKEN: 'control-plane-cron-token-00001',
  BOTH_TOKEN: 'control-plane-both-token-00001',
  EYE_TOKEN: 'control-plane-eye-token-000001',
  UPSTREAM_SECRET: 'Bearer static-secret',
};

export const TOOLS = [tool('read'), tool('delete_user'), tool('drop_all'), tool('hidden')];

/** The gateway with callers "ci" and "cron", "both" (caller and approver) and a viewer "eye". */
export async function stage(t, { config, source, ...more } = {}) {
  const stage = await scene(t, {
    rules: [['delete_*', 'approve'], ['drop_*', 'deny']],
    approval: workflow('10m'),
    expose: { mode: 'blocklist', tools: ['hidden'] },
    source: { headers: { authorization: { env: 'UPSTREAM_SECRET' } }, ...source },
    upstream: { tools: TOOLS },
    env: TOKENS,
    config: {
      admin: {
        tokens: [
          { name: 'ci', token_env: 'CI_TOKEN', roles: ['caller'] },
          { name: 'cron', token_env: 'CRON_TOKEN', roles: ['caller'] },
          { name: 'both', token_env: 'BOTH_TOKEN', roles: ['approver', 'caller'] },
          { name: 'eye', token_env: 'EYE_TOKEN', roles: ['viewer'] },
        ],
      },
      ...config,
    },
    ...more,
  });
  const as = (name) => stage.admin.as(TOKENS[`${name.toUpperCase()}_TOKEN`]);
  return { ...stage, as, ci: as('ci'), cron: as('cron'), both: as('both'), eye: as('eye') };
}

export const call = (admin, body) => admin.post('/api/v1/calls', body);
export const result = (admin, id, wait) => admin.get(`/api/v1/tasks/${id}/result${wait === undefined ? '' : `?wait=${wait}`}`);

export async function called(admin, body) {
  const answer = await call(admin, body);
  assert.equal(answer.status, 201, answer.text);
  return answer.json;
}
