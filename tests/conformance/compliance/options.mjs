// The command line.

export class UsageError extends Error {}

export const USAGE = `Usage: tests/conformance/run URL [OPTION…]     checks an MCP endpoint with tasks
       tests/conformance/run [--keep]         compares the official suite through the gateway (this repository's own test)

Checks the MCP endpoint at URL against the compliance list of the tasks proposal (seed 002 §9.3, §9.4, §9.5) and against
MCP 2025-11-25; if it lists 2026-07-28, against that revision and its tasks extension, too. Prints a line for each
requirement: PASS, FAIL, or SKIP with the reason, and its source.

  --tool NAME           call this tool as a task; again for a tool whose tasks have another owner. Unless it is given,
                        only a tool that says it is read-only and that needs no arguments is called.
  --arguments JSON      the arguments of the tool named before
  --plain-tool NAME     call this tool without a task; --arguments after it are its own
  --approve-url URL     approve and reject the tasks made here over the gateway's admin API at this address
  --approve-token T     with this token; rather than that:
  --approve-token-env N with the token in the variable N
  --upstream URL        the server behind the endpoint, to compare what it advertises
  --header 'N: value'   send this header with every request; may be given again
  --header-env N=VAR    the same, with the value of the variable VAR, which nobody sees in the list of processes
  --other-header, --other-header-env
                        headers of a second client, who must not see the tasks of the first
  --tasks N             make N tasks before tasks/list is read, to see more than one page (default 1)
  --ttl MS              time to live of the tasks made (default 60000)
  --patience MS         how long a waiting tasks/result is watched (default 300)
  --timeout MS          the longest wait for any answer, or for a task to end (default 10000)
  --mcp-only            only what the published specification asks for
  --json                one JSON document in place of the lines
  --help                this text

Exit code: 0 nothing failed, 1 something failed, 2 wrong usage or nobody there.
`;

/** Options as check.mjs takes them, and `json`, `help`. Throws UsageError. */
export function parse(words, environment) {
  const options = {
    url: undefined, headers: {}, otherHeaders: {}, tools: [], plainTool: undefined, approve: undefined, upstream: undefined,
    tasks: 1, ttl: 60_000, patience: 300, timeout: 10_000, mcpOnly: false, json: false, help: false,
  };
  const approval = {};
  let lastTool;
  const variable = (name) => environment[name] ?? wrong(`the variable ${name} is not set`);
  const takers = {
    '--tool': (name) => options.tools.push((lastTool = { name, arguments: {} })),
    '--plain-tool': (name) => (options.plainTool = lastTool = { name, arguments: {} }),
    '--arguments': (text) => ((lastTool ?? wrong('--arguments has to follow --tool or --plain-tool')).arguments = jsonObject(text)),
    '--approve-url': (text) => (approval.url = address(text)),
    '--approve-token': (token) => (approval.token = token),
    '--approve-token-env': (name) => (approval.token = variable(name)),
    '--upstream': (text) => (options.upstream = address(text)),
    '--header': (text) => header(options.headers, text),
    '--header-env': (text) => header(options.headers, text, variable),
    '--other-header': (text) => header(options.otherHeaders, text),
    '--other-header-env': (text) => header(options.otherHeaders, text, variable),
    '--tasks': (text) => (options.tasks = positive('--tasks', text)),
    '--ttl': (text) => (options.ttl = positive('--ttl', text)),
    '--patience': (text) => (options.patience = positive('--patience', text)),
    '--timeout': (text) => (options.timeout = positive('--timeout', text)),
  };
  const switches = { '--mcp-only': 'mcpOnly', '--json': 'json', '--help': 'help', '-h': 'help' };
  for (let at = 0; at < words.length; at++) {
    const [, name, inline] = /^(--[a-z-]+)(?:=(.*))?$/s.exec(words[at]) ?? [undefined, words[at]];
    if (switches[name] && inline === undefined) options[switches[name]] = true;
    else if (takers[name]) takers[name](inline ?? words[++at] ?? wrong(`${name} needs a value`));
    else if (name.startsWith('-')) wrong(`${words[at]} is not an option`);
    else if (options.url !== undefined) wrong(`${words[at]} is one URL too many`);
    else options.url = address(words[at]);
  }
  if (options.help) return options;
  if (options.url === undefined) wrong('no URL is given');
  if (approval.token !== undefined && approval.url === undefined) wrong('a token for approving needs --approve-url');
  if (approval.url !== undefined) options.approve = approval;
  return options;
}

function wrong(message) {
  throw new UsageError(message);
}

function address(text) {
  let url;
  try {
    url = new URL(text);
  } catch {
    wrong(`${text} is not a URL`);
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') wrong(`${text} is neither http: nor https:`);
  return text;
}

function jsonObject(text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    wrong(`--arguments: ${error.message}`);
  }
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : wrong('--arguments is no JSON object');
}

/** "Name: value", or "Name=VARIABLE" when `variable` looks it up. */
function header(headers, text, variable) {
  const form = variable ? /^([!#$%&'*+.^_`|~\w-]+)=(\w+)$/ : /^([!#$%&'*+.^_`|~\w-]+): ?([^\r\n]*)$/;
  // The text may be a secret: it is not repeated.
  const [, name, value] = form.exec(text) ?? wrong(variable ? '--header-env is NAME=VARIABLE' : "--header is 'Name: value'");
  headers[name.toLowerCase()] = variable ? variable(value) : value;
}

function positive(name, text) {
  const value = Number(text);
  return Number.isSafeInteger(value) && value > 0 ? value : wrong(`${name} is a positive number: ${text}`);
}
