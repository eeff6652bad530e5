// What a client may expect of the fixture server, whatever its version and
// era. A check gets a session (see session.mjs) and throws if it is disappointed;
// the runner adds one expectation to each: the client has reported no error.
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { option } from './options.mjs';

// How long the server may take for what it does at once. Generous, because a
// busy machine is not a fault; whoever expects faults sets --patience=MS.
const SOON_MS = Number(option('patience') ?? 10_000);

// DROPPED is what a client says of a report that it read together with its result.
const DROPPED = /progress notification for an unknown token/;

const REASON = 'user pressed "stop" — ünïcode';

const TOOLS = [
  'cancel_error',
  'cancel_events',
  'cancel_ignore',
  'cancel_nested',
  'cancel_panic',
  'cancel_poll',
  'cancel_wait',
  'echo',
];

// The first revisions that have something.
const SINCE_ELICITATION = '2025-06-18';
const SINCE_PRIMING = '2025-11-25'; // streams can be resumed from their beginning

export const checks = [
  { name: 'revision', run: negotiatesTheRevision },
  { name: 'list', run: listsTools },
  { name: 'echo', run: echoes },
  { name: 'progress', run: reportsProgress },
  { name: 'nested_sampling', run: (s) => asksTheClient(s, 'sampling', 'sampling') },
  { name: 'nested_elicitation', run: (s) => asksTheClient(s, 'elicitation_form', 'elicitation'), since: SINCE_ELICITATION },
  { name: 'cancel_wait', run: cancelReachesAWaitingTool },
  { name: 'cancel_poll', run: cancelReachesAPollingTool },
  { name: 'cancel_ignore', run: (s) => cancelIsSilent(s, 'cancel_ignore', { ms: 400 }, 'returned') },
  { name: 'cancel_error', run: (s) => cancelIsSilent(s, 'cancel_error', {}, 'observed') },
  { name: 'cancel_panic', run: (s) => cancelIsSilent(s, 'cancel_panic', {}, 'observed') },
  { name: 'cancel_one_of_many', run: cancelTouchesNobodyElse },
  { name: 'cancel_while_nested', run: cancelReachesTheNestedRequest, eras: ['handshake'] },
  { name: 'give_up_while_nested', run: givesUpWhileNested, eras: ['stateless'] },
  { name: 'cancel_after_nested', run: cancelReachesTheContinuedCall },
  { name: 'lose_and_resume', run: resumesALostStream, eras: ['handshake'], transports: ['http'] },
  { name: 'come_back_later', run: comesBackWhenTold, eras: ['handshake'], transports: ['http'], since: SINCE_PRIMING },
  { name: 'session_lives', run: worksAsOnTheFirstDay },
];

async function negotiatesTheRevision(session) {
  assert.equal(session.revision(), session.expectedRevision);
  assert.ok(session.serverName(), 'the server has no name');
}

async function listsTools(session) {
  const tools = await session.listTools();
  const names = tools.map((tool) => tool.name);
  assert.deepEqual(TOOLS.filter((name) => !names.includes(name)), [], 'tools are missing');
  for (const tool of tools) {
    assert.equal(tool.inputSchema.type, 'object', `input schema of ${tool.name}`);
  }
}

async function echoes(session) {
  for (const text of ['hello', '', ' padded ', 'line\nline\r\n\u2028"\\', '☃ 𝄞', 'x'.repeat(200_000)]) {
    assert.equal(textOf(await session.call('echo', { text })), text);
  }
}

// These clients drop a report that they read together with its result, and complain; a busy
// machine brings them together. Then the steps are tried farther apart.
async function reportsProgress(session) {
  await inTime(800, async (step_ms) => {
    const reports = await reportsOf(session, { tag: tagOf('progress'), steps: 2, step_ms });
    if (reports.at(-1) === 2) return true;
    session.forgive(DROPPED);
    return false;
  }, 'the last step is not reported');
}

// reportsOf makes a call that reports its steps. None comes twice, or after the result.
async function reportsOf(session, args, onreport = () => {}) {
  const reports = [];
  let answered = false;
  const onprogress = ({ progress }) => {
    assert.ok(!answered, 'progress after the result');
    reports.push(progress);
    onreport(progress);
  };
  const result = await session.call('cancel_poll', args, { onprogress });
  answered = true;
  assert.ok(!result.isError, textOf(result));
  assert.deepEqual(reports, [...new Set(reports)].sort((a, b) => a - b), 'progress does not increase strictly');
  return reports;
}

