// The HTTP connections of a client, seen from outside of it: how many requests of
// a kind it has made, and a way to lose the one that a tool's call is answered on.
const network = globalThis.fetch;

export class Connections {
  #calls = new Set(); // AbortControllers of the tool calls whose responses are open
  requests = []; // method and what it resumes, of every request; only added to

  // fetch is the client's fetch.
  fetch = async (url, init = {}) => {
    const headers = new Headers(init.headers);
    this.requests.push({ method: init.method ?? 'GET', resumes: headers.get('last-event-id') });
    if (init.method !== 'POST' || !String(init.body).includes('"tools/call"')) return network(url, init);
    const loss = new AbortController();
    this.#calls.add(loss);
    const signal = init.signal ? AbortSignal.any([init.signal, loss.signal]) : loss.signal;
    return network(url, { ...init, signal });
  };

  // lose breaks the connections of all tool calls, as a network does.
  lose() {
    for (const loss of this.#calls) loss.abort(new Error('the connection was lost'));
    this.#calls.clear();
  }

  // resumed says how often the client has come back for the rest of a stream.
  resumed() {
    return this.requests.filter(({ method, resumes }) => method === 'GET' && resumes !== null).length;
  }
}
