// A session is what the checks see of a client: the same few verbs for both
// versions of the TypeScript SDK.
import { once } from 'node:events';

export const CAPABILITIES = { sampling: {}, elicitation: {} };
export const CLIENT_INFO = { name: 'heed-conformance', version: '1.0.0' };

export class Session {
  #client;
  #process; // the server's child process
  #counts = { sampling: 0, elicitation: 0 };
  #once = {}; // question -> function(signal) that answers the next one

  // Errors that the client has reported, in order. Only added to.
  errors = [];
  // The end of what the server wrote to stderr. For people, after a failure.
  stderr = '';

  constructor(client, expectedRevision) {
    this.#client = client;
    this.expectedRevision = expectedRevision;
    client.onerror = (error) => this.errors.push(String(error?.message ?? error));
  }

  async connect(transport) {
    transport.stderr?.on('data', (chunk) => {
      this.stderr = (this.stderr + chunk).slice(-8192);
    });
    await this.#client.connect(transport);
    // No version of the transport tells a child's exit status, so this reaches
    // for a private field. The packages are pinned.
    this.#process = transport._process;
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

  // close ends the session and returns how the server process has ended.
  async close() {
    const exit = once(this.#process, 'exit');
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
