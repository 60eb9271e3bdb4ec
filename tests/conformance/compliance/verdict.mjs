// The results of a check. Returning (a detail, or nothing) is a PASS; these are the other two.

export class Failed extends Error {}
export class Skipped extends Error {}

export function fail(detail) {
  throw new Failed(detail);
}

export function skip(reason) {
  throw new Skipped(reason);
}

export function demand(condition, detail) {
  if (!condition) fail(detail);
}

/** A value as a person reads it in one line. */
export function shown(value) {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 160 ? `${text.slice(0, 157)}…` : text;
}

/** The `result` of an answer, or a failure that describes the answer. */
export function resultOf(answer) {
  const { message } = answer;
  if (isObject(message) && isObject(message.result)) return message.result;
  fail(`${answer.method}: ${outcome(answer)} instead of a result`);
}

/** The `error` of an answer, or a failure that describes the answer. */
export function errorOf(answer) {
  const { message } = answer;
  if (isObject(message) && isObject(message.error)) return message.error;
  fail(`${answer.method}: ${outcome(answer)} instead of an error`);
}

/** Demands an error with one of `codes`. */
export function demandCode(answer, ...codes) {
  const error = errorOf(answer);
  demand(codes.includes(error.code), `${answer.method}: error ${shown(error.code)} (${shown(error.message)}) instead of ${codes.join(' or ')}`);
  return error;
}

export function outcome({ status, type, message, text }) {
  if (isObject(message)) return `HTTP ${status}, ${shown(message)}`;
  return `HTTP ${status}, ${type || 'no content type'}, ${text ? shown(text) : 'no JSON-RPC message'}`;
}

export const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
