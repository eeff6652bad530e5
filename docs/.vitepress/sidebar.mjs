// The sidebar, from the pages: a group for each folder, its entries by the order in their front
// matter. A folder is called what the heading of its first page says. What was measured and tried is a
// group of its own after the guides: the pages of the first folder whose order is 70 and more.
import { readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

// readPages returns the path, title, heading and order of every page below a folder.
export function readPages(folder) {
  const root = fileURLToPath(folder);
  return readdirSync(root, { recursive: true })
    .map((path) => path.replaceAll('\\', '/'))
    .filter((path) => path.endsWith('.md') && !/(?:^|\/)(?:node_modules|\.site|\.vitepress)\//.test(path))
    .map((path) => ({ path, ...describe(readFileSync(root + path, 'utf8')) }));
}

// describe reads the two fields of the front matter that are in use, and the first heading.
export function describe(text) {
  const [, front = ''] = /^---\n([\s\S]*?\n)---\n/.exec(text) ?? [];
  const [, heading] = /^# (.+)$/m.exec(text) ?? [];
  const [, title = heading] = /^title: (.+)$/m.exec(front) ?? [];
  const [, order] = /^order: (\d+)$/m.exec(front) ?? [];
  if (!title) throw new Error('a page has neither a title nor a heading');
  return { title, heading: heading ?? title, order: order === undefined ? Infinity : Number(order) };
}

// sidebar groups pages as the theme wants them. Folders whose pages have no order come last, and folded.
export function sidebar(pages) {
  const folders = groupBy(pages, folderOf);
  return [...folders]
    .map(([folder, members]) => group(folder, members.toSorted(byOrder)))
    .sort((a, b) => a.rank - b.rank || a.text.localeCompare(b.text))
    .map(({ rank, ...rest }) => rest);
}

function group(folder, members) {
  const ordered = Number.isFinite(members[0].order);
  return {
    rank: folder === '' ? 0 : folder === EVIDENCE ? 2 : ordered ? 1 : 3,
    text: folder === '' ? 'Heed' : folder === EVIDENCE ? folder : members[0].heading,
    collapsed: ordered ? undefined : true,
    items: members.map(({ path, title }) => ({ text: title, link: linkOf(path) })),
  };
}

const EVIDENCE = 'Evidence'; // not a folder's name: those are in lower case
const folderOf = ({ path, order }) => path.split('/').slice(0, -1).join('/') || (Number.isFinite(order) && order >= 70 ? EVIDENCE : '');
const isIndex = ({ path }) => /(?:^|\/)(?:index|README)\.md$/.test(path);
const byOrder = (a, b) => compare(a.order, b.order) || isIndex(b) - isIndex(a) || a.path.localeCompare(b.path);
const compare = (a, b) => (a === b ? 0 : a - b); // Infinity too
const linkOf = (path) => `/${path.replace(/(?:index|README)\.md$/, '').replace(/\.md$/, '')}`;

function groupBy(list, key) {
  const groups = new Map();
  for (const item of list) groups.set(key(item), [...(groups.get(key(item)) ?? []), item]);
  return groups;
}