// inTime tries something that a busy machine may be too slow for, with more and more time.
async function inTime(ms, attempt, what) {
  for (; !(await attempt(ms)); ms *= 3) assert.ok(3 * ms < SOON_MS, what);
}

async function asksTheClient(session, kind, question) {
  const tag = tagOf(kind);
  const before = session.asked(question);
  const result = await session.call('cancel_nested', { tag, kind });
  assert.ok(!result.isError, textOf(result));
  assert.equal(session.asked(question), before + 1, 'how often the client was asked');
  await event(session, tag, 'nested_result');
}

async function cancelReachesAWaitingTool(session) {
  const tag = tagOf('wait');
  const call = start(session, 'cancel_wait', { tag, ms: 60_000 });
  await event(session, tag, 'started');
  await call.cancel(REASON);
  assertCancelledBy(session, await event(session, tag, 'observed'));
  await nothingFollows(session);
}

async function cancelReachesAPollingTool(session) {
  await inTime(500, async (step_ms) => {
    const tag = tagOf('poll');
    // Cancelled from inside of a report, with the next one half a second away:
    // a report that is already on its way when a client gives up is nobody's fault.
    const call = start(session, 'cancel_poll', { tag, steps: 1000, step_ms }, (report) => {
      if (report.progress >= 2) call.abort(REASON);
    }, SOON_MS + 2 * step_ms);
    await call.cancelled;
    const stopped = await event(session, tag, 'stopped', SOON_MS + step_ms);
    assertCancelledBy(session, stopped);
    assert.ok(stopped.step >= 2, `stopped at step ${stopped.step}`);
    return stopped.step <= 4;
  }, 'it goes on for more than two steps');
  await nothingFollows(session);
}

async function cancelIsSilent(session, tool, args, last) {
  const tag = tagOf(tool);
  const call = start(session, tool, { tag, ...args });
  await event(session, tag, 'started');
  await call.cancel(REASON);
  await event(session, tag, last);
  await nothingFollows(session);
}

async function cancelTouchesNobodyElse(session) {
  await inTime(700, async (ms) => {
    const [stays, goes] = [tagOf('stays'), tagOf('goes')];
    const survivor = session.call('cancel_wait', { tag: stays, ms });
    const call = start(session, 'cancel_wait', { tag: goes, ms: 60_000 });
    await event(session, stays, 'started');
    await event(session, goes, 'started');
    await call.cancel(REASON);
    const observed = await event(session, goes, 'observed');
    assertCancelledBy(session, observed);
    assert.equal(textOf(await soon(survivor, 'the other call is answered', SOON_MS + ms)), 'done');
    return (await event(session, stays, 'elapsed')).at_ns > observed.at_ns;
  }, 'the other call is over before the cancel');
}

async function cancelReachesTheNestedRequest(session) {
  const tag = tagOf('nested');
  let call;
  const abandoned = new Promise((resolve) => {
    session.answerOnce('sampling', (signal) => {
      signal.addEventListener('abort', () => resolve(signal.reason));
      call.abort(REASON);
      return new Promise(() => {}); // a model that never answers
    });
  });
  call = start(session, 'cancel_nested', { tag, kind: 'sampling' });
  await call.cancelled;
  assert.equal(await soon(abandoned, 'the nested request is cancelled'), REASON);
  assertCancelledBy(session, await event(session, tag, 'nested_error'));
  await nothingFollows(session);
}

// In the stateless era the server is not waiting for an answer but for another
// request, and nothing tells it that none will come: only the client is asked.
async function givesUpWhileNested(session) {
  let call;
  session.answerOnce('sampling', (signal) => {
    call.abort(REASON);
    return new Promise((_, reject) => {
      if (signal.aborted) reject(signal.reason);
      signal.addEventListener('abort', () => reject(signal.reason));
    });
  });
  call = start(session, 'cancel_nested', { tag: tagOf('given-up'), kind: 'sampling' });
  await call.cancelled;
  await nothingFollows(session);
}

