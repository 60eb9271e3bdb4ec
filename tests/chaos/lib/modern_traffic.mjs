// The same traffic by clients of the modern era: no session, a task's result in the answer to `tasks/get`.
import { setTimeout as pause } from 'node:timers/promises';
import { pick } from '../../integration/lib/random.mjs';
import { Traffic } from '../../faults/lib/traffic.mjs';

export class ModernTraffic extends Traffic {
  /** The client cannot say how long it waits, so a call that nobody will decide is for a workflow with little time. */
  create(client, tool) {
    return this.createWith(client, (marker) => (Traffic.fate(marker) ? tool : 'drop_user'));
  }

  async createWith(client, toolFor) {
    const marker = this.ledger.mark();
    const name = toolFor(marker);
    const answer = await client.send('tools/call', { name, arguments: this.argumentsOf(marker) });
    if (this.refused(`create ${marker}`, answer)) return undefined;
    const id = answer.message.result.taskId;
    this.ledger.created(id, marker, client);
    client.tasks.push(id);
    return id;
  }

  /** `working` says nothing here: it is the word for an undecided task, too. */
  async look(client, id) {
    const answer = await client.send('tasks/get', { taskId: id });
    if (!this.refused(`tasks/get ${id}`, answer)) this.toldTask(id, answer.message.result);
  }

  toldTask(id, { status, result }) {
    if (status === 'working' || status === 'input_required') return;
    this.ledger.toldStatus(id, status);
    if (status === 'completed') this.ledger.toldResult(id, result.content[0].text);
  }

  /** The answer is the same whether the task was still there to be cancelled. */
  async cancel(client, id) {
    this.ledger.deciding(this.ledger.tasks.get(id).marker, 'cancel');
    const answer = await client.send('tasks/cancel', { taskId: id });
    this.refused(`tasks/cancel ${id}`, answer);
  }

  result(client, id) {
    return this.look(client, id);
  }

  /** It asks again and again, as there is no request that waits. */
  waiter(client, { steps = 10 } = {}) {
    return this.repeat(steps, async () => {
      const id = client.tasks && pick(this.random, client.tasks.slice(-4));
      if (id) await this.look(client, id);
      await pause(20);
    });
  }
}
