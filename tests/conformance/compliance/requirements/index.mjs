// Every requirement in the order in which it is checked: {name, source, check(run), needs?, seedOnly?}.
//
// `check` returns a detail or nothing (PASS), or throws an error of verdict.mjs. The requirements in `needs` must have passed before,
// else this one is skipped: one fault is one FAIL. `seedOnly`: the published specification does not ask for it.
import { lifecycle } from './lifecycle.mjs';
import { messages } from './messages.mjs';
import { taskLife } from './task_life.mjs';
import { tasks } from './tasks.mjs';
import { tools } from './tools.mjs';

export const requirements = [...lifecycle, ...tools, ...tasks, ...taskLife, ...messages];
