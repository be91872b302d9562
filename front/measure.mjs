/**
 * Times the console's pages in headless Chromium: `node measure.mjs URL TOPIC GROUP ROUNDS` prints a line of JSON for each sample.
 * `node measure.mjs URL PATH SECONDS` keeps one page open for so long. `bench/console` runs both; nothing is judged here.
 *
 * `paint` and `usable` are milliseconds since the navigation began, by the page's own clock: the first contentful paint, and the first
 * frame in which the page's heading and what it is about are there and nothing says that it is loading. `cpu` is what the page's thread
 * has worked by then, which other processes of the machine do not change.
 */

import { chromium } from "playwright-core";

const [url, ...rest] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const say = (sample) => console.log(JSON.stringify(sample));

async function open() {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  page.setDefaultTimeout(120_000);
  const protocol = await context.newCDPSession(page);
  await protocol.send("Performance.enable", { timeDomain: "threadTicks" });
  const cpu = async () => (await protocol.send("Performance.getMetrics")).metrics.find(({ name }) => name === "TaskDuration").value * 1000;
  return { page, cpu };
}

/** Waits until the page is usable; its times. */
async function usable(page, wanted) {
  const found = await page.waitForFunction((selector) => {
    const ready = document.querySelector("main h1") !== null && document.querySelector("main .loading") === null && document.querySelector(`main ${selector}`) !== null;
    return ready ? { usable: performance.now(), paint: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? null } : false;
  }, wanted);
  return found.jsonValue();
}

const topicRows = "tbody tr[data-row]";
const pages = (topic, group) => [
  ["health", "", "section, article, p"],
  ["topics", "/topics", topicRows],
  ["messages of a topic", `/topics/${topic}`, "form, .tools"],
  ["partitions", `/topics/${topic}/partitions`, "tbody tr"],
  ["settings", `/topics/${topic}/config`, "tbody tr"],
  ["groups of a topic", `/topics/${topic}/groups`, "table, .empty"],
  ["producers of a topic", `/topics/${topic}/producers`, "table, .empty"],
  ["produce", `/topics/${topic}/produce`, "form, textarea"],
  ["groups", "/groups", topicRows],
  ["a group", `/groups/${group}`, "tbody tr"],
  ["members", `/groups/${group}/members`, "table, .empty"],
  ["brokers", "/brokers", "tbody tr"],
  ["a broker", "/brokers/1", "tbody tr"],
  ["quorum", "/quorum", "tbody tr"],
  ["moves", "/moves", "table, .empty"],
  ["transactions", "/transactions", "table, .empty"],
  ["ACLs", "/acls", "table, .empty, .box"],
  ["users", "/users", "table, .empty, .box"],
  ["search", "/search?q=many-00", "a"],
];

async function visit(round, [name, path, wanted]) {
  const { page, cpu } = await open();
  try {
    await page.goto(new URL(`c/main${path}`, url).href, { waitUntil: "commit" });
    const times = await usable(page, wanted);
    const refused = await page.getByRole("alert").allInnerTexts();
    say({ kind: "page", round, name, ...times, cpu: await cpu(), refused: refused.join(" ").trim() });
  } finally {
    await page.context().close();
  }
}

/** Through all topics in 150 steps: the time of each frame, and what the page's thread worked in it. */
async function scroll(round) {
  const { page, cpu } = await open();
  await page.goto(new URL("c/main/topics", url).href);
  await usable(page, topicRows);
  await page.waitForTimeout(1000);
  const frames = [];
  const worked = [];
  let drawn = 0;
  for (let step = 0; step < 150; step += 1) {
    const before = await cpu();
    const found = await page.evaluate(async () => {
      const box = document.querySelector(".table-box.fill");
      const begin = performance.now();
      box.scrollTop += box.scrollHeight / 150;
      await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
      return { took: (performance.now() - begin) / 2, rows: document.querySelectorAll("tbody tr").length };
    });
    frames.push(found.took);
    drawn = Math.max(drawn, found.rows);
    worked.push((await cpu()) - before);
  }
  say({ kind: "scroll", round, frames, cpu: worked, rows: drawn });
  await page.context().close();
}

if (rest.length === 2) {
  const { page } = await open();
  await page.goto(new URL(rest[0], url).href);
  await usable(page, "*");
  say({ kind: "open" });
  await page.waitForTimeout(Number(rest[1]) * 1000);
} else {
  const [topic, group, rounds] = rest;
  for (let round = 0; round < Number(rounds); round += 1) {
    for (const each of pages(topic, group)) await visit(round, each);
    await scroll(round);
  }
}
await browser.close();
