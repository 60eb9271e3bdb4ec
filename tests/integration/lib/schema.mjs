// Validates messages against the official JSON schema of MCP 2025-11-25, where it is at hand.
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

let ajv;
function validator(definition) {
  if (!ajv) {
    ajv = new Ajv({ strict: false, allErrors: true });
    addFormats(ajv);
    // The schema uses `format: "byte"` and `format: "uri-template"` on members that no gateway message has.
    ajv.addFormat('byte', true);
    ajv.addSchema(JSON.parse(fs.readFileSync(SCHEMA_PATH, 'utf8')), 'mcp');
  }
  const validate = ajv.getSchema(`mcp#/$defs/${definition}`);
  assert.ok(validate, `the schema has no definition ${definition}`);
  return validate;
}

/** Asserts that `value` is a valid `definition`. Without the schema at hand it says so in the test's output. */
export function assertSchema(t, definition, value) {
  if (schemaMissing) {
    t.diagnostic(schemaMissing);
    return;
  }
  const validate = validator(definition);
  assert.ok(validate(value), `not a valid ${definition}: ${ajv.errorsText(validate.errors)}\n${JSON.stringify(value, null, 1)}`);
}
