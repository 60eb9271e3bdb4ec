// Entities and requests as JSON, with any value at any place: whether it is read, and how.

const group = { type: 'Group', id: 'g' };
const entity = (type, id = 'g') => ({ __entity: { type, id } });
const extension = (fn, ...args) => ({ __extn: args.length === 1 ? { fn, arg: args[0] } : { fn, args } });
const [address, range] = [extension('ip', '1.2.3.4'), extension('ip', '1.0.0.0/8')];
const [day, hours] = [extension('datetime', '2023-01-01'), extension('duration', '24h')];

const values = [1, -1, 0, true, 's', '', null, 1.5, 9007199254740991, [], {}, [1, [1]], [null], { x: null }, { '': 1 }, { if: 1, 'a b': 2 }, { __cedar: 1 },
  // nearly entities
  group, { ...group, x: 1 }, { type: 'Group' }, { id: 'g' }, { __entity: group }, { __entity: { ...group, x: 1 } }, { __entity: group, x: 1 },
  { x: 1, __entity: group }, { __entity: { type: 'Group' } }, { __entity: { id: 'g' } }, { __entity: 'Group::"g"' }, { __entity: null }, { __entity: 1 },
  { __entity: { __entity: group } }, { __entity: group, __extn: { fn: 'ip', arg: '1.2.3.4' } }, entity(1), entity(null), entity('Group', 1), entity('Group', null),
  entity('Group', ''), entity('Group', '\0"\\'), '__entity', [{ __entity: group }, { __entity: group }],
  ...['', 'Gr oup', 'A::B', 'A :: B', 'A::', '::A', 'Group ', ' Group', 'A//x\n', 'é', '_a1', '1a', 'if', 'in', 'is', 'like', 'has', 'true', 'principal', 'permit',
    '__cedar', '__cedar::A', 'A::__cedar', 'A::if', 'A:B', 'A.B', 'A::B::C', '"A"'].map((type) => entity(type)),
  // nearly extension values
  address, range, day, hours, extension('decimal', '1.2'), extension('decimal', '1.20000'), extension('ip', 'x'), extension('ip', 1), extension('ip', address),
  extension('ip', '1.2.3.4', '1.2.3.4'), extension('ip'), { __extn: { fn: 'ip', args: ['1.2.3.4'] } }, { __extn: { fn: 'ip', args: '1.2.3.4' } }, { __extn: { fn: 'ip' } },
  { __extn: { arg: '1.2.3.4' } }, { __extn: { fn: 'ip', arg: '1.2.3.4', args: ['1.2.3.4'] } }, { __extn: { fn: 'ip', arg: '1.2.3.4', x: 1 } },
  { __extn: { fn: 'ip', arg: '1.2.3.4' }, x: 1 }, { __extn: 'ip("1.2.3.4")' }, { __extn: null }, { __extn: ['ip', '1.2.3.4'] }, { __extn: address }, { fn: 'ip', arg: '1.2.3.4' },
  ...['', 'foo', ' ip', 'A::ip', 'if', 'partial', 'error'].map((fn) => extension(fn, '1.2.3.4')), extension('contains', [1], 1),
  extension('isIpv4', address), extension('isInRange', address, range), extension('lessThan', extension('decimal', '1.2'), extension('decimal', '1.3')),
  extension('toDate', day), extension('toTime', day), extension('offset', day, hours), extension('offset', day), extension('offset', day, 1),
  extension('offset', hours, day), extension('durationSince', day, day), extension('toDays', hours), [address], { n: address }, { __extn: { fn: 'offset', args: [day, hours], x: 1 } },
  // escapes of older and other versions
  { __expr: '1' }, { __expr: 'ip("1.2.3.4")' }, { __expr: 1 }, { __expr: '1', x: 1 }, { __unknown: 'x' }];

export const policies = ['true', 'principal.a == principal.b', 'principal.a == context.a', 'context.a == context.b', 'principal.a == "ip"', 'principal.a == []', 'principal.a == {}',
  'principal.a == Group::"g"', 'principal.a == A::B::"g"', 'principal.a in Group::"g"', 'principal in Group::"g"', 'principal in resource', 'principal.hasTag("t")',
  'principal.getTag("t") == principal.a', 'principal.a == ip("1.2.3.4")', 'principal.a == decimal("1.2")', 'principal.a < datetime("2023-01-02")',
  'context.a < datetime("2024-01-01")', 'principal.a > 0', 'principal.a', 'principal.a has __entity', 'principal.a has type', 'principal.a has x'];

const user = { type: 'User', id: 'a' }, action = { type: 'Action', id: 'v' }, resource = { type: 'Doc', id: 'd' };
const of = (uid, attrs = {}, parents = [], more = {}) => ({ uid, attrs, parents, ...more });

/** A value where each member may stand. */
function* placed(value) {
  const entities = [of(user)], request = { principal: user, action, resource, context: {} };
  yield { entities: [of(user, { a: value, b: value })], request };
  yield { entities: [of(user, {}, [], { tags: { t: value } })], request };
  yield { entities: [of(user, { a: value })], request: { ...request, context: { a: value, b: value } } };
  yield { entities, request: { ...request, context: value } };
  yield { entities: [...entities, value], request };
  yield { entities: value, request };
  yield { entities: [of(user, value)], request };
  yield { entities: [of(user, {}, value)], request };
  yield { entities: [of(user, {}, [], { tags: value })], request };
  // These take the text of an entity, too, as requests of the language's own command do.
  if (typeof value === 'string') return;
  yield { entities: [...entities, of(value)], request };
  yield { entities: [of(user, {}, [value])], request };
  yield { entities, request: { ...request, principal: value } };
}

/** Entities that are there twice, above themselves, or not whole. */
const families = [
  [{ attrs: {}, parents: [] }], [{ uid: user, parents: [] }], [{ uid: user, attrs: {} }], [of(user, {}, [], { foo: 1 })], [of(user), of(user)],
  [of(user, { x: 1 }), of(user)], [of(user, {}, [resource, group]), of(user, {}, [group, resource])], [of(user, {}, [resource, resource]), of(user, {}, [resource])],
  [of(user, { s: [1, 2] }), of(user, { s: [2, 1, 1] })], [of(user, {}, [], { tags: {} }), of(user)], [of(user, {}, [], { tags: { t: 1 } }), of(user)],
  [of(user, {}, [resource, group]), of(user, {}, [resource]), of(resource, {}, [group])], [of(user, {}, [resource, group]), of(resource, {}, [group])],
  [of(user, { s: extension('decimal', '1.0') }), of(user, { s: extension('decimal', '1.00') })], [of(user, { s: extension('ip', '1.1.1.1') }), of(user, { s: extension('ip', '1.1.1.1/32') })],
  [of(user, { s: day }), of(user, { s: extension('datetime', '2023-01-01T00:00:00Z') })], [of(user, {}, [user])], [of(user, {}, [resource]), of(resource, {}, [user])],
  [of(user, {}, [resource]), of(resource, {}, [action]), of(action, {}, [user])], [of(action, { x: 1 })], [of(action, {}, [user])], [of(user, {}, [{ __entity: group }])],
];

export function* forms() {
  for (const value of values) yield* placed(value);
  for (const entities of families) yield { entities, request: { principal: user, action, resource, context: {} } };
}
