// Prints the JSON schemas of the protocol's revisions that the official conformance suite
// ships, as one object by revision.
import { readFileSync } from 'node:fs';

const suite = readFileSync(new URL('../node_modules/@modelcontextprotocol/conformance/dist/index.js', import.meta.url), 'utf8');

// The suite keeps a table: {"2025-03-26":a,"2025-06-18":b,"2025-11-25":c,[newest]:d}.
const table = suite.match(/=\{"2025-03-26":([\w$]+),"2025-06-18":([\w$]+),"2025-11-25":([\w$]+),\[[\w$]+\]:([\w$]+)\}/);
if (!table) throw new Error('the suite has no table of schemas');

// literal evaluates the object literal that is assigned to a name.
function literal(name) {
  const start = suite.indexOf(`${name}={$schema:`) + name.length + 1;
  if (start <= name.length) throw new Error(`the suite has no schema ${name}`);
  let depth = 0;
  let quote = '';
  for (let i = start; i < suite.length; i++) {
    const c = suite[i];
    if (quote) {
      if (c === '\\') i++;
      else if (c === quote) quote = '';
    } else if (c === '`' || c === '"' || c === "'") quote = c;
    else if (c === '{') depth++;
    else if (c === '}' && --depth === 0) return new Function(`return ${suite.slice(start, i + 1)}`)();
  }
  throw new Error(`the schema ${name} does not end`);
}

const revisions = ['2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'];
process.stdout.write(JSON.stringify(Object.fromEntries(revisions.map((revision, i) => [revision, literal(table[i + 1])]))));
