// Whole cases: policies, entities and requests, and texts that may or may not be policies.
import { Expressions } from './expressions.mjs';
import { extensionText, extensions, ids, quoted, reserved, stringValue, types } from './literals.mjs';

const actions = ['view', 'edit', 'all'];
const entityTypes = types.slice(0, 5);

export class Cases {
  constructor(random) {
    this.random = random;
    this.expressions = new Expressions(random);
  }

  // ---- Policies

  entityText(list = types) {
    return `${this.random.pick(list)}::${quoted(this.random, this.random.pick(ids))}`;
  }

  scopePart(variable) {
    const type = this.random.pick(types);
    return this.random.pick([variable, variable, variable, `${variable} == ${this.entityText()}`, `${variable} in ${this.entityText()}`,
      `${variable} is ${type}`, `${variable} is ${type} in ${this.entityText()}`]);
  }

  actionPart() {
    const action = () => `Action::"${this.random.pick(actions)}"`;
    return this.random.pick(['action', 'action', `action == ${action()}`, `action in ${action()}`,
      `action in [${this.random.list(this.random.below(4), action).join(', ')}]`]);
  }

  annotations() {
    const names = new Set(this.random.list(this.random.below(3), () => this.random.pick(['id', 'note', 'if', 'x1'])));
    return [...names].map((name) => (this.random.once(4) ? `@${name}\n` : `@${name}(${quoted(this.random, stringValue(this.random))})\n`)).join('');
  }

  /** Without a scope the condition is evaluated for every request. */
  policy(effect, scoped, size) {
    const scope = scoped ? [this.scopePart('principal'), this.actionPart(), this.scopePart('resource')].join(', ') : 'principal, action, resource';
    const conditions = this.random.list(scoped ? this.random.below(3) : 1, () => {
      const word = this.random.once(4) ? 'unless' : 'when';
      return ` ${word} { ${this.expressions.of('bool', size)} }`;
    });
    return `${this.annotations()}${effect}(${scope})${conditions.join('')};`;
  }

  // ---- Entities and requests, as JSON.

  extension() {
    const good = { ip: ['127.0.0.1', '10.0.0.0/8', '::1', 'ff02::1/64'], decimal: ['1.5', '-0.5', '12.3400'],
      datetime: ['2024-01-01', '1969-12-31T23:59:59.999Z'], duration: ['1d', '-1h30m', '0ms'] };
    const name = this.random.pick(extensions);
    return { __extn: { fn: name, arg: this.random.pick(good[name]) } };
  }

  uid(list = entityTypes) {
    return { type: this.random.pick(list), id: this.random.pick(ids) };
  }

  value(kind, depth) {
    const random = this.random;
    switch (kind) {
      case 'flag':
        return random.once(2);
      case 'age':
        return random.pick([0, 1, 42, -1, 1000]);
      case 'owner':
        return { __entity: this.uid() };
      case 'tags':
        return random.list(random.below(12), () => this.value(random.pick(['flag', 'age', 'name', 'owner', 'ip']), 0));
      case 'rec': case 'deep':
        return depth > 0 ? this.attributes(depth - 1) : {};
      case 'ip': case 'price': case 'when': case 'span': {
        const name = { ip: 'ip', price: 'decimal', when: 'datetime', span: 'duration' }[kind];
        for (;;) {
          const made = this.extension();
          if (made.__extn.fn === name) return made;
        }
      }
      default:
        return stringValue(random);
    }
  }

  attributes(depth) {
    const names = ['name', 'age', 'flag', 'tags', 'rec', 'owner', 'ip', 'price', 'when', 'span', 'deep', 'odd key', 'if', ''];
    const record = {};
    for (const name of names) if (!this.random.once(4)) record[name] = this.value(this.random.once(15) ? this.random.pick(names) : name, depth);
    return record;
  }

  /** A hierarchy without circles: parents stand behind their children. */
  entities() {
    const all = [];
    for (const type of entityTypes) for (const id of ids) if (id !== 'absent' && !this.random.once(3)) all.push({ type, id });
    const list = all.map((uid, at) => ({
      uid,
      attrs: this.attributes(1),
      parents: this.random.list(this.random.below(3), () => (this.random.once(5) || at + 1 === all.length
        ? { type: 'Group', id: 'absent' } : all[at + 1 + this.random.below(all.length - at - 1)])),
      tags: Object.fromEntries(this.random.list(this.random.below(3), () => [this.random.pick(['a', 'b', 'é', '']), this.value('name', 0)])),
    }));
    list.push({ uid: { type: 'Action', id: 'view' }, attrs: {}, parents: [{ type: 'Action', id: 'all' }], tags: {} });
    if (this.random.once(2)) list.push({ uid: { type: 'Action', id: 'all' }, attrs: {}, parents: [], tags: {} });
    return list;
  }

  request() {
    return {
      principal: this.uid(['User', 'NS::User', 'Group', 'Other']),
      action: { type: 'Action', id: this.random.pick(actions) },
      resource: this.uid(['Doc', 'Folder']),
      context: this.attributes(1),
    };
  }

  // ---- Texts

  space() {
    return this.random.pick(['', ' ', '\n', '\t', '\r\n', ' // note\n', '\u00a0', '\u2028', '\u3000', '\u0085', '\v', '\f', '  ']);
  }

  /** A text with some tokens changed: seldom still a policy. */
  text() {
    const random = this.random;
    const base = this.policy(random.pick(['permit', 'forbid']), true, 3);
    const tokens = base.match(/"(?:[^"\\]|\\.)*"|\w+|::|==|!=|<=|>=|&&|\|\||\s+|./gsu);
    const extra = ['"', '(', ')', '{', '}', '[', ']', ',', ';', '.', '::', '==', '=', '!', '-', '*', '/', '%', '+', '<', '&&', '||', '@', '?', ':',
      '?principal', 'if', 'then', 'else', 'in', 'is', 'has', 'like', 'true', 'principal', 'context', 'when', 'unless', '9223372036854775808',
      '"\\q"', '"\\u{110000}"', '"\\u{d800}"', '"\\x80"', '"\\*"', '"\\u{1_F600}"', '"\\u{}"', '"\\x7"', '1', 'a', '\u00e9', '#', '$', '&', '|', '/*', '//', '\\',
      '__cedar', '-1', '!!!!!', '-----', '"a', "'a'", '0x1', '1.5', ',,', 'permit', ...reserved];
    for (let i = random.below(3); i > 0; i--) {
      const at = random.below(tokens.length);
      switch (random.below(4)) {
        case 0: tokens.splice(at, 1); break;
        case 1: tokens.splice(at, 1, random.pick(extra)); break;
        case 2: tokens.splice(at, 0, random.pick(extra)); break;
        default: tokens.splice(at, 0, tokens[random.below(tokens.length)]);
      }
    }
    if (random.once(3)) return tokens.map((token) => (random.once(4) ? this.space() + token : token)).join('');
    return tokens.join('');
  }
}
