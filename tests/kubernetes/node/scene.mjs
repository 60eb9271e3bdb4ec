// What the tests on a node share: a namespace with a volume, the token of alice, and a server on the machine.
import { AdminClient } from '../../integration/lib/admin.mjs';
import { connectedRaw } from '../../integration/lib/client.mjs';
import { freePort } from '../../integration/lib/ports.mjs';
import { startPostgres } from '../../integration/lib/postgres.mjs';
import { startUpstream } from '../../integration/lib/upstream.mjs';
import { IMAGE } from '../lib/node.mjs';

/** The labels of the gateway's pods. */
export const GATEWAY = 'app.kubernetes.io/name=taskgate';
export const TOKEN = 'a-token-of-alice-alone';

export const OPERATORS = { existingSecret: 'taskgate-operators', people: [{ name: 'alice', roles: ['approver', 'auditor'] }] };
export const GOVERNANCE = { defaults: { action: 'approve' }, rules: [{ match: 'read', action: 'forward' }] };

export const mcp = ({ address }) => `http://${address}:7467/mcp`;
export const admin = ({ address }) => new AdminClient(`http://${address}:7469`, TOKEN);

/** A namespace with the Secret of the operators, and values of the chart for a gateway before a server on the machine. */
export async function scene(t, { node }, name, { claim = 'gate', tokens = [] } = {}) {
  const upstream = await startUpstream(t, { address: node.outside });
  const ns = await node.namespace(t, name);
  const others = tokens.map((person) => [person, `a-token-of-${person}-alone`]);
  await ns.secret('taskgate-operators', { alice: TOKEN, ...Object.fromEntries(others) });
  const volume = await ns.volume(claim);
  const values = { ...IMAGE, operators: OPERATORS, config: { sources: [{ id: 'main', kind: 'mcp', url: upstream.url }], governance: GOVERNANCE } };
  return { ns, upstream, volume, values, admin, client: (pod, more) => connectedRaw(t, mcp(pod), more) };
}

/** A database on the machine for the pods, with a role that changes the schema and one that does not. */
export async function startDatabase(t, node) {
  const prepare = async (server) => {
    server.settings = [`listen_addresses=${node.outside}`];
    server.port = await freePort();
    server.access(['local all all trust', 'host all all 10.0.0.0/8 trust']);
  };
  const server = await startPostgres(t, { prepare });
  server.query('CREATE ROLE owner LOGIN; CREATE ROLE gate LOGIN; GRANT CREATE ON SCHEMA public TO owner');
  return (user) => `postgres://${user}:secret@${node.outside}:${server.port}/gate?sslmode=disable`;
}
