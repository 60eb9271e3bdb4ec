// The two real servers for the SDK flows, with their differences.
import { startEverything } from './everything.mjs';
import { exampleMissing, startExample } from './example_server.mjs';

export const targets = [
  {
    name: 'server-everything',
    skip: false,
    start: startEverything,
    harmless: { name: 'get-sum', arguments: { a: 2, b: 3 }, text: /The sum of 2 and 3 is 5/ },
    dangerous: { name: 'echo', arguments: { message: 'deleted' }, text: /deleted/ },
    slow: (seconds) => ({ name: 'trigger-long-running-operation', arguments: { duration: seconds, steps: 4 }, text: /Long running operation completed/ }),
    elicits: { name: 'trigger-elicitation-request', arguments: {}, answer: { name: 'Ada' }, text: /Ada/ },
    /** Has the server send a notification to its subscriber. */
    notify: async (client, call) => {
      await client.subscribeResource({ uri: 'demo://resource/dynamic/text/1' });
      await call({ name: 'toggle-subscriber-updates', arguments: {} });
      return { method: 'notifications/resources/updated', params: { uri: 'demo://resource/dynamic/text/1' } };
    },
    samples: { name: 'trigger-sampling-request', arguments: { prompt: 'Say hello' }, prompt: /Say hello/ },
    capabilities: { elicitation: { form: {} }, sampling: {}, roots: {} },
  },
  {
    name: 'the example server',
    skip: exampleMissing,
    start: startExample,
    harmless: { name: 'get_time', arguments: {}, text: /20\d\d-\d\d-\d\d/ },
    dangerous: { name: 'delete_database', arguments: { name: 'staging' }, text: /staging/ },
    slow: (seconds) => ({ name: 'slow', arguments: { seconds }, text: /./ }),
    elicits: { name: 'ask', arguments: { question: 'Who?' }, answer: { answer: 'Ada' }, text: /Ada/ },
    samples: { name: 'ask_model', arguments: { prompt: 'Say hello' }, prompt: /Say hello/ },
    capabilities: { elicitation: { form: {} } },
  },
];
