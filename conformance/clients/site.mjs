// Walks through the documentation site as a reader does:
//
//   node site.mjs --chromium=PATH --url=http://127.0.0.1:PORT/ --shots=FOLDER
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { judge, open } from './browser.mjs';
import { option } from './options.mjs';

const home = option('url');
const widths = { desktop: 1280, tablet: 768, phone: 360 };
const { browser, context, strangers, complaints } = await open(new URL(home).origin);
const page = await context.newPage();
page.setDefaultTimeout(60_000);

const pages = new Map(); // URL -> the anchors that it has; written by the first check
const wanted = new Map(); // URL with an anchor -> who links there

const shoot = (name) => page.screenshot({ path: join(option('shots'), `${name}.png`) });
const at = (width) => page.setViewportSize({ width: widths[width], height: width === 'phone' ? 740 : 900 });
// visit goes to a page, or loads it again, and waits until it listens: what is pressed before is lost.
const visit = async (url) => {
  await (url ? page.goto(url) : page.reload());
  await page.waitForFunction(() => document.querySelector('#app')?.__vue_app__);
};
const sidebarLinks = () => page.locator('.VPSidebar a.link');

await judge('site', {
  // Every page can be clicked to, from the sidebar. At each width nothing of it is wider than the
  // window, and no image is missing.
  async navigation() {
    await at('desktop');
    await visit(home);
    await shoot('home');
    for (const folded of await page.locator('.VPSidebarItem.level-0.collapsed > .item').all()) await folded.click();
    const count = await sidebarLinks().count();
    assert.ok(count >= 20, `the sidebar has ${count} links`);
    for (let i = 0; i < count; i++) {
      const link = sidebarLinks().nth(i);
      const target = await link.evaluate((a) => a.href);
      await link.click();
      await page.waitForURL(target);
      await page.locator(`.VPSidebarItem.is-active > .item > a[href="${new URL(target).pathname}"]`).waitFor();
      await page.locator('.VPDoc h1').waitFor();
      assert.ok((await page.title()).endsWith('| Heed') || (await page.title()) === 'Heed', await page.title());
      await inspect(target);
      for (const width of Object.keys(widths)) await layout(target, width);
      await at('desktop');
    }
    assert.equal(pages.size, count, 'two entries lead to the same page');
    await shoot('last-page');
  },

  // The links between pages, those to a heading included.
  async links() {
    for (const [target, from] of wanted) {
      const [url, anchor] = target.split('#');
      const anchors = pages.get(url);
      assert.ok(anchors, `${from} links to ${url}, which the sidebar does not lead to`);
      if (anchor) assert.ok(anchors.has(decodeURIComponent(anchor)), `${from} links to ${target}: no such heading`);
    }
  },

  async navigation_bar() {
    await visit(home);
    const entries = page.locator('.VPNavBarMenu a.VPNavBarMenuLink');
    assert.ok((await entries.count()) >= 3);
    await entries.filter({ hasText: 'Cancellation' }).click();
    await page.waitForURL('**/cancellation/**');
    await page.locator('.VPNavBarMenu .active').filter({ hasText: 'Cancellation' }).waitFor();
  },

  async search() {
    await visit(home);
    await page.keyboard.press('/');
    const box = page.locator('.VPLocalSearchBox input');
    await box.fill('shield');
    await page.locator('.VPLocalSearchBox .result').first().waitFor();
    await shoot('search');
    await page.locator('.VPLocalSearchBox .result', { hasText: 'Shields' }).first().click();
    await page.waitForURL('**/cancellation/shields**');
    await box.waitFor({ state: 'detached' });
    await page.keyboard.press('/');
    await box.fill('xyzzyplugh');
    await page.locator('.VPLocalSearchBox .no-results').waitFor();
    await page.keyboard.press('Escape');
  },

  async dark_mode() {
    await at('desktop');
    await visit(new URL('quick-start', home).href);
    const colour = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await colour();
    await page.locator('.VPNavBarAppearance .VPSwitchAppearance').click();
    await page.locator('html.dark').waitFor({ state: 'attached' });
    assert.notEqual(await colour(), light);
    await visit();
    await page.locator('html.dark').waitFor({ state: 'attached' }); // it is remembered
    await shoot('dark');
    await page.locator('.VPNavBarAppearance .VPSwitchAppearance').click();
  },

  // On a phone the sidebar is behind a button.
  async menu_of_a_phone() {
    await at('phone');
    await visit(home);
    await page.locator('.VPLocalNav button.menu').click();
    await page.locator('.VPSidebar.open').waitFor();
    await shoot('phone-menu');
    await sidebarLinks().filter({ hasText: 'Checkpoints' }).click();
    await page.waitForURL('**/cancellation/checkpoints**');
    await page.locator('.VPSidebar.open').waitFor({ state: 'detached' });
    await shoot('phone');
  },

  // There is nothing that the reader's machine would fetch from elsewhere.
  async no_stranger() {
    assert.deepEqual(strangers, []);
    assert.deepEqual(complaints, []);
  },
});
await browser.close();

// inspect notes what the page that is open has and where it leads.
async function inspect(url) {
  const found = await page.evaluate(() => ({
    ids: [...document.querySelectorAll('[id]')].map(({ id }) => id),
    links: [...document.querySelectorAll('.vp-doc a[href]')].map((a) => a.href),
  }));
  const key = url.split('#')[0];
  pages.set(key, new Set(found.ids));
  for (const link of found.links) if (link.startsWith(home)) wanted.set(link, key);
}

// layout looks at the page that is open at a width.
async function layout(url, width) {
  await at(width);
  const { overflow, broken, culprits } = await page.evaluate(async () => {
    for (const image of document.images) image.loading = 'eager';
    await Promise.all([...document.images].map((image) => image.decode().catch(() => {})));
    const room = document.documentElement.clientWidth;
    return {
      overflow: document.documentElement.scrollWidth - room,
      broken: [...document.images].filter((image) => image.naturalWidth === 0).map(({ src }) => src),
      culprits: [...document.querySelectorAll('.vp-doc *')]
        .filter((e) => e.getBoundingClientRect().right > room + 1 && !e.closest('pre, table'))
        .slice(0, 3)
        .map((e) => e.outerHTML.slice(0, 120)),
    };
  });
  assert.deepEqual(broken, [], `${url}: images`);
  assert.ok(overflow <= 0, `${url} is ${overflow} px too wide at ${widths[width]}`);
  assert.deepEqual(culprits, [], `${url} at ${widths[width]}: outside of the window`);
  if (new URL(url).pathname === new URL('cancellation/', home).pathname) await shoot(`layout-${width}`);
}
