// Runs the checks one after another against one session and prints a verdict
// per check, one JSON object a line:
//
//   {"client":"@modelcontextprotocol/sdk","era":"handshake","check":"echo","ok":true,"ms":3}
//
// A verdict that is not ok has an "error". The exit status is 0 when all are ok.
import { bounded, checks } from './checks.mjs';
import { option, serverTarget } from './options.mjs';

// The transports ask politely for two seconds before they send SIGTERM. A busy machine may need longer once,
// and not each time.
const EXIT_MS = 1_900;
const EXITS = 20;

// run connects with open(target), which returns a connected session; target is
// what serverTarget returns.
export async function run({ client, era, open }) {
  const target = serverTarget();
  let failed = false;
  let session;

  const judge = async (check, body) => {
    const start = Date.now();
    const before = session?.errors.length ?? 0;
    const verdict = { client, era, check, ok: true };
    try {
      await body();
      const errors = session.errors.slice(before);
      if (errors.length > 0) throw new Error(`the client reported: ${errors.join('; ')}`);
    } catch (error) {
      verdict.ok = false;
      verdict.error = String(error?.message ?? error).slice(0, 2000);
      failed = true;
    }
    verdict.ms = Date.now() - start;
    console.log(JSON.stringify(verdict));
    return verdict.ok;
  };

  const connected = await judge('connect', async () => {
    session = await open(target);
  });
  if (connected) {
    for (const check of selected(session)) await judge(check.name, () => bounded(check.run(session)));
    await judge('close', async () => {
      let exit = await session.close();
      if (target.url) return;
      for (let tries = 1; ; tries++) {
        const { code, signal, ms } = exit;
        if (code !== 0 || signal !== null) throw new Error(`the server ended with status ${code}, signal ${signal}`);
        if (ms <= EXIT_MS) return;
        if (tries === EXITS) throw new Error(`the server took ${ms} ms to end`);
        exit = await (await open(target)).close();
      }
    });
    await judge('quiet', async () => {
      if (session.errors.length > 0) throw new Error(`the client reported: ${session.errors.join('; ')}`);
    });
  }
  if (failed && session?.stderr) console.error(`server's stderr ends with:\n${session.stderr}`);
  process.exit(failed ? 1 : 0);
}

// selected leaves out what an era, a revision or a transport does not have and what
// --only=NAME,NAME does not name.
function selected({ era, expectedRevision, transport }) {
  const only = option('only')?.split(',');
  const has = (list, item) => list?.includes(item) ?? true;
  return checks.filter((check) => has(check.eras, era) && has(check.transports, transport) && has(only, check.name) && expectedRevision >= (check.since ?? ''));
}
