// Streamable HTTP with sessions, as the SDK's own examples serve it.
import { createMcpExpressApp } from '@modelcontextprotocol/sdk/server/express.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { isInitializeRequest } from '@modelcontextprotocol/sdk/types.js';
import { randomUUID } from 'node:crypto';

export async function serveHTTP(newServer, addr) {
  const transports = new Map(); // by session
  const app = createMcpExpressApp();
  const refuse = (res, status, message) => res.status(status).json({ jsonrpc: '2.0', error: { code: -32000, message }, id: null });

  app.all('/mcp', async (req, res) => {
    const id = req.headers['mcp-session-id'];
    const known = id && transports.get(id);
    if (known) return known.handleRequest(req, res, req.body);
    if (id) return refuse(res, 404, 'Session not found');
    if (!isInitializeRequest(req.body)) return refuse(res, 400, 'Bad Request: No valid session ID provided');
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      onsessioninitialized: sessionId => { transports.set(sessionId, transport); },
    });
    transport.onclose = () => transports.delete(transport.sessionId);
    await newServer().connect(transport);
    await transport.handleRequest(req, res, req.body);
  });

  const [host, port] = addr.split(':');
  const web = app.listen(Number(port), host);
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.on(signal, async () => {
      web.close();
      for (const transport of transports.values()) await transport.close();
      process.exit(0);
    });
  }
}
