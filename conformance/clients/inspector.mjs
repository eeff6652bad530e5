// Uses the MCP Inspector as a person does: its command line calls tools in either era, and in its web
// page, which speaks the handshake era unless it is told otherwise, a tool is called, its progress is
// seen, Cancel is pressed, and the handler stops.
//
//   node inspector.mjs --chromium=PATH --url=URL --home=FOLDER
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { judge, open } from './browser.mjs';
import { option } from './options.mjs';

const launcher = fileURLToPath(new URL('../node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js', import.meta.url));
const url = option('url');
const home = option('home');
const env = { ...process.env, HOME: home, MCP_STORAGE_DIR: home, MCP_INSPECTOR_SECRET_STORE: 'memory', MCP_AUTO_OPEN_ENABLED: 'false' };
const tag = 'inspector';

const web = await serve();
const { browser, context } = await open(new URL(web.url).origin); // its page asks for a font from elsewhere
const page = await context.newPage();
page.setDefaultTimeout(40_000);

await judge('inspector', {
  async command_line() {
    for (const era of ['legacy', 'modern']) {
      assert.ok((await call(era, 'tools/list')).tools.some(({ name }) => name === 'cancel_poll'), era);
      const { content } = await call(era, 'tools/call', '--tool-name', 'echo', '--tool-arg', 'text=hello');
      assert.deepEqual(content, [{ type: 'text', text: 'hello' }], era);
    }
  },

  async connect() {
    await page.goto(web.url);
    await page.getByLabel(/^Connect or disconnect/).locator('..').click();
    await page.getByText('Tools', { exact: true }).first().click();
    await page.getByRole('button', { name: 'cancel_poll' }).click();
  },

  async progress() {
    await page.getByLabel(/^tag/).first().fill(tag);
    await page.getByLabel(/^steps/).first().fill('60');
    await page.getByLabel(/^step_ms/).first().fill('3000');
    await page.getByRole('button', { name: 'Execute Tool' }).click();
    await page.getByText('1 / 60', { exact: false }).waitFor();
    assert.deepEqual((await events()).map(({ event }) => event), ['started']);
  },

  async cancel() {
    await page.getByRole('button', { name: 'Cancel', exact: true }).click();
    await page.getByText('Tool call cancelled').first().waitFor();
    let stopped;
    for (const deadline = Date.now() + 40_000; !stopped; await delay(100)) {
      assert.ok(Date.now() < deadline, 'the handler does not stop');
      stopped = (await events()).find(({ event }) => event === 'stopped');
    }
    assert.equal(stopped.origin, 'peer');
    assert.equal(stopped.reason, 'Tool call cancelled by user');
    await page.getByRole('button', { name: 'Execute Tool' }).click({ trial: true }); // it is ready for the next one
  },
});
await browser.close();
web.process.kill();

// call runs the Inspector's command line and returns the result that it prints.
async function call(era, method, ...more) {
  const args = [launcher, '--cli', '--format', 'json', '--method', method, ...more, '--server-url', url, '--protocol-era', era];
  const { stdout } = await promisify(execFile)(process.execPath, args, { env, timeout: 60_000 });
  return JSON.parse(stdout).result;
}

async function events() {
  const { structuredContent } = await call('legacy', 'tools/call', '--tool-name', 'cancel_events', '--tool-arg', `tag=${tag}`);
  return structuredContent.events;
}

// serve starts the Inspector's web server and returns it with the page's URL, which it prints.
async function serve() {
  const child = spawn(process.execPath, [launcher, '--web', '--server-url', url], {
    env: { ...env, CLIENT_PORT: String(await freePort()), MCP_SANDBOX_PORT: String(await freePort()), MCP_APP_ORIGIN_PORT: String(await freePort()) },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  for await (const line of createInterface({ input: child.stdout })) {
    const [found] = /http:\/\/\S+MCP_INSPECTOR_API_TOKEN=\S+/.exec(line) ?? [];
    if (found) return { process: child, url: found };
  }
  throw new Error('the Inspector has ended');
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}
