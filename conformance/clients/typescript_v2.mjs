// The TypeScript SDK, version 2.
//
//   --package=@modelcontextprotocol/client  its newest release (the default)
//   --package=client-oldest                 its first
//
//   --mode=legacy  handshake era (the default)
//   --mode=pin     stateless era, revision 2026-07-28 and nothing else
//   --mode=auto    what the client settles on by itself: the stateless era
import { option } from './options.mjs';
import { run } from './runner.mjs';
import { CLIENT_INFO, Session } from './session.mjs';

const sdk = option('package') ?? '@modelcontextprotocol/client';
const { Client, StreamableHTTPClientTransport } = await import(sdk);
const { StdioClientTransport } = await import(`${sdk}/stdio`);

const MODES = {
  legacy: { era: 'handshake', revision: '2025-11-25', negotiation: 'legacy' },
  pin: { era: 'stateless', revision: '2026-07-28', negotiation: { pin: '2026-07-28' } },
  auto: { era: 'stateless', revision: '2026-07-28', negotiation: 'auto' },
};

class SessionV2 extends Session {
  #client;

  constructor(client, mode) {
    super(client, mode);
    this.#client = client;
    client.setRequestHandler('sampling/createMessage', (request, ctx) =>
      this.answer('sampling', request.params, ctx.mcpReq.signal),
    );
    client.setRequestHandler('elicitation/create', (request, ctx) =>
      this.answer('elicitation', request.params, ctx.mcpReq.signal),
    );
  }

  call(name, args, { signal, onprogress } = {}) {
    return this.#client.callTool({ name, arguments: args }, { signal, onprogress });
  }
}

const name = option('mode') ?? 'legacy';
const mode = MODES[name];
if (!mode) {
  console.error(`unknown mode ${JSON.stringify(name)}: one of ${Object.keys(MODES).join(', ')}`);
  process.exit(2);
}

await run({
  client: `${sdk}-${name}`,
  era: mode.era,
  open: async (target) => {
    const options = { capabilities: { sampling: {}, elicitation: {} }, versionNegotiation: { mode: mode.negotiation } };
    const session = new SessionV2(new Client(CLIENT_INFO, options), mode);
    await session.connect(target, { Stdio: StdioClientTransport, StreamableHTTP: StreamableHTTPClientTransport });
    return session;
  },
});
