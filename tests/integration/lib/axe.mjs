// The faults that axe-core finds on a page.
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const AXE = fs.readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** The page's policy allows no script of others: axe-core comes by the debugger. */
export async function violations(page) {
  await page.evaluate(AXE);
  const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
  return found.violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 120)).join(' | ')}`);
}

// TASKGATE_SCREENSHOTS names a folder that keeps what a person should look at.
const SCREENSHOTS = process.env.TASKGATE_SCREENSHOTS;

export async function picture(page, name) {
  if (!SCREENSHOTS) return;
  fs.mkdirSync(SCREENSHOTS, { recursive: true });
  await page.screenshot({ path: path.join(SCREENSHOTS, `${name}.png`), fullPage: true });
}
