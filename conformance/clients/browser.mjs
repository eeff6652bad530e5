// A headless Chromium for the checks of web pages. It resolves no name, and every request that it
// makes is written down: a page that needs something from elsewhere fails, with or without a network.
import { chromium } from 'playwright-core';
import { option } from './options.mjs';

// open starts Chromium (--chromium=PATH) and returns a context for pages; strangers are the requests
// that went to another origin than the one given, complaints what pages reported as errors.
export async function open(origin) {
  const browser = await chromium.launch({
    executablePath: option('chromium'),
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost'],
  });
  const context = await browser.newContext({ reducedMotion: 'reduce' });
  const strangers = [];
  const complaints = [];
  context.on('request', (request) => {
    const url = new URL(request.url());
    if (url.origin !== origin && !['data:', 'blob:'].includes(url.protocol)) strangers.push(request.url());
  });
  context.on('weberror', (error) => complaints.push(String(error.error())));
  context.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text());
  });
  return { browser, context, strangers, complaints };
}

// judge runs the named checks and prints a verdict for each, as runner.mjs does.
export async function judge(client, checks) {
  let failed = false;
  for (const [check, run] of Object.entries(checks)) {
    const start = Date.now();
    const verdict = { client, check, ok: true };
    try {
      await run();
    } catch (error) {
      Object.assign(verdict, { ok: false, error: String(error?.stack ?? error).slice(0, 3000) });
      failed = true;
    }
    verdict.ms = Date.now() - start;
    console.log(JSON.stringify(verdict));
  }
  process.exitCode = failed ? 1 : 0;
}
