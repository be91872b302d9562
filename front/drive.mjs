/**
 * Walks through every page of a running console in headless Chromium: `node drive.mjs URL CLUSTER [--shots DIR]`.
 *
 * The cluster is one that `seed.py` beside this file has filled. Pages are found by role and name. The walk fails on an error or a
 * CSP violation in the browser's console, on a serious or critical finding of axe-core, and on a page that does not say what it should.
 */

import { readFile, mkdir } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [url, cluster, ...rest] = process.argv.slice(2);
if (url === undefined || cluster === undefined) {
  console.error("usage: node drive.mjs URL CLUSTER [--shots DIR]");
  process.exit(2);
}
const shots = rest[0] === "--shots" ? rest[1] : null;
if (shots) await mkdir(shots, { recursive: true });
const AXE = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const failures = [];

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

function check(what, holds, detail = "") {
  if (holds) return void console.log(`ok   ${what}`);
  failures.push(what);
  console.log(`FAIL ${what}${detail === "" ? "" : `: ${detail}`}`);
}

async function open(options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  await page.addInitScript(() => {
    globalThis.violations = [];
    addEventListener("securitypolicyviolation", (event) => globalThis.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
  });
  page.errors = [];
  page.on("pageerror", (error) => page.errors.push(`${error.message} ${error.stack?.split("\n")[1] ?? ""}`));
  page.on("console", (message) => {
    // A refused request is a page's business; what it does with it is checked there.
    if (message.type() === "error" && !/Failed to load resource/.test(message.text())) page.errors.push(message.text());
  });
  return page;
}

const settled = async (page) => {
  await page.waitForFunction(() => document.querySelector("main h1, dialog[open]") !== null && document.querySelector("main .loading") === null);
};

async function go(page, path) {
  await page.goto(new URL(path, url).href);
  await settled(page);
}

async function judge(page, name) {
  if (shots) await page.screenshot({ path: join(shots, `${name}.png`) });
  await page.evaluate(AXE);
  const found = await page.evaluate(async () => {
    const result = await globalThis.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] });
    return result.violations.map(({ id, impact, nodes }) => ({ id, impact, at: nodes.slice(0, 3).map((node) => node.html.slice(0, 160)) }));
  });
  const serious = found.filter(({ impact }) => impact === "serious" || impact === "critical");
  for (const each of found.filter((one) => !serious.includes(one))) console.log(`note ${name}: ${each.impact} ${each.id} ${each.at.join(" | ")}`);
  check(`${name}: axe-core finds nothing serious`, serious.length === 0, serious.map((each) => `${each.id} ${each.at.join(" | ")}`).join("; "));
  const violations = await page.evaluate(() => globalThis.violations);
  check(`${name}: no error, no CSP violation`, page.errors.length + violations.length === 0, [...page.errors.splice(0), ...violations].join("; "));
}

const PAGES = [
  ["health", "", "Health"],
  ["topics", "/topics", "Topics"],
  ["messages", "/topics/orders", "orders"],
  ["partitions", "/topics/orders/partitions", "orders"],
  ["config", "/topics/orders/config", "orders"],
  ["topic-groups", "/topics/orders/groups", "orders"],
  ["topic-producers", "/topics/orders/producers", "orders"],
  ["produce", "/topics/orders/produce", "orders"],
  ["record", "/topics/orders/records/0/0", "Offset 0"],
  ["groups", "/groups", "Groups"],
  ["group", "/groups/billing", "billing"],
  ["members", "/groups/billing/members", "billing"],
  ["why", "/groups/billing/why?seconds=1", "billing"],
  ["transactions", "/transactions", "Transactions"],
  ["brokers", "/brokers", "Brokers"],
  ["broker", "/brokers/1", "Broker 1"],
  ["quorum", "/quorum", "Quorum"],
  ["moves", "/moves", "Moves"],
  ["acls", "/acls", "ACLs"],
  ["users", "/users", "Users and quotas"],
  ["search", "/search?q=ord", "Search"],
];

