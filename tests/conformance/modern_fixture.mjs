// The server that the conformance suite describes for 2026-07-28, made with the official SDK 2. `node modern_fixture.mjs PORT
// [tasks]`: with `tasks` it makes tasks of its own.
import { setTimeout as pause } from 'node:timers/promises';
import { ask, fault, need, oneField, sdk2Handler, serve } from '../integration/lib/sdk2_server.mjs';
import { isLocal, noArguments, oneString, plainTools, prompts, readTemplate, resources, template, text } from './contents.mjs';

const [port = '0', ...words] = process.argv.slice(2);
const tasks = words.includes('tasks');

const sampling = (question, maxTokens) => ({ method: 'sampling/createMessage', params: { messages: [{ role: 'user', content: { type: 'text', text: question } }], maxTokens } });
const roots = { method: 'roots/list', params: {} };
const accepted = (response, name, type = 'string') => (response?.action === 'accept' && typeof response.content?.[name] === type ? response.content[name] : undefined);
/** Asks until `name` is answered with a `field`. */
const askFor = (name, message, field, finish, type = 'string') => (_, { responses }) => {
  const value = accepted(responses[name], field, type);
  return value === undefined ? ask({ [name]: oneField(message, field, type) }) : finish(value);
};

const questions = {
  test_input_required_result_elicitation: { run: askFor('user_name', 'What is your name?', 'name', (name) => text(`Hello, ${name}!`)) },
  test_streaming_elicitation: { run: askFor('user_name', 'What is your name?', 'name', (name) => text(`Hello, ${name}!`)) },
  test_input_required_result_sampling: {
    run: (_, { responses: { capital_question: answer } }) => (answer?.content ? text(answer.content.text) : ask({ capital_question: sampling('What is the capital of France?', 100) })),
  },
  test_input_required_result_list_roots: {
    run: (_, { responses: { client_roots: answer } }) => (answer?.roots ? text(answer.roots.map(({ uri }) => uri).join(' ')) : ask({ client_roots: roots })),
  },
  test_input_required_result_request_state: {
    async run(_, { responses, state, mint }) {
      if (accepted(responses.confirm, 'ok', 'boolean') !== undefined && state() === 'confirm') return text('state-ok');
      return ask({ confirm: oneField('Please confirm', 'ok', 'boolean') }, await mint('confirm'));
    },
  },
  test_input_required_result_tampered_state: {
    async run(_, { responses, state, mint }) {
      if (responses.confirm && state() === 'signed') return text('state-ok');
      return ask({ confirm: oneField('Please confirm', 'ok', 'boolean') }, await mint('signed'));
    },
  },
  test_input_required_result_multiple_inputs: {
    async run(_, { responses: { user_name, greeting, client_roots }, mint }) {
      if (user_name && greeting && client_roots) return text('all three');
      return ask({ user_name: oneField('What is your name?', 'name'), greeting: sampling('Generate a greeting', 50), client_roots: roots }, await mint('three'));
    },
  },
  test_input_required_result_multi_round: {
    async run(_, { responses, state, mint }) {
      if (state() === 'second' && responses.step2) return text('both steps');
      if (state() === 'first' && responses.step1) return ask({ step2: oneField('Step 2: What is your favorite color?', 'color') }, await mint('second'));
      return ask({ step1: oneField('Step 1: What is your name?', 'name') }, await mint('first'));
    },
  },
  test_input_required_result_capabilities: {
    run(_, { responses, capabilities }) {
      if (Object.keys(responses).length > 0) return text('answered');
      const wanted = { ...(capabilities.sampling ? { greeting: sampling('Generate a greeting', 50) } : {}), ...(capabilities.elicitation ? { user_name: oneField('Your name?', 'name') } : {}) };
      return Object.keys(wanted).length > 0 ? ask(wanted) : text('nothing to ask');
    },
  },
};

const diagnostics = {
  test_missing_capability: { run: (_, { capabilities }) => (capabilities.sampling ? text('sampling is there') : need({ sampling: {} })) },
  test_logging_tool: { run: async (_, { say }) => (await say('info', 'a message'), text('logged')) },
  test_trigger_tool_change: { run: () => (handler.notify.toolsChanged(), text('the tools have changed')) },
  test_trigger_prompt_change: { run: () => (handler.notify.promptsChanged(), text('the prompts have changed')) },
  test_tool_with_progress: {
    async run(_, { progress }) {
      for (const done of [0, 50, 100]) {
        await progress(done, 100);
        await pause(50);
      }
      return text('Tool with progress executed successfully');
    },
  },
  test_custom_headers: {
    inputSchema: { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Region' } }, required: ['region'] },
    run: ({ region }) => text(`region ${region}`),
  },
};

const taskTools = {
  greet: { inputSchema: oneString('name'), run: ({ name }) => text(`Hello, ${name}!`) },
  slow_compute: {
    task: true,
    inputSchema: { type: 'object', properties: { seconds: { type: 'number' } } },
    run: async ({ seconds = 0 }, { signal }) => (await pause(seconds * 1000, undefined, { signal }), text(`computed for ${seconds} s`)),
  },
  failing_job: { task: 'required', run: () => ({ ...text('the job failed'), isError: true }) },
  protocol_error_job: {
    task: true,
    run() {
      throw fault(-32603, 'the job broke');
    },
  },
  confirm_delete: { task: true, inputSchema: oneString('filename'), run: ({ filename }, call) => askFor('confirm', `Delete ${filename}?`, 'confirm', () => text(`Deleted ${filename}`), 'boolean')({}, call) },
  test_tool_with_task: { task: 'after answers', run: askFor('user_name', 'What is your name?', 'name', (name) => text(`Hello, ${name}!`)) },
  multi_input: {
    task: true,
    run(_, { responses: { one, two } }) {
      return one && two ? text('both') : ask({ ...(one ? {} : { one: oneField('The first?', 'name') }), ...(two ? {} : { two: oneField('The second?', 'name') }) });
    },
  },
};

const handler = sdk2Handler({
  name: 'conformance-modern',
  tasks,
  tools: { ...Object.fromEntries(Object.entries(plainTools).map(([name, [inputSchema, run]]) => [name, { inputSchema, run }])), ...questions, ...diagnostics, ...taskTools },
  resources: Object.fromEntries(Object.entries(resources).map(([uri, content]) => [uri, content()])),
  templates: [template],
  readTemplate,
  prompts: {
    ...Object.fromEntries(Object.entries(prompts).map(([name, [args, messages]]) => [name, { args, messages }])),
    test_input_required_result_prompt: {
      messages: askFor('user_context', 'What context should the prompt use?', 'context', (context) => ({ messages: [{ role: 'user', content: { type: 'text', text: `Context: ${context}` } }] })),
    },
  },
});

const server = await serve(handler, { port: Number(port), isLocal });
console.log(`listening on port ${server.port}`);
process.once('SIGINT', () => server.stop().then(() => process.exit(0)));
