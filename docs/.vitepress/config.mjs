// The site: the pages of docs/ as they are, found by sidebar.mjs. Nothing is listed by hand,
// and nothing comes from elsewhere: fonts, search index and scripts are part of the output.
import { posix } from 'node:path';
import { defineConfig } from 'vitepress';
import { readPages, sidebar } from './sidebar.mjs';
import { style } from './style.mjs';

// Where links go that leave docs/: to files of the repository.
const repository = 'https://github.com/heedmcp/heed/blob/main/';

const groups = sidebar(readPages(new URL('..', import.meta.url)));

const base = process.env.SITE_BASE || '/';

export default defineConfig({
  title: 'Heed',
  description: 'A Go SDK for MCP servers whose tools stop when they are asked to.',
  lang: 'en',
  base,
  head: [
    ['link', { rel: 'icon', type: 'image/svg+xml', href: `${base}favicon.svg` }],
    ['style', {}, style],
  ],
  outDir: '.site',
  cacheDir: 'node_modules/.vitepress',
  srcExclude: ['node_modules/**', '.site/**'],
  rewrites: { 'decisions/README.md': 'decisions/index.md' },
  lastUpdated: false,
  markdown: { config: (md) => md.core.ruler.push('links_of_the_repository', rewriteLinks) },
  themeConfig: {
    sidebar: groups,
    nav: groups.map(({ text, items }) => ({ text, link: items[0].link, activeMatch: activeMatch(items) })),
    outline: [2, 3],
    search: { provider: 'local' },
  },
});

// activeMatch is when a group's entry in the navigation is the current one: on one of its pages.
function activeMatch(items) {
  return `^(?:${items.map(({ link }) => link).join('|')})$`;
}

// rewriteLinks makes the links of a page fit the site: a folder's README is its index, and what lies
// outside of docs/ is in the repository.
function rewriteLinks(state) {
  const page = state.env.relativePath ?? '';
  for (const token of state.tokens.flatMap(({ children }) => children ?? [])) {
    const href = token.type === 'link_open' && token.attrGet('href');
    if (!href || /^(?:[a-z]+:|#|\/)/.test(href)) continue;
    const [path, anchor] = href.split('#');
    const target = posix.normalize(posix.join('docs', posix.dirname(page), path));
    if (!target.startsWith('docs/')) token.attrSet('href', repository + target);
    else if (/(?:^|\/)README\.md$/.test(path)) token.attrSet('href', path.replace(/README\.md$/, 'index.md') + (anchor ? `#${anchor}` : ''));
  }
}
