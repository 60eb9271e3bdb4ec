// Every operator and function over pairs of values at the edges: about twenty thousand conditions.

const datetimes = ['1970-01-01', '1969-12-31', '2024-02-29', '2000-02-29', '1900-02-28', '1900-03-01', '2100-03-01', '0000-01-01', '0000-02-29',
  '0001-01-01', '0004-02-29', '9999-12-31', '2024-01-01T00:00:00Z', '2024-01-01T23:59:59Z', '2024-01-01T12:30:45.678Z',
  '2024-01-01T00:00:00+0000', '2024-01-01T00:00:00-0000', '2024-01-01T12:30:45+0130', '2024-01-01T12:30:45-1159',
  '2024-01-01T12:30:45+2359', '9999-12-31T23:59:59.999-2359', '0000-01-01T00:00:00.000+2359', '1969-12-31T23:59:59.999Z',
  '1600-02-29', '2024-12-31T23:59:59.999+1400', '1582-10-10'];
const durations = ['0ms', '1ms', '-1ms', '1s', '1m', '1h', '1d', '-1d', '1d2h3m4s5ms', '-1d2h3m4s5ms', '90m', '9223372036854775807ms',
  '-9223372036854775808ms', '106751991167d', '-106751991167d7h12m55s808ms', '106751991167d7h12m55s807ms', '23h59m59s999ms',
  '-23h59m59s999ms', '24h', '86400000ms', '-106751991167d'];
const decimals = ['0.0', '-0.0', '1.0', '1.00', '-1.5', '0.0001', '-0.0001', '-0.5', '922337203685477.5807', '-922337203685477.5808',
  '12.34', '12.3400', '0.1', '0.10'];
const addresses = ['127.0.0.1', '10.0.0.1', '10.0.0.0/8', '10.1.2.3/8', '10.1.2.3', '0.0.0.0/0', '1.2.3.4/0', '255.255.255.255', '224.0.0.1',
  '239.255.255.255/4', '224.0.0.0/3', '127.0.0.0/8', '127.0.0.0/7', '126.0.0.0/7', '::1', '::', '::/0', '::1/128', '::1/127',
  'ff00::/8', 'ff00::/7', 'ff02::1', 'ff02::1/4', '2001:db8::1', '2001:db8::/32', '2001:db8:ffff::/31', '2001:DB8:0:0:0:0:0:1',
  '1::8', '::ffff:102:304', '::/1', '8000::/1', 'fe80::1/10'];
const texts = ['', 'a', 'ab', 'aab', 'abab', 'a*b', '*', '**', '\\\\', 'é', '日本語', '😀', 'a\\nb', 'aXbXc', 'ba'];
const patterns = ['', '*', '**', 'a*', '*a', '*b', 'a*b', '*a*', 'a*b*', '*ab*ab', '\\*', 'a\\*b', '*\\**', 'é*', '*本*', '?', 'a?', '*😀', '*\\n*',
  'a*a', 'ab*ab', '\\\\', '*X*X*', 'b*a*'];
const sets = ['[]', '[1]', '[1,1]', '[1,2]', '[2,1]', '[1,2,1]', '[[1],[1,1]]', '[[1]]', '["1"]', '[true]', '[{}]', '[{a:1},{a:1}]', '[{a:1}]',
  '[{a:[1,1]}]', '[decimal("1.0")]', '[decimal("1.00")]', '[ip("1.1.1.1")]', '[ip("1.1.1.1/32")]', '[User::"a"]',
  '[User::"a",User::"a"]', '[1,"a",true,[],{}]', '[datetime("1970-01-01")]', '[duration("0ms")]', '[0]'];
const elements = ['1', '[]', '{}', '"1"', 'decimal("1.000")', 'ip("1.1.1.1/32")', 'User::"a"', '{a:[1]}', '{a:1}', 'datetime("1970-01-01")',
  'duration("0s")', '0', 'true'];
const longs = ['0', '1', '-1', '9223372036854775807', '-9223372036854775808', '4611686018427387904', '-4611686018427387904', '3037000499',
  '3037000500', '-3037000500'];
