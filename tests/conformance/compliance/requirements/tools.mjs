// Tools: the list, its facts about tasks, and calls without a task.
import { callToolResult, contentBlock, jsonSchema, listToolsResult, tool as toolShape } from '../shapes.mjs';
import { SUPPORT } from '../run.mjs';
import { demand, demandCode, errorOf, isObject, resultOf, shown, skip } from '../verdict.mjs';

const TOOLS = 'MCP 2025-11-25 Tools';
const NEEDS = ['tools-list-shape'];

/** Demands of every tool that `wrong(tool)` says nothing. */
async function ofEveryTool(run, wrong) {
  const { tools } = await run.toolsList();
  for (const tool of tools) {
    const complaint = wrong(tool);
    demand(!complaint, complaint);
  }
  return tools.length === 1 ? '1 tool' : `${tools.length} tools`;
}

const spellings = (tool) => [tool.execution?.taskSupport, tool.annotations?.taskSupport];

export const tools = [
  {
    name: 'tools-capability',
    source: `${TOOLS}, Capabilities`,
    async check(run) {
      if (isObject(run.capabilities.tools)) return undefined;
      const answer = await run.client.send('tools/list', {});
      if (isObject(answer.message?.error)) skip(`the endpoint has no tools: ${errorOf(answer).code}`);
      return demand(false, 'tools/list answers, and capabilities.tools is no object');
    },
  },
  {
    name: 'tools-list-shape',
    source: `${TOOLS}; schema ListToolsResult, Tool`,
    needs: ['tools-capability'],
    async check(run) {
      const { pages } = await run.toolsList();
      for (const [at, page] of pages.entries()) {
        const wrong = listToolsResult({ ...page, nextCursor: undefined }, `page ${at + 1}`);
        demand(!wrong, wrong);
        for (const [n, tool] of page.tools.entries()) {
          const complaint = toolShape(tool, `tools[${n}]${typeof tool?.name === 'string' ? ` (${tool.name})` : ''}`);
          demand(!complaint, complaint);
        }
      }
      return `${pages.length} page${pages.length === 1 ? '' : 's'}`;
    },
  },
  {
    name: 'tools-list-cursors-end',
    source: 'MCP 2025-11-25 Pagination; official SDK: nextCursor is never null',
    needs: NEEDS,
    async check(run) {
      const { pages } = await run.toolsList();
      for (const { nextCursor } of pages) demand(nextCursor === undefined || typeof nextCursor === 'string', `nextCursor is ${shown(nextCursor)}`);
      demand(!pages.endless, pages.endless);
      return `${pages.length} page${pages.length === 1 ? '' : 's'}`;
    },
  },
  {
    name: 'tools-names-unique',
    source: `${TOOLS}, Tool Names`,
    needs: NEEDS,
    async check(run) {
      const { tools, pages } = await run.toolsList();
      if (pages.endless) skip('the list has no end');
      const names = tools.map(({ name }) => name);
      const twice = names.find((name, at) => names.indexOf(name) !== at);
      demand(twice === undefined, `two tools are called ${twice}`);
    },
  },
  {
    name: 'tools-input-schema',
    source: `${TOOLS}; schema Tool.inputSchema: type "object"`,
    needs: NEEDS,
    check: (run) => ofEveryTool(run, (tool) => jsonSchema(tool.inputSchema, `inputSchema of ${tool.name}`)),
  },
  {
    name: 'tools-output-schema',
    source: `${TOOLS}; schema Tool.outputSchema: type "object"`,
    needs: NEEDS,
    check: (run) => ofEveryTool(run, (tool) => (tool.outputSchema === undefined ? undefined : jsonSchema(tool.outputSchema, `outputSchema of ${tool.name}`))),
  },
  {
    name: 'tools-task-support-present',
    source: 'seed 002 §9.3 Tool annotation presence',
    seedOnly: true,
    needs: NEEDS,
    check: (run) =>
      ofEveryTool(run, (tool) => (spellings(tool).every((value) => value === undefined) ? `${tool.name} has no taskSupport` : undefined)),
  },
  {
    name: 'tools-task-support-closed',
    source: 'seed 002 §5.1 / MCP 2025-11-25 schema ToolExecution',
    needs: NEEDS,
    check: (run) =>
      ofEveryTool(run, (tool) => {
        const odd = spellings(tool).find((value) => value !== undefined && !SUPPORT.includes(value));
        return odd === undefined ? undefined : `taskSupport of ${tool.name} is ${shown(odd)}, none of ${SUPPORT.join(', ')}`;
      }),
  },
  {
    name: 'tools-task-support-spellings',
    source: 'seed 002 §6.2 (annotations) and MCP 2025-11-25 Tools (execution)',
    seedOnly: true,
    needs: ['tools-task-support-present'],
    check: (run) =>
      ofEveryTool(run, (tool) => {
        const [execution, annotations] = spellings(tool);
        return execution === annotations
          ? undefined
          : `${tool.name}: execution.taskSupport is ${shown(execution)}, annotations.taskSupport ${shown(annotations)}`;
      }),
  },
  {
    name: 'tools-call-unknown-refused',
    source: `${TOOLS}, Error Handling`,
    needs: NEEDS,
    async check(run) {
      const answer = await run.client.send('tools/call', { name: 'compliance-no-such-tool', arguments: {} });
      if (isObject(answer.message?.error)) return `error ${errorOf(answer).code}`;
      demand(resultOf(answer).isError === true, `a tool that does not exist has the result ${shown(answer.message.result)}`);
      return 'isError';
    },
  },
  {
    name: 'tools-call-shape',
    source: `${TOOLS}; schema CallToolResult`,
    needs: NEEDS,
    async check(run) {
      const { name, arguments: args } = await run.plainTool();
      const result = resultOf(await run.client.send('tools/call', { name, arguments: args }));
      const wrong = callToolResult(result, 'result') ?? result.content.map((block, n) => contentBlock(block, `content[${n}]`)).find(Boolean);
      demand(!wrong, wrong);
      return name;
    },
  },
  {
    name: 'tools-call-forbidden-task-code',
    source: 'seed 002 F-004.4, §6.8: -32010 TaskForbidden',
    seedOnly: true,
    needs: NEEDS,
    async check(run) {
      const error = demandCode(await forbiddenCall(run), -32010);
      demand(error.message === 'TaskForbidden', `the message is ${shown(error.message)} instead of "TaskForbidden"`);
    },
  },
  {
    name: 'tools-call-forbidden-task-data',
    source: 'seed 002 §6.8: data.tool, data.reason',
    seedOnly: true,
    needs: ['tools-call-forbidden-task-code'],
    async check(run) {
      const { data } = errorOf(await forbiddenCall(run));
      const { name } = await run.plainTool();
      demand(data?.tool === name && typeof data.reason === 'string' && data.reason !== '', `data is ${shown(data)}`);
    },
  },
];

function forbiddenCall(run) {
  return run.once('forbidden call', async () => {
    const { name, arguments: args, support } = await run.plainTool();
    if (support !== 'forbidden') skip(`taskSupport of ${name} is ${support}; name a tool that forbids tasks with --plain-tool`);
    const answer = await run.client.send('tools/call', { name, arguments: args, task: { ttl: run.options.ttl } });
    run.seen('tools/call', answer);
    return answer;
  });
}
