// The TypeScript SDK, version 1: handshake era.
//
//   --package=@modelcontextprotocol/sdk  its newest release (the default)
//   --package=sdk-oldest                 the first with streamable HTTP
import { option } from './options.mjs';
import { run } from './runner.mjs';
import { CLIENT_INFO, Session } from './session.mjs';

const sdk = option('package') ?? '@modelcontextprotocol/sdk';
const { Client } = await import(`${sdk}/client/index.js`);
const { StdioClientTransport } = await import(`${sdk}/client/stdio.js`);
const { StreamableHTTPClientTransport } = await import(`${sdk}/client/streamableHttp.js`);
const { CreateMessageRequestSchema, ElicitRequestSchema, LATEST_PROTOCOL_VERSION } = await import(`${sdk}/types.js`);

class SessionV1 extends Session {
  #client;

  constructor(client) {
    super(client, { era: 'handshake', revision: LATEST_PROTOCOL_VERSION });
    this.#client = client;
    client.setRequestHandler(CreateMessageRequestSchema, (request, extra) =>
      this.answer('sampling', request.params, extra.signal),
    );
    if (ElicitRequestSchema) {
      client.setRequestHandler(ElicitRequestSchema, (request, extra) =>
        this.answer('elicitation', request.params, extra.signal),
      );
    }
  }

  // Version 1 does not say which revision was agreed on, so this reads along.
  onTransport(transport) {
    let receive;
    Object.defineProperty(transport, 'onmessage', {
      get: () => receive,
      set: (listener) => {
        receive = (message, extra) => {
          this.negotiated ??= message.result?.protocolVersion;
          listener(message, extra);
        };
      },
    });
  }

  call(name, args, { signal, onprogress } = {}) {
    return this.#client.callTool({ name, arguments: args }, undefined, { signal, onprogress });
  }
}

await run({
  client: sdk,
  era: 'handshake',
  open: async (target) => {
    const session = new SessionV1(new Client(CLIENT_INFO, { capabilities: ElicitRequestSchema ? { sampling: {}, elicitation: {} } : { sampling: {} } }));
    await session.connect(target, { Stdio: StdioClientTransport, StreamableHTTP: StreamableHTTPClientTransport });
    return session;
  },
});
