// From the pieces of taps to exchanges of HTTP/1.1: heads as they were sent, bodies without the marks of their chunks.

/** Reads the messages of one direction of a connection. `bodiless(start line)`: has this response no body? */
class Reader {
  constructor(bodiless = () => false) {
    this.bodiless = bodiless;
    this.rest = Buffer.alloc(0);
    this.messages = [];
    this.open = null;
  }

  feed(bytes, at) {
    this.rest = Buffer.concat([this.rest, bytes]);
    while (this.rest.length > 0 && this.step(at));
  }

  step(at) {
    if (!this.open) return this.head(at);
    const message = this.open;
    if (message.left === Infinity) return this.take(this.rest.length, at);
    if (message.left > 0) {
      const taken = Math.min(message.left, this.rest.length);
      message.left -= taken;
      this.take(taken, at);
      if (message.left === 0 && !message.isChunked) this.complete(at);
      return true;
    }
    return this.chunk(at);
  }

  head(at) {
    const end = this.rest.indexOf('\r\n\r\n');
    if (end < 0) return false;
    const [start, ...lines] = this.rest.subarray(0, end).toString('latin1').split('\r\n');
    this.rest = this.rest.subarray(end + 4);
    const value = (name) => lines.find((line) => line.toLowerCase().startsWith(`${name}:`))?.slice(name.length + 1).trim();
    const isChunked = value('transfer-encoding') === 'chunked';
    const length = value('content-length');
    const isResponse = start.startsWith('HTTP/');
    this.open = { at, start, lines, isChunked, parts: [], value, isWhole: false };
    this.messages.push(this.open);
    const isBodiless = isResponse ? this.bodiless(start) : !isChunked && length === undefined;
    this.open.left = isBodiless ? 0 : isChunked ? 0 : length === undefined ? Infinity : Number(length);
    if (isBodiless || (!isChunked && this.open.left === 0)) this.complete(at);
    return true;
  }

  /** The mark before a chunk, with the end of the chunk before it. */
  chunk(at) {
    const mark = /^(?:\r\n)?([0-9a-fA-F]+)[^\r\n]*\r\n/.exec(this.rest.subarray(0, 64).toString('latin1'));
    if (!mark) return false;
    const size = parseInt(mark[1], 16);
    const end = mark[0].length + (size === 0 ? 2 : 0);
    if (this.rest.length < end) return false;
    this.rest = this.rest.subarray(end);
    if (size === 0) this.complete(at);
    else this.open.left = size;
    return true;
  }

  take(length, at) {
    this.open.parts.push({ at, bytes: this.rest.subarray(0, length) });
    this.rest = this.rest.subarray(length);
    return true;
  }

  complete(at) {
    Object.assign(this.open, { isWhole: true, doneAt: at });
    this.open = null;
  }

  /** The connection is over; a body without a length is whole with it. */
  end(at) {
    if (this.open?.left === Infinity) this.complete(at);
  }
}

const body = (message) => Buffer.concat(message.parts.map(({ bytes }) => bytes)).toString('utf8');

/** All exchanges of a journal: {lane, at, request, response, interim, rest, left}. `left`: who ended an unfinished one. */
export function exchangesOf(journal) {
  const connections = new Map();
  for (const { lane, connection, from, bytes, end, at } of journal.pieces) {
    if (!connections.has(connection)) {
      const asked = new Reader();
      const answered = new Reader((start) => / (1\d\d|204|304)\b/.test(start) || asked.messages[answered.finals ?? 0]?.start.startsWith('HEAD '));
      connections.set(connection, { lane, asked, answered, first: null });
    }
    const both = connections.get(connection);
    const reader = from === 'asker' ? both.asked : both.answered;
    if (end) {
      both.first ??= from;
      reader.end(at);
    } else reader.feed(bytes, at);
    both.answered.finals = both.answered.messages.filter(({ start }) => !/ 1\d\d\b/.test(start)).length;
  }
  const exchanges = [];
  for (const { lane, asked, answered, first } of connections.values()) {
    const answers = [...answered.messages];
    for (const [index, request] of asked.messages.entries()) {
      const interim = [];
      while (answers[0] && / 1\d\d\b/.test(answers[0].start)) interim.push(answers.shift());
      const response = answers.shift();
      const isLast = index === asked.messages.length - 1;
      exchanges.push({ lane, at: request.at, request, response, interim, text: body(request), answer: response && body(response), left: isLast && !response?.isWhole ? first : null, rest: isLast ? answered.rest.toString('latin1').replace(/^\r?\n?$/, '') : '' });
    }
  }
  return exchanges.sort((a, b) => a.at - b.at);
}
