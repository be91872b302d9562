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
  ["streams-members", "/groups/counts/members", "counts"],
  ["dead-letters", "/groups/workers/dead-letters", "workers"],
  ["topology", "/groups/counts/topology", "counts", "Subtopology 0"],
  ["why", "/groups/idle/why?seconds=1", "idle", "Primary cause"],
  ["transactions", "/transactions", "Transactions"],
  ["transaction", "/transactions/payments", "payments"],
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
  for (const [id, path, heading, article] of PAGES) {
    await go(page, `c/${cluster}${path}`);
    if (article) await page.getByRole("article", { name: article }).waitFor();
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
  await page.waitForFunction(() => document.activeElement?.closest("tbody") !== null); // the row is drawn in the next frame
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
  await go(page, `c/${cluster}/topics/orders?mode=oldest`);
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
  await page.getByText(/5\D?records, /).first().waitFor();
  const rows = await page.locator("tbody tr[data-row]").count();
  check("a filter finds its records, and stands in the address", rows === 5 && page.url().includes("filter="), String(rows));

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
  await page.getByRole("button", { name: "Stop" }).click();
  await page.waitForTimeout(500);
  check("Stop ends a live tail, and nothing begins again", (await page.locator(".status").innerText()).includes("paused"));
  await page.context().close();
}

async function streams() {
  const page = await open({ viewport: { width: 1600, height: 900 } });
  await go(page, `c/${cluster}/groups/counts/members`);
  const table = page.getByRole("region", { name: "Members" });
  const titles = await page.getByRole("columnheader").allInnerTexts();
  check("members of a streams group have three kinds of tasks, a process and a topology", ["Active tasks", "Standby tasks", "Warm-up tasks", "Process", "Topology"].every((title) => titles.some((found) => found.includes(title))), titles.join());
  await table.getByText("process-1").first().waitFor();
  const cells = (await page.locator("tbody tr[data-row]").allInnerTexts()).join("\n");
  check("each task has a standby copy", [0, 1, 2].every((part) => (cells.match(new RegExp(`0: [0-2, ]*${part}`, "g")) ?? []).length === 2), cells);
  await page.context().close();
}

async function letters() {
  const page = await open({ viewport: { width: 1600, height: 900 } });
  await go(page, `c/${cluster}/groups/workers`);
  await page.getByRole("link", { name: "Dead letters" }).click();
  await page.getByRole("link", { name: "orders:0:4" }).waitFor();
  const rows = await page.locator("tbody tr[data-row]").allInnerTexts();
  check("a share group's dead letters have reason, value and whether they were replayed", rows.length === 2 && rows.every((row) => /rejected by client[^]*amount/.test(row) && /\bno\b/.test(row)), rows.join(" | "));
  check("the command of a replay is shown", (await page.getByText(/dead-letters replay given-up --group workers/).count()) > 0);
  await page.getByRole("link", { name: "orders:0:4" }).click();
  await page.getByRole("heading", { name: "Offset 4" }).waitFor();
  check("a letter leads to its record", page.url().includes("/topics/orders/records/0/4"));
  await page.context().close();
}

