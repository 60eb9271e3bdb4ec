// Literals of every type, most of them at the limits of the language, some beyond.

const longs = ['0', '1', '2', '7', '-1', '-5', '42', '1000', '9223372036854775807', '-9223372036854775808',
  '4611686018427387904', '3037000500', '-3037000500', '007', '9223372036854775806', '-9223372036854775807'];
const strings = ['', 'a', 'b', 'ab', 'abc', 'a*b', '*', '\\', '"', "'", '\n', '\r', '\t', '\0', 'é', '日本', '😀', 'a b',
  'x'.repeat(40), 'get_all', 'delete_all', '\u2028', '\u0085', '\ufeff', 'e\u0301', '\x7f', 'A', '//', 'User::"a"'];
const addresses = ['127.0.0.1', '10.0.0.1', '10.0.0.0/8', '10.1.2.3/32', '0.0.0.0/0', '255.255.255.255', '224.0.0.1',
  '239.255.255.255/4', '192.168.0.1/16', '127.0.0.0/7', '127.0.0.0/8', '::1', '::', '::/0', '::1/128', 'ff00::/8', 'ff02::1', 'fe80::1',
  '2001:db8::1', '2001:db8::/32', '2001:DB8:0:0:0:0:0:1', '1:2:3:4:5:6:7:8', '1::8', '1:2:3:4:5:6:7::', '::2:3:4:5:6:7:8',
  '::ffff:1.2.3.4', '::ffff:102:304', '1.2.3', '1.2.3.4.5', '01.2.3.4', '256.1.1.1', '1.2.3.4/33', '::1/129', '1.2.3.4/',
  '1.2.3.4/08', '::1/01', 'f::f::1', '12345::', ':::', '1:2:3:4:5:6:7:8:9', '0000:0000:0000:0000:0000:0000:0000:0001/128',
  '::1%eth0', ' 1.2.3.4', '1.2.3.4 ', '1.2.3.4/0', '224.0.0.0/3', 'ff00::/7', '1.2.3.4/-1', '1.2.3.4/+1', '', '0.0.0.0', '::0.0.0.0'];
const decimals = ['0.0', '1.0', '-1.0', '1.5', '-1.5', '0.0001', '-0.0001', '-0.0', '-0.5', '0.5', '12.34', '12.3400', '00012.34',
  '922337203685477.5807', '-922337203685477.5808', '922337203685477.5808', '-922337203685477.5809', '1', '1.', '.5', '1.12345',
  '+1.0', '1.0 ', ' 1.0', '1e3', '--1.0', '1.2.3', '', '-', '-.5', '1.-5', '99999999999999999999.0', '1,5', '٣.٥', '0.12340'];
const datetimes = ['1970-01-01', '1969-12-31', '2024-02-29', '2023-02-29', '2000-02-29', '1900-02-29', '2100-02-29', '2024-12-31',
  '0000-01-01', '0001-01-01', '9999-12-31', '2024-01-01T00:00:00Z', '2024-01-01T23:59:59Z', '2024-01-01T23:59:60Z',
  '2024-01-01T24:00:00Z', '2024-01-01T12:30:45.678Z', '2024-01-01T12:30:45.67Z', '2024-01-01T12:30:45.6789Z',
  '2024-01-01T00:00:00+0000', '2024-01-01T00:00:00-0000', '2024-01-01T12:30:45+0130', '2024-01-01T12:30:45-1159', '2024-01-01T12:30:45+2359',
  '2024-01-01T12:30:45+2400', '2024-01-01T12:30:45+0060', '2024-01-01T12:30:45.678+1400', '2024-01-01T12:30:45',
  '2024-01-01T12:30:45z', '2024-01-01t12:30:45Z', '2024-01-01 12:30:45Z', '2024-1-1', '24-01-01', '2024-13-01', '2024-00-10',
  '2024-01-00', '2024-01-32', '2024-04-31', '+2024-01-01', '-2024-01-01', '2024-01-01T12:30Z', '2024-01-01T12:30:45+01:30', '',
  '2024-01-01Z', '2024-01-01T', '9999-12-31T23:59:59.999-2359', '0000-01-01T00:00:00.000+2359', '1969-12-31T23:59:59.999Z',
  '1900-03-01', '1600-02-29', '2024-01-01T12:30:45.678', '10000-01-01', '２024-01-01', '2024-01-01T12:60:00Z'];
const durations = ['0ms', '1ms', '1s', '1m', '1h', '1d', '-1d', '1d2h3m4s5ms', '-1d2h3m4s5ms', '1d5ms', '2h4s', '90m', '0d', '-0s',
  '9223372036854775807ms', '-9223372036854775808ms', '9223372036854775808ms', '-9223372036854775809ms', '106751991167d',
  '106751991168d', '-106751991167d7h12m55s808ms', '-106751991167d7h12m55s809ms', '106751991167d7h12m55s807ms', '106751991167d7h12m55s808ms',
  '1h1d', '1s1m', '1d1d', '1', 'd', '', '-', '1D', '1 d', '1.5h', '+1d', '1d-2h', '1w', '1ms1s', '00001d', '1d 2h',
  '99999999999999999999d', '1dms', '-1d-2h', '9223372036854775s807ms', '9223372036854775s808ms', '-9223372036854775s808ms'];

export const reserved = ['if', 'then', 'else', 'true', 'false', 'in', 'is', 'like', 'has', '__cedar'];
export const attributes = ['name', 'age', 'flag', 'tags', 'rec', 'owner', 'ip', 'price', 'when', 'span', 'deep', 'odd key', 'if', ''];
export const types = ['User', 'Group', 'Doc', 'Folder', 'NS::User', 'Other'];
export const ids = ['a', 'b', 'c', 'absent', '', 'odd "id"\n', 'é'];

/** One or two characters of the text changed, now and then. */
function disturbed(random, text) {
  if (!random.once(6)) return text;
  const characters = [...text];
  const extra = [...'0123456789:.-/TZdhmsfF+ *'];
  for (let i = random.below(2); i >= 0; i--) {
    const at = random.below(characters.length + 1);
    const change = random.below(3);
    if (change === 0) characters.splice(at, 1);
    else characters.splice(at, change - 1, random.pick(extra));
  }
  return characters.join('');
}

/** Written with some of its characters escaped in one of the ways that there are. */
export function quoted(random, text, pattern = false) {
  let out = '"';
  for (const character of text) {
    const code = character.codePointAt(0);
    const short = { '\n': '\\n', '\r': '\\r', '\t': '\\t', '\\': '\\\\', '\0': '\\0', '"': '\\"', "'": "\\'" }[character];
    const must = character === '"' || character === '\\' || character === '\r';
    const way = random.below(pattern && character === '*' ? 3 : 12);
    if (pattern && character === '*') out += way === 0 ? '\\*' : '*';
    else if (way === 0) out += `\\u{${'0'.repeat(random.below(2))}${code.toString(16)}}`;
    else if (way === 1 && code < 0x80) out += `\\x${code.toString(16).padStart(2, '0')}`;
    else out += short && (must || way < 8) ? short : character;
  }
  return `${out}"`;
}

export const stringValue = (random) => disturbed(random, random.pick(strings));
export const longText = (random) => (random.once(3) ? String(random.below(20) - 5) : random.pick(longs));

const pools = { ip: addresses, decimal: decimals, datetime: datetimes, duration: durations };
/** The text inside a call of an extension's constructor. */
export const extensionText = (random, name) => disturbed(random, random.pick(pools[name]));
export const extensions = Object.keys(pools);