async function walk(name, options) {
  const page = await open(options);
  for (const [id, path, heading] of PAGES) {
    await go(page, `c/${cluster}${path}`);
    const title = await page.getByRole("heading", { level: 1 }).innerText();
    check(`${name} ${id}: its heading`, title.includes(heading), title);
    const refused = await page.getByRole("alert").allInnerTexts();
    check(`${name} ${id}: nothing is refused`, refused.join("").trim() === "", refused.join(" ").slice(0, 300));
    await judge(page, `${name}-${id}`);
  }
  await page.context().close();
}

async function keyboard() {
  const page = await open({ viewport: { width: 1280, height: 800 } });
  await go(page, `c/${cluster}/topics`);
  await page.keyboard.press("/");
  await page.keyboard.type("orders");
  await page.waitForFunction(() => location.search.includes("q=orders"));
  check("/ focuses the filter, which goes into the address", true);
  await page.keyboard.press("Escape");
  await page.keyboard.press("Escape");
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => /topics\/.+/.test(location.pathname));
  check("j and Enter open a topic", true);
  await page.goBack();
  await settled(page);
  check("back works", new URL(page.url()).pathname.endsWith("/topics"));
  await page.keyboard.press("Control+k");
  const box = page.getByRole("combobox");
  await box.fill("bill");
  const option = page.getByRole("option").filter({ hasText: "billing" });
  await option.waitFor();
  await judge(page, "palette");
  await page.keyboard.press("Escape");
  check("Escape closes the palette", (await box.count()) === 0);
  await page.keyboard.press("g");
  await page.keyboard.press("b");
  await page.getByRole("heading", { name: "Brokers" }).waitFor();
  check("g b opens the brokers", true);
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keys" }).waitFor();
  await judge(page, "keys");
  await page.context().close();
}

async function records() {
  const page = await open({ viewport: { width: 1440, height: 900 } });
  await go(page, `c/${cluster}/topics/orders`);
  await page.keyboard.press("j");
  const panel = page.getByRole("complementary");
  await panel.waitFor();
  check("j opens a record beside the list", (await panel.innerText()).includes("offset"));
  check("64-bit integers are exact", (await panel.innerText()).includes("9007199254740993"), await panel.innerText());
  await judge(page, "record-panel");
  await page.keyboard.press("Escape");
  check("Escape closes the record", (await panel.count()) === 0);

  const filter = page.getByRole("textbox", { name: "Filter of records" });
  await filter.fill("value.amount > ");
  await page.locator("#filter-problem code").waitFor();
  check("a wrong filter says where", true);
  await judge(page, "filter-problem");
  await filter.fill("value.amount >= 95");
  await filter.press("Enter");
  await page.waitForFunction(() => location.search.includes("filter=") && document.querySelector(".status .badge.busy") === null);
  await page.locator("tbody tr[data-row]").first().waitFor();
  const rows = await page.locator("tbody tr[data-row]").count();
  check("a filter finds its records", rows === 5, String(rows));

  await go(page, `c/${cluster}/topics/hostile?mode=oldest`);
  await page.locator("tbody tr[data-row]").first().waitFor();
  check("HTML in records is text", (await page.locator("main img, main script, main b").count()) === 0);
  await page.keyboard.press("j");
  await panel.waitFor();
  await judge(page, "hostile");

  await go(page, `c/${cluster}/topics/big`);
  await page.keyboard.press("j");
  await page.getByRole("button", { name: "Load whole" }).click();
  await page.getByText(/part 1 of \d+/).waitFor();
  check("a value of 1 MB is cut, then loaded in parts", true);
  await judge(page, "big");

  await page.goto(new URL(`c/${cluster}/topics/orders?mode=tail`, url).href);
  await page.getByText("live", { exact: true }).waitFor();
  const writer = await open({ viewport: { width: 1280, height: 900 } });
  await go(writer, `c/${cluster}/topics/orders/produce`);
  await writer.getByLabel("Value", { exact: true }).fill('{"id": 9223372036854775807, "from": "the console"}');
  await judge(writer, "produce-form");
  await writer.getByRole("button", { name: "Preview" }).click();
  await writer.getByRole("button", { name: "Write the record" }).click();
  await writer.getByText(/Written to/).waitFor();
  await judge(writer, "produced");
  await page.getByText("9223372036854775807").first().waitFor();
  check("a live tail shows what is produced", true);
  await writer.context().close();
  await page.context().close();
}

