// The contents that the fixtures of both eras serve: the conformance suite expects them word by word.
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';
const WAV = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=';

export const text = (value) => ({ content: [{ type: 'text', text: value }] });
const image = { type: 'image', data: PNG, mimeType: 'image/png' };
const embedded = (uri, mimeType, value) => ({ type: 'resource', resource: { uri, mimeType, text: value } });

export const noArguments = { type: 'object', properties: {} };
export const oneString = (name) => ({ type: 'object', properties: { [name]: { type: 'string' } }, required: [name] });

/** Tools that need nothing of their call: [inputSchema, run]. */
export const plainTools = {
  test_simple_text: [noArguments, () => text('This is a simple text response for testing.')],
  test_image_content: [noArguments, () => ({ content: [image] })],
  test_audio_content: [noArguments, () => ({ content: [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }] })],
  test_embedded_resource: [noArguments, () => ({ content: [embedded('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')] })],
  test_multiple_content_types: [
    noArguments,
    () => ({ content: [{ type: 'text', text: 'Multiple content types test:' }, image, embedded('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}')] }),
  ],
  test_error_handling: [noArguments, () => ({ ...text('This tool intentionally returns an error for testing'), isError: true })],
  json_schema_2020_12_tool: [
    {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      $defs: { address: { $anchor: 'addressDef', type: 'object', properties: { street: { type: 'string' }, city: { type: 'string' } } } },
      properties: { name: { type: 'string' }, address: { $ref: '#/$defs/address' }, contactMethod: { type: 'string', enum: ['phone', 'email'] }, phone: { type: 'string' }, email: { type: 'string' } },
      allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
      if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
      then: { required: ['phone'] },
      else: { required: ['email'] },
      additionalProperties: false,
    },
    () => text('ok'),
  ],
};

/** URI to a function of the content. */
export const resources = {
  'test://static-text': () => ({ mimeType: 'text/plain', text: 'This is the content of the static text resource.' }),
  'test://static-binary': () => ({ mimeType: 'image/png', blob: PNG }),
  'test://watched-resource': () => ({ mimeType: 'text/plain', text: 'watched' }),
};

export const userText = (value) => ({ role: 'user', content: { type: 'text', text: value } });

/** Name to [arguments, messages]. */
export const prompts = {
  test_simple_prompt: [[], () => [userText('This is a simple prompt for testing.')]],
  test_prompt_with_arguments: [['arg1', 'arg2'], ({ arg1, arg2 }) => [userText(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)]],
  test_prompt_with_embedded_resource: [
    ['resourceUri'],
    ({ resourceUri }) => [{ role: 'user', content: embedded(resourceUri, 'text/plain', 'Embedded resource content for testing.') }, userText('Please process the embedded resource above.')],
  ],
  test_prompt_with_image: [[], () => [{ role: 'user', content: image }, userText('Please analyze the image above.')]],
};

export const template = { uriTemplate: 'test://template/{id}/data', name: 'template', description: 'A template', mimeType: 'application/json' };

/** The content of a URI of the template, or undefined. */
export function readTemplate(uri) {
  const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1];
  return id && { mimeType: 'application/json', text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) };
}

/** Any loopback name on any port: an Origin names the port that the client has connected to, which may be a gateway's. */
export function isLocal({ headers: { host, origin } }) {
  const local = (url) => URL.canParse(url) && ['localhost', '127.0.0.1', '[::1]'].includes(new URL(url).hostname);
  return local(`http://${host}`) && (origin === undefined || local(origin));
}