async function tools() {
  const page = await open({ viewport: { width: 1440, height: 900 }, acceptDownloads: true });
  const rows = page.locator("tbody tr[data-row]");
  const shown = (count) => page.getByText(new RegExp(`^${count}\\D?records`)).first().waitFor();
  await go(page, `c/${cluster}/topics/orders?mode=oldest&limit=20&partition=1`);
  await shown(20);
  await page.getByRole("button", { name: "Go on" }).click();
  await shown(33);
  check("a search goes on where it ended", true);

  const download = async (name) => {
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name, exact: true }).click()]);
    return readFile(await file.path(), "utf8");
  };
  const csv = (await download("CSV")).trim().split("\r\n");
  check("found records are saved as CSV, with all digits", csv.length === 34 && csv[1].includes("9007199254740993"), csv[1]);
  const lines = (await download("JSON")).trim().split("\n");
  check("and as a JSON object a line", lines.length === 33 && JSON.parse(lines[0]).offset === "0");

  await page.getByRole("combobox", { name: "Value" }).selectOption("hex");
  await page.getByText(/^7b22/).first().waitFor();
  check("another decoder shows the value", page.url().includes("value=hex"));
  await page.getByRole("combobox", { name: "Begin" }).selectOption("offset");
  await page.getByText("Enter the offset to begin at.").waitFor();
  await page.getByRole("textbox", { name: "Offset" }).fill("30");
  await page.keyboard.press("Enter");
  await shown(3);
  check("reading begins at an offset", (await rows.first().innerText()).includes("30"));

  await page.getByRole("button", { name: /Saved searches/ }).click();
  await page.getByLabel("Save the search of this page as").fill("from thirty");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.keyboard.press("Escape");
  await go(page, `c/${cluster}/topics/orders`);
  await page.getByRole("button", { name: "Saved searches (1)" }).click();
  await judge(page, "saved");
  await page.getByRole("button", { name: "from thirty", exact: true }).click();
  await page.waitForFunction(() => location.search.includes("offset=30") && location.search.includes("value=hex"));
  check("a search is saved and comes back", true);

  await go(page, `c/${cluster}/topics/orders/records/1/0`);
  await page.keyboard.press("j");
  await page.getByRole("heading", { name: "Offset 1" }).waitFor();
  await page.getByRole("link", { name: "Write a copy" }).click();
  const value = page.getByLabel("Value", { exact: true });
  await value.waitFor();
  check("a copy begins with the record's own text", (await value.inputValue()).includes("9007199254740993"));
  await judge(page, "copy");

  const back = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const light = await back();
  await page.getByRole("button", { name: /Theme: as the system/ }).click();
  await page.getByRole("button", { name: /Theme: light/ }).click();
  await page.getByRole("button", { name: /Theme: dark/ }).waitFor();
  const dark = await back();
  await page.reload();
  await settled(page);
  check("the theme is switched, and kept", dark !== light && (await back()) === dark);
  await page.context().close();
}

async function menu() {
  const page = await open({ viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true });
  await go(page, `c/${cluster}`);
  const sections = page.getByRole("navigation", { name: "Sections" });
  check("on a phone the sections are behind a button", !(await sections.isVisible()));
  await page.getByRole("button", { name: "Sections" }).tap();
  await judge(page, "phone-menu");
  await sections.getByRole("link", { name: "Topics" }).tap();
  await page.getByRole("heading", { name: "Topics" }).waitFor();
  check("and close when one is chosen", !(await sections.isVisible()));
  await page.getByRole("link", { name: "orders" }).tap();
  await page.locator("tbody tr[data-row]").first().tap();
  await page.getByRole("complementary").waitFor();
  await judge(page, "phone-record");
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  check("a page is no wider than the phone", wide <= 390, String(wide));
  await page.context().close();
}

async function moves() {
  const page = await open({ viewport: { width: 1280, height: 900 } });
  await go(page, `c/${cluster}/moves`);
  await page.getByRole("button", { name: "Balance the brokers" }).click();
  await page.getByRole("button", { name: "Preview" }).click();
  await page.getByText("nothing has to move").waitFor();
  await judge(page, "balance-preview");
  check("a plan is shown before anything moves", (await page.getByText(/tidelog rebalance/).last().innerText()).includes("--throttle 52428800"));
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Drain a broker" }).click();
  await page.getByRole("textbox", { name: /^Broker/ }).fill("1");
  await page.getByRole("button", { name: "Preview" }).click();
  await page.getByText(/only 0 brokers would be left/).waitFor();
  check("a drain that no broker is left for is refused with its reason", true);
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
  await page.getByRole("button", { name: "Move offsets", exact: true }).click();
  await page.getByRole("button", { name: "Preview" }).click();
  await page.getByRole("region", { name: "Preview" }).waitFor();
  await judge(page, "reset-preview");
  await page.context().close();
}

