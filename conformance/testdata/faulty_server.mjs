// A minimal server with the fixture's tools, in both eras, and with one fault
// on request. It exists to show that the checks of clients/ see each fault.
//
//   node faulty_server.mjs [FAULT]
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';

const fault = process.argv[2] ?? 'none';
const FAULTS = [
  'none', 'deaf', 'late-answer', 'late-error', 'lost-reason', 'wrong-origin', 'cancels-all', 'nested-left-alone',
  'progress-stands-still', 'stdout-noise', 'no-exit', 'bad-exit', 'mangles-text', 'missing-tool',
];
if (!FAULTS.includes(fault)) throw new Error(`unknown fault ${fault}`);

const TOOLS = ['echo', 'cancel_wait', 'cancel_poll', 'cancel_ignore', 'cancel_error', 'cancel_panic', 'cancel_nested', 'cancel_events']
  .filter((name) => fault !== 'missing-tool' || name !== 'cancel_panic');
const KINDS = { sampling: 'sampling/createMessage', elicitation_form: 'elicitation/create', roots: 'roots/list' };
const QUESTIONS = {
  sampling: { messages: [{ role: 'user', content: { type: 'text', text: 'why?' } }], maxTokens: 10 },
  elicitation_form: { message: 'who?', requestedSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] } },
  roots: {},
};

const events = [];
const running = new Map(); // id -> { cancelled, cancel(reason), origin, reason }
const waiting = new Map(); // id of a nested request -> resolve
let nestedId = 1000;

const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\n');
const record = (tag, event, more) => events.push({ tag, event, at_ns: Date.now() * 1e6, ...more });
const text = (value) => ({ content: [{ type: 'text', text: value }] });

function newCall() {
  const call = { cancelled: false };
  call.stop = new Promise((resolve) => {
    call.cancel = (reason) => {
      call.cancelled = true;
      call.origin = fault === 'wrong-origin' ? 'disconnect' : 'peer';
      call.reason = fault === 'lost-reason' ? '' : reason;
      resolve();
    };
  });
  call.why = () => ({ origin: call.origin, reason: call.reason });
  return call;
}

async function wait(call, tag, ms) {
  await Promise.race([call.stop, delay(ms)]);
  record(tag, call.cancelled ? 'observed' : 'elapsed', call.why());
  return text('done');
}

async function nested(call, tag, kind, params, stateless) {
  if (stateless) {
    if (params.inputResponses?.answer) return;
    throw { input: { answer: { method: KINDS[kind], params: QUESTIONS[kind] } } };
  }
  const id = nestedId++;
  send({ id, method: KINDS[kind], params: QUESTIONS[kind] });
  await Promise.race([call.stop, new Promise((resolve) => waiting.set(id, resolve))]);
  if (!call.cancelled) return;
  if (fault !== 'nested-left-alone') send({ method: 'notifications/cancelled', params: { requestId: id, reason: call.reason } });
  record(tag, 'nested_error', call.why());
  throw new Error('cancelled');
}

async function runTool(call, params, stateless) {
  const { tag, ...args } = params.arguments ?? {};
  const token = params._meta?.progressToken;
  switch (params.name) {
    case 'echo':
      return text(fault === 'mangles-text' ? args.text.trim() : args.text);
    case 'cancel_events':
      return { ...text('events'), structuredContent: { events: events.filter((e) => !tag || e.tag === tag) } };
    case 'cancel_wait':
      record(tag, 'started');
      return wait(call, tag, args.ms);
    case 'cancel_poll':
      record(tag, 'started');
      for (let step = 1; step <= args.steps; step++) {
        if (call.cancelled) {
          record(tag, 'stopped', { step, ...call.why() });
          return text('stopped');
        }
        const progress = fault === 'progress-stands-still' ? 1 : step;
        if (token !== undefined) send({ method: 'notifications/progress', params: { progressToken: token, progress, total: args.steps } });
        await Promise.race([call.stop, delay(args.step_ms)]);
      }
      return text('done');
    case 'cancel_ignore':
      record(tag, 'started');
      await delay(args.ms);
      record(tag, 'returned');
      return text('done');
    case 'cancel_error':
    case 'cancel_panic':
      record(tag, 'started');
      await call.stop;
      record(tag, 'observed', call.why());
      throw new Error('unrelated');
    case 'cancel_nested':
      await nested(call, tag, args.kind, params, stateless);
      record(tag, 'nested_result');
      return args.then_ms ? wait(call, tag, args.then_ms) : text('done');
    default:
      throw new Error('unknown tool');
  }
}

async function onToolCall(id, params, stateless) {
  const call = newCall();
  running.set(id, call);
  let message;
  try {
    const result = await runTool(call, params, stateless);
    message = { id, result: stateless ? { resultType: 'complete', ...result } : result };
  } catch (error) {
    message = error.input
      ? { id, result: { resultType: 'input_required', inputRequests: error.input, requestState: 'opaque' } }
      : { id, error: { code: -32603, message: error.message } };
  }
  running.delete(id);
  const late = 'result' in message ? fault === 'late-answer' : fault === 'late-error';
  if (!call.cancelled || late) send(message);
}

function onRequest({ id, method, params }) {
  const stateless = params?._meta?.['io.modelcontextprotocol/protocolVersion'] !== undefined;
  const capabilities = { tools: {} };
  const serverInfo = { name: 'faulty', version: '1.0.0' };
  switch (method) {
    case 'initialize':
      return send({ id, result: { protocolVersion: params.protocolVersion, capabilities, serverInfo } });
    case 'server/discover':
      return send({
        id,
        result: {
          resultType: 'complete', supportedVersions: ['2026-07-28'], capabilities, ttlMs: 0, cacheScope: 'private',
          _meta: { 'io.modelcontextprotocol/serverInfo': serverInfo },
        },
      });
    case 'tools/list': {
      const tools = TOOLS.map((name) => ({ name, description: name, inputSchema: { type: 'object' } }));
      return send({ id, result: stateless ? { resultType: 'complete', ttlMs: 0, cacheScope: 'private', tools } : { tools } });
    }
    case 'tools/call':
      if (fault === 'stdout-noise') process.stdout.write('listening\n');
      return onToolCall(id, params, stateless);
    default:
      return send({ id, error: { code: -32601, message: 'no such method' } });
  }
}

const input = createInterface({ input: process.stdin });
input.on('line', (line) => {
  const message = JSON.parse(line);
  if (message.method === undefined) {
    waiting.get(message.id)?.();
    waiting.delete(message.id);
  } else if (message.id !== undefined) {
    onRequest(message);
  } else if (message.method === 'notifications/cancelled' && fault !== 'deaf') {
    const { requestId, reason } = message.params;
    for (const [id, call] of running) {
      if (id === requestId || fault === 'cancels-all') call.cancel(reason);
    }
  }
});
// Clients end it by closing its input, by a signal, or by both at once.
function end() {
  if (fault !== 'no-exit') process.exit(fault === 'bad-exit' ? 3 : 0);
  setInterval(() => {}, 1000);
}
input.on('close', end);
process.on('SIGINT', end);
process.on('SIGTERM', end);
