// Expressions of any type, as text: mostly well typed, now and then on purpose not.
import { attributes, extensions, extensionText, ids, longText, quoted, reserved, stringValue, types } from './literals.mjs';

const kinds = ['bool', 'long', 'string', 'entity', 'set', 'record', ...extensions];
/** The attributes of the entities and the context, by the type of their values. */
const attributesOf = {
  bool: ['flag'], long: ['age'], string: ['name', 'odd key', 'if', ''], entity: ['owner'], set: ['tags'], record: ['rec', 'deep'],
  ip: ['ip'], decimal: ['price'], datetime: ['when'], duration: ['span'],
};

export class Expressions {
  constructor(random) {
    this.random = random;
  }

  /** An expression of `kind`, at most about `size` operators high. */
  of(kind, size) {
    const random = this.random;
    if (random.once(25)) kind = random.pick(kinds);
    if (size <= 0) return this.leaf(kind);
    switch (random.below(9)) {
      case 0:
        return this.leaf(kind);
      case 1:
        return this.access(kind, size);
      case 2:
        return random.once(2) ? `(if ${this.of('bool', size - 2)} then ${this.of(kind, size - 2)} else ${this.of(kind, size - 2)})`
          : `(${this.of(kind, size - 1)})`;
      default:
        return this[kind](size - 1);
    }
  }

  operand(kind, size) {
    const text = this.of(kind, size);
    return /^[\w:"]+$/.test(text) || this.random.once(8) ? text : `(${text})`;
  }

  leaf(kind) {
    const random = this.random;
    switch (kind) {
      case 'bool':
        return random.pick(['true', 'false']);
      case 'long':
        return longText(random);
      case 'string':
        return quoted(random, stringValue(random));
      case 'entity':
        return random.once(2) ? random.pick(['principal', 'resource', 'action']) : this.entityLiteral();
      case 'set':
        return random.once(3) ? '[]' : `[${random.list(random.below(4), () => this.leaf(random.pick(kinds))).join(', ')}]`;
      case 'record':
        return random.once(3) ? 'context' : this.recordOf(0);
      default:
        return `${kind}(${quoted(random, extensionText(random, kind))})`;
    }
  }

  entityLiteral() {
    return `${this.random.pick(types)}::${quoted(this.random, this.random.pick(ids))}`;
  }

  key(name) {
    return /^[A-Za-z_]\w*$/.test(name) && !reserved.includes(name) && !this.random.once(5) ? name : quoted(this.random, name);
  }

  recordOf(size) {
    const names = this.random.list(this.random.below(4), () => this.random.pick(attributes));
    const distinct = this.random.once(30) ? names : [...new Set(names)];
    return `{${distinct.map((name) => `${this.key(name)}: ${this.of(this.random.pick(kinds), size)}`).join(', ')}}`;
  }

  get(target, name) {
    return /^[A-Za-z_]\w*$/.test(name) && !reserved.includes(name) && !this.random.once(5)
      ? `${target}.${name}` : `${target}[${quoted(this.random, name)}]`;
  }

  access(kind, size) {
    const random = this.random;
    const target = random.pick(['principal', 'resource', 'context', 'action', this.operand('entity', size - 2), this.operand('record', size - 2)]);
    if (random.once(6)) return `${target}.getTag(${this.of('string', size - 2)})`;
    const name = random.once(15) ? random.pick(attributes) : random.pick(attributesOf[kind]);
    return random.once(5) ? this.get(this.get(target, random.pick(['rec', 'deep', 'owner'])), name) : this.get(target, name);
  }

  bool(size) {
    const random = this.random;
    const any = () => random.pick(kinds);
    switch (random.below(18)) {
      case 0: case 1: {
        const kind = any();
        return `${this.operand(kind, size)} ${random.pick(['==', '!='])} ${this.operand(random.once(6) ? any() : kind, size)}`;
      }
      case 2: case 3: {
        const kind = random.pick(['long', 'datetime', 'duration', any()]);
        return `${this.operand(kind, size)} ${random.pick(['<', '<=', '>', '>='])} ${this.operand(kind, size)}`;
      }
      case 4: case 5:
        return random.list(2 + random.below(2), () => this.operand('bool', size)).join(random.pick([' && ', ' || ']));
      case 6:
        return `${random.pick(['!', '!!', '!!!', '!!!!'])}${this.operand('bool', size)}`;
      case 7: case 8:
        return `${this.operand('entity', size)} in ${random.once(2) ? this.operand('entity', size) : `[${random.list(random.below(4), () => this.of('entity', size - 1)).join(', ')}]`}`;
      case 9:
        return `${this.operand('entity', size)} is ${random.pick(types)}${random.once(2) ? ` in ${this.operand(random.once(4) ? 'set' : 'entity', size)}` : ''}`;
      case 10: case 11: {
        const target = this.operand(random.pick(['entity', 'record']), size);
        if (random.once(3)) return `${target} has ${quoted(random, random.pick(attributes))}`;
        const path = random.list(1 + random.below(3), () => random.pick(attributes.filter((name) => /^\w+$/.test(name) && !reserved.includes(name))));
        return `${target} has ${path.join('.')}`;
      }
      case 12:
        return `${this.operand('string', size)} like ${quoted(random, random.pick(['*', 'a*', '*b', '**', 'a*b*', '*a*b*', '', stringValue(random), `${stringValue(random)}*${stringValue(random)}`]), true)}`;
      case 13:
        return `${this.operand('set', size)}.contains(${this.of(any(), size)})`;
      case 14:
        return `${this.operand('set', size)}.${random.pick(['containsAll', 'containsAny'])}(${this.of('set', size)})`;
      case 15:
        return random.once(2) ? `${this.operand('set', size)}.isEmpty()` : `${this.operand('entity', size)}.hasTag(${this.of('string', size)})`;
      case 16:
        return random.once(2) ? `${this.operand('ip', size)}.isInRange(${this.of('ip', size)})`
          : `${this.operand('ip', size)}.${random.pick(['isIpv4', 'isIpv6', 'isLoopback', 'isMulticast'])}()`;
      default:
        return `${this.operand('decimal', size)}.${random.pick(['lessThan', 'lessThanOrEqual', 'greaterThan', 'greaterThanOrEqual'])}(${this.of('decimal', size)})`;
    }
  }

  long(size) {
    switch (this.random.below(5)) {
      case 0:
        return `${this.random.pick(['-', '--', '---'])}${this.operand('long', size)}`;
      case 1:
        return `${this.operand('duration', size)}.${this.random.pick(['toMilliseconds', 'toSeconds', 'toMinutes', 'toHours', 'toDays'])}()`;
      default:
        return `${this.operand('long', size)} ${this.random.pick(['+', '-', '*'])} ${this.operand('long', size)}`;
    }
  }

  string() {
    return this.leaf('string');
  }

  entity() {
    return this.leaf('entity');
  }

  set(size) {
    const kind = this.random.pick(kinds);
    return `[${this.random.list(this.random.below(5), () => this.of(this.random.once(4) ? this.random.pick(kinds) : kind, size)).join(', ')}]`;
  }

  record(size) {
    return this.recordOf(size);
  }

  ip() {
    return this.leaf('ip');
  }

  decimal() {
    return this.leaf('decimal');
  }

  datetime(size) {
    return this.random.once(2) ? `${this.operand('datetime', size)}.offset(${this.of('duration', size)})` : `${this.operand('datetime', size)}.toDate()`;
  }

  duration(size) {
    return this.random.once(2) ? `${this.operand('datetime', size)}.durationSince(${this.of('datetime', size)})` : `${this.operand('datetime', size)}.toTime()`;
  }
}