const results = [0, 1, -1, 23, -23, 1439, 86399, -86399, 86399999, 106751991167, -106751991167, -2562047788015];
const units = ['toMilliseconds', 'toSeconds', 'toMinutes', 'toHours', 'toDays'];
/** One of each kind. */
const kinds = ['1', '"a"', 'true', 'User::"a"', '[]', '{}', 'decimal("1.0")', 'datetime("1970-01-01")', 'duration("1s")', 'ip("1.1.1.1")',
  '[User::"a"]', 'principal', 'context'];

function* pairs(left, right, make) {
  for (const a of left) for (const b of right) yield* make(a, b);
}

export function* conditions() {
  yield* pairs(datetimes, datetimes, (a, b) => [`datetime("${a}") < datetime("${b}")`,
    `datetime("${a}").durationSince(datetime("${b}")) == datetime("${b}").durationSince(datetime("${a}"))`,
    `datetime("${a}").toTime() <= datetime("${b}").toTime()`, `datetime("${a}").toDate() == datetime("${b}").toDate()`]);
  yield* pairs(datetimes, durations, (a, b) => [`datetime("${a}").offset(duration("${b}")) < datetime("2000-01-01")`,
    `datetime("${a}").offset(duration("${b}")).toDate() < datetime("1970-01-01")`,
    `datetime("${a}").offset(duration("${b}")).toTime() < duration("12h")`,
    `datetime("${a}").offset(duration("${b}")).durationSince(datetime("1970-01-02")).toHours() == 0`]);
  yield* pairs(durations, durations, (a, b) => [`duration("${a}") < duration("${b}")`,
    ...units.map((unit) => `duration("${a}").${unit}() == duration("${b}").${unit}()`)]);
  yield* pairs(durations, results, (a, b) => units.map((unit) => `duration("${a}").${unit}() == ${b}`));
  yield* pairs(decimals, decimals, (a, b) => [`decimal("${a}") == decimal("${b}")`,
    ...['lessThan', 'greaterThanOrEqual'].map((name) => `decimal("${a}").${name}(decimal("${b}"))`)]);
  yield* pairs(addresses, addresses, (a, b) => [`ip("${a}").isInRange(ip("${b}"))`, `ip("${a}") == ip("${b}")`]);
  yield* pairs(addresses, ['isIpv4', 'isIpv6', 'isLoopback', 'isMulticast'], (a, name) => [`ip("${a}").${name}()`]);
  yield* pairs(texts, patterns, (a, b) => [`"${a}" like "${b}"`]);
  yield* pairs(sets, sets, (a, b) => [`${a} == ${b}`, ...['containsAll', 'containsAny', 'contains'].map((name) => `${a}.${name}(${b})`)]);
  yield* pairs(sets, elements, (a, b) => [`${a}.contains(${b})`, `${a} == ${b}`]);
  yield* pairs(longs, longs, (a, b) => ['+', '-', '*'].flatMap((sign) => [`(${a}) ${sign} (${b}) < 5`, `(${a}) ${sign} (${b}) == (${b}) ${sign} (${a})`]));
  for (const a of longs) yield* [`-(${a}) < 3`, `--(${a}) == (${a})`];
  yield* pairs(kinds, kinds, (a, b) => [
    ...['==', '!=', '<', '<=', '>', '>=', 'in', '+', '-', '*', '&&', '||'].map((sign) => `(${a}) ${sign} (${b})`),
    ...['contains', 'containsAll', 'containsAny', 'hasTag', 'isInRange', 'lessThan'].map((name) => `(${a}).${name}(${b})`),
    ...['getTag', 'offset', 'durationSince'].map((name) => `(${a}).${name}(${b}) == 1`),
    `if (${a}) then (${b}) == 1 else true`, `(${a}) is User in (${b})`]);
  for (const a of kinds) {
    yield* [`!(${a})`, `-(${a}) == 1`, `(${a}) has a`, `(${a}) has a.b`, `(${a}).a == 1`, `(${a}) like "a"`, `(${a}) is User`, `(${a}).isEmpty()`, `(${a})`,
      `(${a}).isIpv4()`, `true || (${a})`, `false && (${a})`, `(${a}) || true`, `(${a}) && false`, `if true then true else (${a})`,
      `if false then (${a}) else true`];
    yield* ['ip', 'decimal', 'datetime', 'duration'].map((name) => `${name}(${a}) == 1`);
    yield* ['toDate', 'toTime', 'toSeconds'].map((name) => `(${a}).${name}() == 1`);
  }
}
