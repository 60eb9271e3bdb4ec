// The shapes of the 2025-11-25 schema that the requirements look at, as the official clients read them: an
// optional member may be missing and is never null. Each function returns the mistake, or undefined.
import { isObject, shown } from './verdict.mjs';

const string = (value) => typeof value === 'string' || 'is no string';
const filled = (value) => (typeof value === 'string' && value !== '') || 'is no string, or an empty one';
const object = (value) => isObject(value) || 'is no object';
const array = (value) => Array.isArray(value) || 'is no array';
const boolean = (value) => typeof value === 'boolean' || 'is no boolean';
const number = (value) => Number.isFinite(value) || 'is no number';
const lifetime = (value) => value === null || number(value) === true || 'is neither a number nor null';

/** `members`: name => test; a name that ends in "?" is optional. */
function shape(members) {
  return (value, what) => {
    if (!isObject(value)) return `${what} is no object: ${shown(value)}`;
    for (const [key, test] of Object.entries(members)) {
      const name = key.replace('?', '');
      if (value[name] === undefined) {
        if (key === name) return `${what}.${name} is missing`;
        continue;
      }
      const verdict = test(value[name]);
      if (verdict !== true) return `${what}.${name} ${verdict}: ${shown(value[name])}`;
    }
    return undefined;
  };
}

export const initializeResult = shape({ protocolVersion: string, capabilities: object, serverInfo: object, 'instructions?': string });
export const implementation = shape({ name: filled, version: string, 'title?': string });

export const listToolsResult = shape({ tools: array, 'nextCursor?': string, '_meta?': object });
export const tool = shape({
  name: filled, 'title?': string, 'description?': string, 'annotations?': object, 'execution?': object, 'icons?': array, '_meta?': object,
});
export const jsonSchema = (value, what) =>
  isObject(value) && value.type === 'object' ? undefined : `${what} is no schema with type "object": ${shown(value)}`;

export const callToolResult = shape({ content: array, 'structuredContent?': object, 'isError?': boolean, '_meta?': object });
export const contentBlock = shape({ type: (value) => ['text', 'image', 'audio', 'resource', 'resource_link'].includes(value) || 'is no kind of content' });

/** Other requirements judge the values of a status, a time or a poll interval. */
export const task = shape({
  taskId: filled, status: string, ttl: lifetime, createdAt: string, lastUpdatedAt: string,
  'statusMessage?': string, 'pollInterval?': number, '_meta?': object,
});
export const listTasksResult = shape({ tasks: array, 'nextCursor?': string, '_meta?': object });
