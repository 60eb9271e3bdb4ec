// Clients of the official SDK 1.x that never send `task`, and how each of their kinds calls a tool.
import assert from 'node:assert/strict';
import { sdkClient } from './client.mjs';
import { startGateway, workflow } from './gateway.mjs';

export const plainKinds = {
  'a client of 2025-06-18': { protocol: '2025-06-18' },
  'a client of 2025-03-26': { protocol: '2025-03-26' },
  'a client of 2025-11-25 that clients: lists': { protocol: '2025-11-25', name: 'listed-agent', capabilities: { tasks: {} } },
  'a client of 2025-11-25 as it comes': { protocol: '2025-11-25' },
};

/**
 * Two gateways before one server: one with the default wait for calls, and one with a wait of half a second.
 */
export async function twoPatiences(t, target, server) {
  return { patient: await plainGateway(t, target, server), hurried: await plainGateway(t, target, server, { pseudo_tools: HURRIED }) };
}

export const HURRIED = { promote: 'wait', only: 'all', wait: '500ms', wait_max: '500ms' };

export const plainGateway = (t, target, server, config = {}) =>
  startGateway(t, {
    upstream: server.url,
    rules: [[target.dangerous.name, 'approve']],
    approval: workflow('10m'),
    config: { clients: [{ match: 'listed-*', tasks: 'no' }], pseudo_tools: { promote: 'wait', only: 'all' }, ...config },
  });

export class PlainClient {
  /** Connects to `gateway` as `kind` and lists the tools, as agents do first. */
  static async connect(t, gateway, kind) {
    const sdk = await sdkClient(t, gateway.url, { name: kind.name ?? 'plain-sdk', protocol: kind.protocol, capabilities: kind.capabilities });
    const { tools } = await sdk.listTools();
    return Object.assign(new PlainClient(), { sdk, kind, tools, admin: gateway.admin });
  }

  /** One of upstream's tools. */
  call({ name, arguments: args }) {
    return this.sdk.callTool({ name, arguments: args });
  }

  /** One of the gateway's tools. */
  tool(name, args = {}) {
    return this.sdk.callTool({ name, arguments: args });
  }

  /** The task in a pending answer. */
  static taskIn(result) {
    const task = result.structuredContent?.proxy_task;
    assert.equal(task?.status, 'working', JSON.stringify(result));
    assert.ok(result.content[0].text.includes(task.task_id), 'the sentence names the task');
    return task;
  }
}
