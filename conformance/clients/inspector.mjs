// Uses the MCP Inspector as a person does: its command line calls tools in either era, and in its web
// page a tool is called, its progress is seen, Cancel is pressed, and the handler stops. The page is tried
// in each way that it can call a tool (see ways).
//
//   node inspector.mjs --chromium=PATH --url=URL --without-tasks=URL --home=FOLDER
//
// The second server has the same fixtures and no tasks.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { judge, open } from './browser.mjs';
import { option } from './options.mjs';

const launcher = fileURLToPath(new URL('../node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js', import.meta.url));
const url = option('url');
const REVISION = '2026-07-28';
const home = option('home');
const env = { ...process.env, HOME: home, MCP_STORAGE_DIR: home, MCP_INSPECTOR_SECRET_STORE: 'memory', MCP_AUTO_OPEN_ENABLED: 'false' };

// The ways that the page has of calling a tool. In the stateless era it tells each server that has tasks that
// it knows them, whatever its settings say of that; the server then may answer a call with a task. A task
// has no progress notifications: how far it is stands in its status, and tasks/cancel stops it.
const ways = {
  handshake: {
    server: { url, protocolEra: 'legacy' },
    progress: '1 / 60',
    stopped: { origin: 'peer', reason: 'Tool call cancelled by user' },
  },
  stateless: {
    server: { url: option('without-tasks'), protocolEra: 'modern' },
    progress: '1 / 60',
    stopped: { origin: 'disconnect', reason: 'the client closed the response' },
  },
  stateless_task: {
    server: { url, protocolEra: 'modern' },
    progress: /[1-9] of 60/,
    stopped: { origin: 'peer', reason: 'tasks/cancel' },
  },
};
const PATIENCE_MS = 80_000; // that of a person whose machine does other things

const web = await serve();
const { browser, context } = await open(new URL(web.url).origin); // its page asks for a font from elsewhere

const verdicts = {
  async command_line() {
    for (const era of ['legacy', 'modern']) {
      assert.ok((await call(era, 'tools/list')).tools.some(({ name }) => name === 'cancel_poll'), era);
      const { content } = await call(era, 'tools/call', '--tool-name', 'echo', '--tool-arg', 'text=hello');
      assert.deepEqual(content, [{ type: 'text', text: 'hello' }], era);
    }
  },

  // The command line of the Inspector's first line of versions, which was a package of its own. Its page has
  // no button that cancels a call.
  async command_line_oldest() {
    const oldest = fileURLToPath(new URL('../node_modules/inspector-cli-oldest/build/index.js', import.meta.url));
    const run = async (...args) => JSON.parse((await promisify(execFile)(process.execPath, [oldest, url, ...args], { env, timeout: PATIENCE_MS })).stdout);
    assert.ok((await run('--method', 'tools/list')).tools.some(({ name }) => name === 'cancel_poll'));
    const { content } = await run('--method', 'tools/call', '--tool-name', 'echo', '--tool-arg', 'text=hello');
    assert.deepEqual(content, [{ type: 'text', text: 'hello' }]);
  },
};
for (const [name, way] of Object.entries(ways)) {
  let page;
  verdicts[`${name}_connect`] = async () => {
    page = await context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    await page.goto(web.url);
    await page.getByLabel(`Connect or disconnect "${name}"`, { exact: true }).locator('..').click();
    await page.getByText('Tools', { exact: true }).first().click();
    await page.getByRole('button', { name: 'cancel_poll' }).click();
  };
  verdicts[`${name}_progress`] = async () => {
    await page.getByLabel(/^tag/).first().fill(name);
    await page.getByLabel(/^steps/).first().fill('60');
    await page.getByLabel(/^step_ms/).first().fill('3000');
    await page.getByRole('button', { name: 'Execute Tool' }).click();
    await page.getByText(way.progress).first().waitFor();
    assert.deepEqual((await events(way, name)).map(({ event }) => event), ['started']);
  };
  verdicts[`${name}_cancel`] = async () => {
    await page.getByRole('button', { name: 'Cancel', exact: true }).click();
    await page.getByText('Tool call cancelled').first().waitFor();
    let stopped;
    for (const deadline = Date.now() + PATIENCE_MS; !stopped; await delay(100)) {
      assert.ok(Date.now() < deadline, 'the handler does not stop');
      stopped = (await events(way, name)).find(({ event }) => event === 'stopped');
    }
    assert.deepEqual({ origin: stopped.origin, reason: stopped.reason }, way.stopped);
    await page.getByRole('button', { name: 'Execute Tool' }).click({ trial: true }); // it is ready for the next one
    await page.close();
  };
}
await judge('inspector', verdicts);
await browser.close();
web.process.kill();

// call runs the Inspector's command line and returns the result that it prints.
async function call(era, method, ...more) {
  const args = [launcher, '--cli', '--format', 'json', '--method', method, ...more, '--server-url', url, '--protocol-era', era];
  const { stdout } = await promisify(execFile)(process.execPath, args, { env, timeout: PATIENCE_MS });
  return JSON.parse(stdout).result;
}

// events are what the server's fixture has done. The test asks for them itself: it is not the Inspector's turn.
async function events({ server }, tag) {
  const response = await fetch(server.url, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json', Accept: 'application/json, text/event-stream',
      'MCP-Protocol-Version': REVISION, 'Mcp-Method': 'tools/call', 'Mcp-Name': 'cancel_events',
    },
    body: JSON.stringify({
      jsonrpc: '2.0', id: 1, method: 'tools/call',
      params: {
        name: 'cancel_events', arguments: { tag },
        _meta: { 'io.modelcontextprotocol/protocolVersion': REVISION, 'io.modelcontextprotocol/clientCapabilities': {} },
      },
    }),
  });
  return (await response.json()).result.structuredContent.events;
}

// serve starts the Inspector's web server, which knows the server once for each way, and returns it with
// the page's URL, which it prints.
async function serve() {
  const config = join(home, 'servers.json');
  const mcpServers = Object.fromEntries(Object.entries(ways).map(([name, { server }]) => [name, { type: 'streamable-http', ...server }]));
  await writeFile(config, JSON.stringify({ mcpServers }));
  const child = spawn(process.execPath, [launcher, '--web', '--config', config], {
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