/** A cluster in trouble, and a console that refuses: answered here, so that it looks the same each time. */
async function troubles() {
  const page = await open({ viewport: { width: 1440, height: 900 } });
  const health = {
    cluster_id: "MkU3OEVBNTcwNTJENDM2Qk", controller: 1, brokers: 3, topics: 12, partitions: 48, groups: 4,
    findings: [
      { severity: "error", kind: "leaderless", title: "2 partitions without a leader", evidence: ["orders-1: replicas 1, 2, in sync none", "orders-2: replicas 1, 2, in sync none"], advice: "Start broker 1 or 2.", command: "tidelog topics --describe --unavailable-partitions", link: { page: "topic", topic: "orders", group: null, broker: null, id: null } },
      { severity: "warning", kind: "under_replicated", title: "5 partitions lack a replica", evidence: ["mail-0: in sync 1 of 1, 2"], advice: "Broker 2 does not follow.", command: null, link: { page: "broker", topic: null, group: null, broker: 2, id: null } },
      { severity: "note", kind: "not_preferred", title: "3 partitions are led by another than the first replica", evidence: [], advice: "An election moves them back.", command: "tidelog leader-election --all-topic-partitions", link: null },
    ],
    fine: ["the metadata quorum has a leader"],
  };
  const partial = [{ what: "broker 2", error: "it does not answer" }, { what: "log dirs", error: "timed out" }];
  await page.route(/\/health$/, (route) => route.fulfill({ contentType: "application/json", body: JSON.stringify({ data: health, as_of_ms: String(Date.now()), partial }) }));
  await go(page, `c/${cluster}`);
  check("the worst finding comes first, with its link", (await page.getByRole("article").first().getByRole("link").getAttribute("href")) === `c/${cluster}/topics/orders`);
  check("a missing part is named", (await page.getByText(/2 parts are missing: broker 2/).count()) === 1);
  await judge(page, "unclean");

  const problem = { type: "about:blank", title: "Cluster not reachable", status: 503, detail: "no broker of localhost:9092 answers", kafka: null, at: null };
  await page.route(/\/groups\?/, (route) => route.fulfill({ status: 503, contentType: "application/problem+json", body: JSON.stringify(problem) }));
  await page.goto(new URL(`c/${cluster}/groups`, url).href);
  await page.getByRole("alert").waitFor();
  check("a refusal says what to do", (await page.getByRole("alert").innerText()).includes("Are they running"));
  await judge(page, "refused");
  await page.goto(new URL(`c/${cluster}/nowhere/at/all`, url).href);
  await page.getByText("There is no such page").waitFor();
  await page.goto(new URL("c/other/topics", url).href);
  await page.getByText(/knows no cluster other/).waitFor();
  check("unknown pages and clusters say so", true);

  await page.route(/\/topics\/orders\/records\?/, (route) => route.fulfill({ contentType: "application/x-ndjson", body: '{"kind":"begin","partitions":[],"mode":"newest"}\n{"kind":"dropped","count":"4100"}\n' }));
  await page.goto(new URL(`c/${cluster}/topics/orders?mode=tail`, url).href);
  await page.getByText(/broke off before its end/).waitFor();
  check("a stream that breaks off says so", (await page.getByText(/4\D?100 left out/).count()) > 0);
  await judge(page, "cut-stream");
  await page.context().close();
}

