// Turns a terminal session that `script` has recorded into an animated SVG:
//
//   node recording.mjs OUTPUT TIMING > recording.svg
//
// It knows what longtool prints: lines, a line that is redrawn (CR, erase), and colours. Waits are
// cut to a second and a half, and the last picture stays for six seconds, then it begins anew.
import { readFileSync } from 'node:fs';

const [output, timing] = process.argv.slice(2);
const columns = 100, rows = 30, width = 8.1, height = 18, longest = 1.5, stays = 6;
const colours = { 31: '#f87171', 32: '#4ade80', 33: '#facc15', 36: '#22d3ee' };

const lines = []; // each a list of versions {text, at}; text is what was printed, colours included
let at = 0.2;
const raw = readFileSync(output);
let position = raw.indexOf('\n') + 1; // script's own first line
let current = '';
for (const line of readFileSync(timing, 'utf8').trim().split('\n')) {
  const [wait, bytes] = line.split(' ').slice(-2).map(Number);
  at += Math.min(wait, longest);
  const text = raw.subarray(position, (position += bytes)).toString('utf8');
  for (const part of text.split(/(\r\n|\n|\r|\x1b\[K)/)) {
    if (part === '\n' || part === '\r\n') (write(), lines.push([]), (current = ''));
    else if (part === '\r' || part === '\x1b[K') (write(), (current = ''));
    else current += part;
  }
  write();
}
const total = at + stays;

// write notes what the last line looks like now. Two looks within a tenth of a second are one.
function write() {
  if (lines.length === 0) lines.push([]);
  const versions = lines.at(-1);
  const last = versions.at(-1);
  if (current === '' || last?.text === current) return;
  if (last && at - last.at < 0.1) last.text = current;
  else versions.push({ text: current, at });
}

const escape = (text) => text.replace(/[&<>]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;' })[c]);
const percent = (seconds) => `${((100 * seconds) / total).toFixed(2)}%`;

// spans gives each run of one colour an element.
function spans(text) {
  let style = '';
  return text.split(/(\x1b\[[0-9;]*m)/).map((part) => {
    const code = /^\x1b\[([0-9;]*)m$/.exec(part)?.[1];
    if (code === undefined) return part === '' ? '' : style ? `<tspan ${style}>${escape(part)}</tspan>` : escape(part);
    style = code === '1' ? 'font-weight="bold"' : code === '2' ? 'fill="#94a3b8"' : colours[code] ? `fill="${colours[code]}"` : '';
    return '';
  }).join('');
}

const css = [], body = [], scroll = [];
let id = 0;
while (lines.length > 0 && lines.at(-1).length === 0) lines.pop();
lines.pop(); // script's own last line
while (lines.length > 0 && lines.at(-1).length === 0) lines.pop();
lines.forEach((versions, row) => {
  versions.forEach(({ text, at }, i) => {
    const until = versions[i + 1]?.at ?? total;
    const name = `a${id++}`;
    const final = i === versions.length - 1;
    css.push(`@keyframes ${name}{0%{visibility:hidden}${percent(at)}{visibility:visible}${final ? '' : `${percent(until)}{visibility:hidden}`}}.${name}{animation-name:${name}${final ? '' : ';visibility:hidden'}}`);
    body.push(`<text class="${name}" y="${(row + 1) * height}" xml:space="preserve">${spans(text)}</text>`);
  });
  if (row >= rows && versions.length > 0) scroll.push([versions[0].at, row + 1 - rows]);
});
const steps = scroll.map(([when, by]) => `${percent(when)}{transform:translateY(${-by * height}px)}`).join('');
const last = Math.max(0, lines.length - rows) * height;

console.log(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${columns * width + 32} ${rows * height + 32}" font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="13">
<title>go run ./examples/longtool</title>
<style>
text,.scroll{animation-duration:${total.toFixed(1)}s;animation-iteration-count:infinite;animation-timing-function:step-end}
text{fill:#e2e8f0}
@keyframes scroll{0%{transform:none}${steps}}
.scroll{animation-name:scroll;transform:translateY(${-last}px)}
@media (prefers-reduced-motion:reduce){text,.scroll{animation:none}}
${css.join('\n')}
</style>
<rect width="100%" height="100%" rx="8" fill="#0f172a"/>
<svg x="16" y="12" width="${columns * width}" height="${rows * height + 8}" overflow="hidden"><g class="scroll">
${body.join('\n')}
</g></svg>
</svg>`);
