// Validates messages against the official JSON schemas of MCP, where they are at hand.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import Ajv from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

const here = path.dirname(fileURLToPath(import.meta.url));

export const SCHEMA_PATH = path.resolve(
  process.env.TASKGATE_MCP_SCHEMA ?? path.join(here, '../../../../shared/schema/mcp-2025-11-25.json'),
);

/** false, or why nothing can be validated: the value of a test's `skip`. */
export const schemaMissing = fs.existsSync(SCHEMA_PATH)
  ? false
  : `the MCP schema ${SCHEMA_PATH} is absent; set TASKGATE_MCP_SCHEMA to validate messages`;

/** The methods of a union of messages, such as ClientRequest. */
export function methodsOf(definition) {
  const { $defs } = JSON.parse(fs.readFileSync(SCHEMA_PATH, 'utf8'));
  return $defs[definition].anyOf.map(({ $ref }) => $defs[$ref.split('/').at(-1)].properties.method.const);
}

const schemas = {
  mcp: SCHEMA_PATH,
  modern: path.join(path.dirname(SCHEMA_PATH), 'mcp-2026-07-28.json'),
  tasks: path.join(path.dirname(SCHEMA_PATH), 'ext-tasks-sep2663.json'),
};

/** The same of a schema of the modern era: 'modern' (2026-07-28) or 'tasks' (the extension). */
export const modernSchemaMissing = ['modern', 'tasks'].every((name) => fs.existsSync(schemas[name]))
  ? false
  : `the schemas of MCP 2026-07-28 and its tasks are absent beside ${SCHEMA_PATH}; set TASKGATE_MCP_SCHEMA to validate messages`;

let ajv;
const read = new Set();
function validator(definition, schema) {
  if (!ajv) {
    ajv = new Ajv({ strict: false, allErrors: true });
    addFormats(ajv);
    // The schemas use `format: "byte"` and `format: "uri-template"` on members that no gateway message has.
    ajv.addFormat('byte', true);
  }
  if (!read.has(schema)) ajv.addSchema(JSON.parse(fs.readFileSync(schemas[schema], 'utf8')), schema);
  read.add(schema);
  const validate = ajv.getSchema(`${schema}#/$defs/${definition}`);
  assert.ok(validate, `the schema ${schema} has no definition ${definition}`);
  return validate;
}

/** Asserts that `value` is a valid `definition`. Without the schema at hand it says so in the test's output. */
export function assertSchema(t, definition, value, schema = 'mcp') {
  const missing = schema === 'mcp' ? schemaMissing : modernSchemaMissing;
  if (missing) {
    t.diagnostic(missing);
    return;
  }
  const validate = validator(definition, schema);
  assert.ok(validate(value), `not a valid ${definition}: ${ajv.errorsText(validate.errors)}\n${JSON.stringify(value, null, 1)}`);
}

/** The same for a shape of the tasks extension. */
export const assertTaskSchema = (t, definition, value) => assertSchema(t, definition, value, 'tasks');