/** Ten thousand topics by a server that answers at once: what the pages themselves take. */
async function scrolling() {
  const page = await open({ viewport: { width: 1440, height: 900 } });
  const rows = Array.from({ length: 10_000 }, (_, index) => ({ name: `topic-${String(index).padStart(5, "0")}`, partitions: 4, replication: 3, internal: false, unclean: index % 97 === 0 ? 1 : 0 }));
  const answer = (data) => ({ contentType: "application/json", body: JSON.stringify({ data, as_of_ms: String(Date.now()), partial: [] }) });
  await page.route(/\/topics\?/, (route) => route.fulfill(answer({ rows, total: rows.length, next: null })));
  await page.route(/\/topics\/facts\?/, (route) => route.fulfill(answer(new URL(route.request().url()).searchParams.getAll("name").map((name) => ({ name, records: "12345", bytes: "4096", error: null })))));
  await go(page, `c/${cluster}/topics`);
  await page.locator("tbody tr[data-row]").first().waitFor();
  const times = await page.evaluate(() => ({ paint: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0, now: performance.now() }));
  console.log(`note ten thousand topics: first paint ${times.paint.toFixed(0)} ms, rows there before ${times.now.toFixed(0)} ms`);
  // Time of the page's thread: other processes of the machine do not count.
  const protocol = await page.context().newCDPSession(page);
  await protocol.send("Performance.enable", { timeDomain: "threadTicks" });
  const spent = async () => Object.fromEntries((await protocol.send("Performance.getMetrics")).metrics.map(({ name, value }) => [name, value * 1000]));
  const before = await spent();
  const found = await page.evaluate(async () => {
    const box = document.querySelector(".table-box.fill");
    const frames = [];
    const drawn = [];
    let last = performance.now();
    for (let step = 0; step < 150; step += 1) {
      box.scrollTop += box.scrollHeight / 150;
      await new Promise((done) => requestAnimationFrame(done));
      const now = performance.now();
      frames.push(now - last);
      drawn.push(document.querySelectorAll("tbody tr").length);
      last = now;
    }
    const order = frames.toSorted((left, right) => left - right);
    return { longest: order.at(-1), middle: order[75], rows: Math.max(...drawn), height: box.scrollHeight };
  });
  console.log(`note scrolling through ${found.height} px in 150 steps: frames of ${found.middle.toFixed(0)} ms, the longest ${found.longest.toFixed(0)} ms, at most ${found.rows} rows in the document`);
  const after = await spent();
  const each = (name) => ((after[name] - before[name]) / 150).toFixed(1);
  console.log(`note a step costs ${each("TaskDuration")} ms of CPU: scripts ${each("ScriptDuration")}, style ${each("RecalcStyleDuration")}, layout ${each("LayoutDuration")}`);
  check("a table of ten thousand rows keeps at most 150 in the document", found.rows <= 150, String(found.rows));
  check("its scrollbar covers all rows", found.height > 10_000 * 28, String(found.height));
  const keystroke = await page.evaluate(async () => {
    const field = document.querySelector("[data-filter]");
    const begin = performance.now();
    field.value = "topic-0997";
    field.dispatchEvent(new Event("input", { bubbles: true }));
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    return { took: performance.now() - begin, rows: document.querySelectorAll("tbody tr[data-row]").length };
  });
  console.log(`note a keystroke in the filter: drawn after ${keystroke.took.toFixed(0)} ms`);
  check("the filter leaves the rows that match", keystroke.rows === 10, String(keystroke.rows));
  await judge(page, "many-topics");
  await page.context().close();
}

/** A console with login and read-only, for the user in LOGIN (`name:password`). */
async function login() {
  const [user, password] = process.env.LOGIN.split(":");
  const page = await open({ viewport: { width: 1280, height: 800 } });
  await page.goto(new URL(`c/${cluster}/topics/orders/partitions`, url).href);
  const field = page.getByLabel("Password");
  await field.waitFor();
  await judge(page, "login");
  await page.getByLabel("User").fill(user);
  await field.fill("wrong");
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByText("User or password is wrong.").waitFor();
  await judge(page, "login-refused");
  await field.fill(password);
  await field.press("Enter");
  await page.getByRole("heading", { name: "orders" }).waitFor();
  check("after the login the page asked for is shown", page.url().endsWith("/orders/partitions"));
  await page.getByRole("region", { name: "Partitions" }).waitFor();
  check("a read-only console offers no change", (await page.getByRole("button", { name: /Delete|Add partitions/ }).count()) === 0);
  await judge(page, "read-only");
  await page.getByRole("button", { name: /Log out/ }).click();
  await field.waitFor();
  check("log out leads back to the login", true);
  await page.context().close();
}

const walks = {
  light: () => walk("light", { viewport: { width: 1440, height: 900 }, colorScheme: "light" }),
  dark: () => walk("dark", { viewport: { width: 1440, height: 900 }, colorScheme: "dark" }),
  phone: () => walk("phone", { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true, colorScheme: "light" }),
  keyboard,
  records,
  streams,
  letters,
  tools,
  menu,
  changes,
  moves,
  troubles,
  scrolling,
};
for (const [name, run] of process.env.LOGIN ? [["login", login]] : Object.entries(walks)) {
  if (process.env.ONLY && !process.env.ONLY.split(",").includes(name)) continue;
  try {
    await run();
  } catch (error) {
    check(name, false, error.message.split("\n").slice(0, 6).join(" / "));
    const page = browser.contexts().at(-1)?.pages().at(-1);
    console.log(`note it was at ${page?.url()}: ${page?.errors.join("; ")}`);
    if (shots) await page?.screenshot({ path: join(shots, `failed-${name}.png`) });
  }
}
await browser.close();
console.log(failures.length === 0 ? "all passed" : `${failures.length} failed`);
process.exit(failures.length === 0 ? 0 : 1);