async function changes() {
  const page = await open({ viewport: { width: 1280, height: 900 } });
  const name = `made-${Date.now()}`;
  await go(page, `c/${cluster}/topics`);
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByRole("textbox", { name: "Name", exact: true }).fill(name);
  await page.getByRole("spinbutton", { name: /^Partitions/ }).fill("2");
  await page.getByRole("button", { name: "Preview" }).click();
  await page.getByRole("region", { name: "Preview" }).waitFor();
  await judge(page, "create-preview");
  await page.getByRole("button", { name: "Create the topic" }).click();
  await page.getByRole("region", { name: "What was done" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("link", { name }).first().click();
  await page.getByRole("heading", { name: new RegExp(name) }).waitFor();
  check("a topic is created after its preview", true);

  await page.getByRole("link", { name: "Configuration" }).click();
  await page.getByRole("button", { name: "retention.ms", exact: true }).click();
  await page.getByLabel(/^Value/).fill("3600000");
  await page.getByRole("button", { name: "Preview" }).click();
  await page.getByRole("region", { name: "Preview" }).waitFor();
  await judge(page, "config-preview");
  await page.getByRole("button", { name: "Set it" }).click();
  await page.getByRole("region", { name: "What was done" }).waitFor();
  await page.keyboard.press("Escape");
  await page.locator("tr.differs").filter({ hasText: "retention.ms" }).waitFor();
  check("a setting is changed after its preview, and shown as differing", true);

  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByRole("region", { name: "Preview" }).waitFor();
  const run = page.getByRole("button", { name: "Delete the topic" });
  check("a topic is not deleted before its name is typed", await run.isDisabled());
  await judge(page, "delete-preview");
  await page.getByLabel(/To confirm/).fill(name);
  await run.click();
  await page.getByRole("region", { name: "What was done" }).waitFor();
  check("a topic is deleted after its name is typed", true);

  await go(page, `c/${cluster}/groups/idle`);
  await page.getByRole("button", { name: "Move offsets" }).click();
  await page.getByRole("button", { name: "Preview" }).click();
  await page.getByRole("region", { name: "Preview" }).waitFor();
  await judge(page, "reset-preview");
  await page.context().close();
}

async function scrolling() {
  const page = await open({ viewport: { width: 1440, height: 900 } });
  await go(page, `c/${cluster}/topics`);
  const found = await page.evaluate(async () => {
    const box = document.querySelector(".table-box.fill");
    const times = [];
    const rows = [];
    let last = performance.now();
    for (let step = 0; step < 120; step += 1) {
      box.scrollTop += Math.max(60, box.scrollHeight / 120);
      await new Promise((done) => requestAnimationFrame(done));
      const now = performance.now();
      times.push(now - last);
      rows.push(document.querySelectorAll("tbody tr").length);
      last = now;
    }
    return { longest: Math.max(...times), rows: Math.max(...rows), height: box.scrollHeight };
  });
  console.log(`note scrolling a table of ${found.height} px: longest frame ${found.longest.toFixed(0)} ms, ${found.rows} rows in the document`);
  check("a long table keeps at most 150 rows in the document", found.rows <= 150, String(found.rows));
  await page.context().close();
}

const walks = {
  light: () => walk("light", { viewport: { width: 1440, height: 900 }, colorScheme: "light" }),
  dark: () => walk("dark", { viewport: { width: 1440, height: 900 }, colorScheme: "dark" }),
  phone: () => walk("phone", { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true, colorScheme: "light" }),
  keyboard,
  records,
  changes,
  scrolling,
};
for (const [name, run] of Object.entries(walks)) {
  if (process.env.ONLY && !process.env.ONLY.split(",").includes(name)) continue;
  try {
    await run();
  } catch (error) {
    check(name, false, error.message.split("\n").slice(0, 6).join(" / "));
  }
}
await browser.close();
console.log(failures.length === 0 ? "all passed" : `${failures.length} failed`);
process.exit(failures.length === 0 ? 0 : 1);
