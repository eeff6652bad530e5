// A session is what the checks see of a client: the same few verbs for both
// versions of the TypeScript SDK.
import { Connections } from './connections.mjs';

export const CLIENT_INFO = { name: 'heed-conformance', version: '1.0.0' };

export class Session {
  #client;
  #transport;
  #process; // the server's child process, undefined over HTTP
  #counts = { sampling: 0, elicitation: 0 };
  #once = {}; // question -> function(signal) that answers the next one

  // Errors that the client has reported, in order. Only forgive takes any away.
  errors = [];
  // The end of what the server wrote to stderr. For people, after a failure.
  stderr = '';

  constructor(client, { era, revision }) {
    this.#client = client;
    this.era = era;
    this.expectedRevision = revision;
    client.onerror = (error) => this.errors.push(String(error?.message ?? error));
  }

  // connect opens the session over the transport that a target calls for; Stdio and
  // StreamableHTTP are the client's own classes.
  async connect(target, { Stdio, StreamableHTTP }) {
    const transport = target.url ? this.#overHTTP(target.url, StreamableHTTP) : new Stdio({ ...target, stderr: 'pipe' });
    this.transport = target.url ? 'http' : 'stdio';
    this.#transport = transport;
    this.onTransport?.(transport);
    transport.stderr?.on('data', (chunk) => {
      this.stderr = (this.stderr + chunk).slice(-8192);
    });
    await this.#client.connect(transport);
    // No version of the transport tells a child's exit status, so this reaches
    // for a private field. The packages are pinned.
    this.#process = transport._process;
  }

  #overHTTP(url, StreamableHTTP) {
    this.connections = new Connections();
    globalThis.fetch = this.connections.fetch; // the oldest version is told of no other
    return new StreamableHTTP(new URL(url), {
      fetch: this.connections.fetch,
      reconnectionOptions: { initialReconnectionDelay: 50, maxReconnectionDelay: 1000, reconnectionDelayGrowFactor: 1.5, maxRetries: 5 },
    });
  }

  // cancelledBy is what the server can know of a cancel: the stateless era has
  // no message for it over HTTP, the client just closes the response.
  cancelledBy(reason) {
    return this.transport === 'http' && this.era === 'stateless'
      ? { origin: 'disconnect', reason: 'the client closed the response' }
      : { origin: 'peer', reason };
  }

  // forgive takes back the errors that a check has provoked itself.
  forgive(pattern) {
    this.errors = this.errors.filter((error) => !pattern.test(error));
  }

  revision() {
    return this.#client.getNegotiatedProtocolVersion?.() ?? this.negotiated;
  }

  serverName() {
    return this.#client.getServerVersion()?.name;
  }

  async listTools() {
    return (await this.#client.listTools()).tools;
  }

  // asked says how many questions of a kind the server has put to the client.
  asked(question) {
    return this.#counts[question];
  }

  // answerOnce replaces the usual answer to the next question of a kind.
  answerOnce(question, answer) {
    this.#once[question] = answer;
  }

  // answer is the handler of both questions.
  answer(question, params, signal) {
    this.#counts[question]++;
    const answer = this.#once[question];
    if (answer) {
      delete this.#once[question];
      return answer(signal);
    }
    if (question === 'sampling') {
      return { role: 'assistant', model: 'fixed', stopReason: 'endTurn', content: { type: 'text', text: 'forty-two' } };
    }
    return { action: 'accept', content: fill(params.requestedSchema) };
  }

  // close ends the session and returns how the server process has ended, if it is
  // the session's own.
  async close() {
    if (!this.#process) {
      if (this.era === 'handshake') await this.#transport.terminateSession();
      await this.#client.close();
      return undefined;
    }
    const exit = new Promise((resolve) => this.#process.once('exit', (...status) => resolve(status))); // an 'error' may come first
    const start = Date.now();
    await this.#client.close();
    const [code, signal] = await exit;
    return { code, signal, ms: Date.now() - start };
  }
}

// fill makes up a value for each property of an elicitation's schema.
function fill(schema) {
  const content = {};
  for (const [name, property] of Object.entries(schema?.properties ?? {})) {
    content[name] = property.default ?? property.enum?.[0] ?? property.oneOf?.[0]?.const ?? madeUp(property);
  }
  return content;
}

function madeUp(property) {
  switch (property.type) {
    case 'boolean':
      return true;
    case 'integer':
    case 'number':
      return property.minimum ?? 1;
    case 'array':
      return [];
    default:
      return 'heed';
  }
}