async function cancelReachesTheContinuedCall(session) {
  const tag = tagOf('continued');
  const call = start(session, 'cancel_nested', { tag, kind: 'sampling', then_ms: 60_000 });
  await event(session, tag, 'nested_result');
  await call.cancel(REASON);
  assertCancelledBy(session, await event(session, tag, 'observed'));
  await nothingFollows(session);
}

// A connection that is lost cancels nothing: the client comes back, and gets every
// report that it has missed, each once, and the result.
async function resumesALostStream(session) {
  await inTime(200, async (step_ms) => {
    const before = session.connections.resumed();
    const reports = await reportsOf(session, { tag: tagOf('lost'), steps: 6, step_ms }, (progress) => {
      if (progress === 2) session.connections.lose();
    });
    if (reports.length < 6) session.forgive(DROPPED);
    return reports.length === 6 && session.connections.resumed() > before;
  }, 'the client does not come back, or misses a report');
  session.forgive(/SSE stream disconnected/);
}

// The server ends a stream whose answer will take its time, and says when to come
// back for it.
async function comesBackWhenTold(session) {
  const before = session.connections.resumed();
  const result = await session.call('test_reconnection', {});
  assert.ok(!result.isError, textOf(result));
  assert.ok(session.connections.resumed() > before, 'the stream was not closed, so nothing was tried');
}

async function worksAsOnTheFirstDay(session) {
  await listsTools(session);
  await reportsProgress(session);
  await asksTheClient(session, 'sampling', 'sampling');
}

// start begins a call that is going to be cancelled within ms. cancel(reason) aborts it
// and waits until the client has given up.
function start(session, tool, args, onprogress, ms = SOON_MS) {
  const controller = new AbortController();
  const cancelled = soon(
    session.call(tool, args, { signal: controller.signal, onprogress }).then(
      (result) => assert.fail(`${tool} was answered: ${JSON.stringify(result)}`),
      (error) => assert.ok(controller.signal.aborted, `${tool} failed before it was cancelled: ${error}`),
    ),
    `${tool} is given up`,
    ms,
  );
  cancelled.catch(() => {}); // awaited later, by then it may have failed
  return {
    cancelled,
    abort: (reason) => controller.abort(reason),
    cancel: (reason) => {
      controller.abort(reason);
      return cancelled;
    },
  };
}

// event waits until the server has recorded the event for the tag.
async function event(session, tag, name, ms = SOON_MS) {
  const deadline = Date.now() + ms;
  for (;;) {
    const result = await session.call('cancel_events', { tag });
    const { events } = result.structuredContent ?? JSON.parse(textOf(result)); // text before revision 2025-06-18
    const found = events.find((e) => e.event === name);
    if (found) return found;
    const seen = events.map((e) => e.event).join(', ') || 'none';
    assert.ok(Date.now() < deadline, `no event ${name} for ${tag}; events: ${seen}`);
    await delay(5);
  }
}

// nothingFollows gives a late message of a cancelled request the time to
// arrive. The client reports one as an error, which fails the check.
async function nothingFollows(session) {
  for (let i = 0; i < 3; i++) {
    assert.equal(textOf(await session.call('echo', { text: `still here ${i}` })), `still here ${i}`);
    await delay(20);
  }
}

function assertCancelledBy(session, recorded) {
  const { origin, reason } = session.cancelledBy(REASON);
  assert.equal(recorded.origin, origin);
  assert.equal(recorded.reason, reason);
}

// bounded ends a check that hangs in spite of its own bounds.
export const bounded = (promise) => soon(promise, 'the check ends', 4 * SOON_MS);

async function soon(promise, what, ms = SOON_MS) {
  const timer = new AbortController();
  const late = delay(ms, undefined, { signal: timer.signal }).then(
    () => assert.fail(`not within ${ms} ms: ${what}`),
    () => {},
  );
  try {
    return await Promise.race([promise, late]);
  } finally {
    timer.abort();
  }
}

// Several clients may use one server at the same time.
let tags = 0;
const tagOf = (name) => `${name}-${process.pid}-${++tags}`;

const textOf = (result) => result.content?.find((block) => block.type === 'text')?.text;
