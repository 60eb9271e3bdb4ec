// The operators' page in a real browser: one browser for a test file, one context for each page.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { after } from 'node:test';
import { chromium } from 'playwright-core';
import { defer } from './lifetime.mjs';

const CHROMIUM = process.env.TASKGATE_CHROMIUM ?? '/usr/bin/chromium';
const FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];

/** For the option `skip` of a test. */
export const noBrowser = fs.existsSync(CHROMIUM) ? false : `the browser ${CHROMIUM} is missing: apt-get install chromium, or set TASKGATE_CHROMIUM`;

let launching;
export const browser = () => (launching ??= chromium.launch({ executablePath: CHROMIUM, headless: true, args: FLAGS }));
after(async () => (await launching)?.close());

/**
 * Chromium gives up all that it loads when an interface of the machine comes or goes, also what comes from this machine.
 * A page without a part of its scripts is dead, so it is loaded again.
 */
export function outliveNetworkChanges(page) {
  let isBroken = false;
  page.on('requestfailed', (request) => {
    isBroken ||= ['script', 'stylesheet'].includes(request.resourceType()) && request.failure()?.errorText === 'net::ERR_NETWORK_CHANGED';
  });
  page.on('load', () => {
    if (isBroken) page.reload().catch(() => {});
    isBroken = false;
  });
  const goto = page.goto.bind(page);
  page.goto = (...args) => goto(...args).catch((error) => (/ERR_NETWORK_CHANGED/.test(error.message) ? goto(...args) : Promise.reject(error)));
}

/** The answer to the decision that this page sent has come: until then the page drops every key. */
export const answered = (page) => page.waitForFunction(() => document.querySelector('[data-task-id][aria-busy="true"]') === null);

/**
 * A new page with the options of a browser context. At the end of the test it must have been free of
 * errors, and must have asked nobody but `origin` for anything.
 */
export async function openPage(t, origin, options = {}) {
  const context = await (await browser()).newContext(options);
  defer(t, () => context.close());
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  outliveNetworkChanges(page);
  const faults = [];
  page.on('pageerror', (error) => faults.push(`error: ${error.message}`));
  page.on('console', (message) => /Content Security Policy|Uncaught/.test(message.text()) && faults.push(message.text()));
  page.on('request', (request) => request.url().startsWith(origin) || faults.push(`a request to ${request.url()}`));
  defer(t, () => assert.deepEqual(faults, []));
  return page;
}
