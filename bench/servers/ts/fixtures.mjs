// Fixture server on @modelcontextprotocol/sdk: what heedcheck compares. It is apart from the
// server that is measured. Without arguments it serves stdio, with -http ADDR streamable HTTP.
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { CompleteRequestSchema, EmptyResultSchema, SubscribeRequestSchema, UnsubscribeRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { setTimeout as sleep } from 'node:timers/promises';
import { PassThrough } from 'node:stream';
import { z } from 'zod';
import { serveHTTP } from './http.mjs';

const list = [];
let running = 0; // handlers that have not returned
const add = (tag, event, step = 0, reason = '') =>
  list.push({ tag, event, origin: '', reason, step, at_ns: Math.round((performance.timeOrigin + performance.now()) * 1e6) });
// The SDK aborts with the client's reason, which is text; without one the platform's error stands there.
const reasonOf = signal => (typeof signal.reason === 'string' ? signal.reason : '');
const text = s => ({ content: [{ type: 'text', text: s }] });

// waitOn waits for the end of the request or for ms.
async function waitOn(tag, ms, signal) {
  try {
    await sleep(ms, undefined, { signal });
    add(tag, 'elapsed');
  } catch (err) {
    add(tag, 'observed', 0, reasonOf(signal));
    throw err;
  }
}
const wait = (tag, ms, signal) => { add(tag, 'started'); return waitOn(tag, ms, signal); };
async function until(tag, signal) {
  add(tag, 'started');
  if (!signal.aborted) await new Promise(resolve => signal.addEventListener('abort', resolve, { once: true }));
  add(tag, 'observed', 0, reasonOf(signal));
}

function newServer() {
  const s = new McpServer({ name: 'bench-ts-fixtures', version: '1.0.0' }, { capabilities: { logging: {}, completions: {}, resources: { subscribe: true } } });
  const tool = (name, schema, handle) => s.registerTool(name, { inputSchema: { tag: z.string(), ...schema } }, async (args, extra) => {
    running++;
    try { await handle(args, extra); } finally { running--; }
    return text('done');
  });
  const report = async (extra, progress, total) => {
    const progressToken = extra._meta?.progressToken;
    if (progressToken !== undefined) await extra.sendNotification({ method: 'notifications/progress', params: { progressToken, progress, total } });
  };

  s.registerTool('echo', { inputSchema: { text: z.string(), progress: z.number().default(0) } }, async ({ text: said, progress }, extra) => {
    for (let i = 1; i <= progress; i++) await report(extra, i, progress);
    return text(said);
  });
  const structured = o => ({ content: [{ type: 'text', text: JSON.stringify(o) }], structuredContent: o });
  s.registerTool('cancel_events', { inputSchema: { tag: z.string().optional() } }, ({ tag }) => structured({ events: list.filter(e => !tag || e.tag === tag) }));
  s.registerTool('cancel_stats', {}, () => structured({ goroutines: process.getActiveResourcesInfo().length, in_flight: running }));

  const ms = z.number().default(60_000);
  tool('cancel_wait', { ms }, ({ tag, ms }, { signal }) => wait(tag, ms, signal).catch(() => {})); // the result is the same
  tool('cancel_timeout', { ms }, ({ tag, ms }, { signal }) => wait(tag, ms, AbortSignal.any([signal, AbortSignal.timeout(200)])));
  tool('cancel_error', {}, async ({ tag }, { signal }) => { await until(tag, signal); throw new Error('the disk is full'); });
  tool('cancel_panic', {}, async ({ tag }, { signal }) => { await until(tag, signal); null.panic(); });
  tool('cancel_foreign', {}, () => AbortSignal.abort().throwIfAborted());
  tool('cancel_hook', {}, async ({ tag }, { signal }) => {
    const connection = new PassThrough();
    signal.addEventListener('abort', () => { add(tag, 'hook', 0, reasonOf(signal)); connection.destroy(new Error('closed')); }, { once: true });
    add(tag, 'started');
    for await (const _ of connection); // nobody writes
  });
  tool('cancel_shield', { ms: z.number().default(100) }, async ({ tag, ms }, { signal }) => {
    add(tag, 'started');
    add(tag, 'entered');
    await sleep(ms);
    add(tag, 'committed');
    add(tag, signal.aborted ? 'observed' : 'done', 0, signal.aborted ? reasonOf(signal) : '');
  });
  tool('cancel_poll', { steps: z.number().default(10), step_ms: z.number().default(100) }, async ({ tag, steps, step_ms }, extra) => {
    add(tag, 'started');
    for (let step = 0; step < steps; step++) {
      if (extra.signal.aborted) { add(tag, 'stopped', step, reasonOf(extra.signal)); return; }
      await report(extra, step + 1, steps);
      await sleep(step_ms);
    }
  });
  tool('cancel_ignore', { ms: z.number().default(1000), log: z.boolean().default(false) }, async ({ tag, ms, log }, extra) => {
    add(tag, 'started');
    for (let done = 20; done < ms; done += 20) {
      await sleep(20);
      await report(extra, done, ms);
      if (log) await extra.sendNotification({ method: 'notifications/message', params: { level: 'info', data: 'still at work' } });
    }
    add(tag, 'returned');
  });

  // Requests to the client, each bound to the call that it belongs to and to its signal.
  const ask = (kind, { signal, requestId, sendRequest }) => {
    const options = { signal, relatedRequestId: requestId };
    switch (kind) {
      case 'sampling': return s.server.createMessage({ messages: [{ role: 'user', content: { type: 'text', text: 'Say something.' } }], maxTokens: 10 }, options);
      case 'elicitation_form': return s.server.elicitInput({ mode: 'form', message: 'What is your name?', requestedSchema: { type: 'object', properties: { name: { type: 'string' } } } }, options);
      case 'elicitation_url': return s.server.elicitInput({ mode: 'url', message: 'Please sign in.', url: 'https://example.com/sign-in', elicitationId: 'sign-in' }, options);
      case 'roots': return s.server.listRoots(undefined, options);
      default: return sendRequest({ method: 'ping' }, EmptyResultSchema, { signal });
    }
  };
  const nested = async (tag, kind, then_ms, extra) => {
    try {
      await ask(kind, extra);
    } catch (err) {
      add(tag, 'nested_error', 0, extra.signal.aborted ? reasonOf(extra.signal) : String(err));
      throw err;
    }
    add(tag, 'nested_result');
    if (then_ms > 0) await waitOn(tag, then_ms, extra.signal);
  };
  const kind = z.enum(['sampling', 'elicitation_form', 'elicitation_url', 'roots', 'ping']);
  tool('cancel_nested', { kind, then_ms: z.number().default(0) }, ({ tag, kind, then_ms }, extra) => { add(tag, 'started'); return nested(tag, kind, then_ms, extra); });
  tool('cancel_then_nested', { kind }, async ({ tag, kind }, extra) => { await until(tag, extra.signal); await nested(tag, kind, 0, extra); });
  tool('cancel_sequence', {}, async ({ tag }, extra) => {
    add(tag, 'started');
    for (let step = 1; step <= 3; step++) {
      add(tag, 'step', step);
      try { await ask('sampling', extra); } catch (err) { add(tag, 'nested_error', step, reasonOf(extra.signal)); throw err; }
    }
  });

  s.registerPrompt('cancel_wait_prompt', { argsSchema: { tag: z.string() } }, async ({ tag }, { signal }) => {
    await wait(tag, 60_000, signal);
    return { messages: [{ role: 'user', content: { type: 'text', text: 'done' } }] };
  });
  s.registerResource('cancel-wait', new ResourceTemplate('cancel://wait/{tag}', { list: undefined }), {}, async (uri, { tag }, { signal }) => {
    await wait(tag, 60_000, signal);
    return { contents: [{ uri: uri.href, text: 'done' }] };
  });
  s.server.setRequestHandler(CompleteRequestSchema, async ({ params: { argument: { value } } }, { signal }) => {
    if (!value.startsWith('wait:')) return { completion: { values: [] } };
    await wait(value.slice('wait:'.length), 60_000, signal);
    return { completion: { values: ['done'] } };
  });
  s.server.setRequestHandler(SubscribeRequestSchema, async ({ params: { uri } }, { signal }) => {
    await wait(uri.replace('cancel://subscribe/', ''), 60_000, signal);
    return {};
  });
  s.server.setRequestHandler(UnsubscribeRequestSchema, async () => ({}));
  s.server.setRequestHandler(z.object({ method: z.literal('heed/wait'), params: z.object({ tag: z.string(), ms: z.number() }) }), async ({ params: { tag, ms } }, { signal }) => {
    await wait(tag, ms, signal);
    return { text: 'done' };
  });
  return s;
}

const http = process.argv.indexOf('-http');
if (http < 0) {
  const s = newServer();
  await s.connect(new StdioServerTransport());
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, async () => { await s.close(); process.exit(0); });
} else {
  await serveHTTP(newServer, process.argv[http + 1]);
}
