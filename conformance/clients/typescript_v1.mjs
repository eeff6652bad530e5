// The TypeScript SDK, version 1 (@modelcontextprotocol/sdk): handshake era.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CreateMessageRequestSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { run } from './runner.mjs';
import { CAPABILITIES, CLIENT_INFO, Session } from './session.mjs';

class SessionV1 extends Session {
  #client;

  constructor(client) {
    super(client, { era: 'handshake', revision: '2025-11-25' });
    this.#client = client;
    client.setRequestHandler(CreateMessageRequestSchema, (request, extra) =>
      this.answer('sampling', request.params, extra.signal),
    );
    client.setRequestHandler(ElicitRequestSchema, (request, extra) =>
      this.answer('elicitation', request.params, extra.signal),
    );
  }

  // Version 1 tells its transport which revision was agreed on, and nobody else.
  onTransport(transport) {
    const tell = transport.setProtocolVersion?.bind(transport);
    transport.setProtocolVersion = (revision) => {
      this.negotiated = revision;
      tell?.(revision);
    };
  }

  call(name, args, { signal, onprogress } = {}) {
    return this.#client.callTool({ name, arguments: args }, undefined, { signal, onprogress });
  }
}

await run({
  client: 'typescript-v1',
  era: 'handshake',
  open: async (target) => {
    const session = new SessionV1(new Client(CLIENT_INFO, { capabilities: CAPABILITIES }));
    await session.connect(target, { Stdio: StdioClientTransport, StreamableHTTP: StreamableHTTPClientTransport });
    return session;
  },
});
