// What the tests of pages share: a server of attend, a browser, and checks that every page has to pass.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

export const [attend, modules, pictures] = process.argv.slice(2);
const require = createRequire(modules + "/");
const puppeteer = (await import(require.resolve("puppeteer-core"))).default;
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

let passed = 0, failed = 0;
export function check(holds, what) {
  if (holds) passed++;
  else { failed++; console.log("FAILED: " + what); }
}

// A server with these options on a free port; base is its address.
export async function serve(...options) {
  const server = spawn(attend, ["serve", "--port", "0", ...options], { stdio: ["ignore", "ignore", "pipe"] });
  const base = await new Promise((resolve, reject) => {
    let said = "";
    server.stderr.on("data", (bytes) => { said += bytes; const found = said.match(/http:\/\/[^ ;]*[0-9]/); if (found && said.includes("\n")) resolve(found[0].replace(/:$/, "")); });
    server.on("exit", () => reject(new Error("attend serve ends: " + said)));
  });
  return { server, base, end: () => new Promise((resolve) => { server.on("exit", resolve); server.kill("SIGTERM"); }) };
}

const browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM || "/usr/bin/chromium", headless: true,
  args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"] });

// A page that remembers what went wrong on it, and where its requests went.
function watch(page, base) {
  page.wrong = [];
  page.on("pageerror", (error) => page.wrong.push(error.message));
  page.on("console", (message) => { if (message.type() === "error" && !message.location().url?.endsWith("favicon.ico")) page.wrong.push(message.text()); });
  page.on("request", (request) => { if (![base, "data:", "blob:"].some((own) => request.url().startsWith(own))) page.wrong.push("a request to " + request.url()); });
  return page;
}
export async function open(base, path, { width = 1000, height = 900, dark = false, script = true, ready = "networkidle0" } = {}) {
  const page = watch(await browser.newPage(), base);
  await page.setJavaScriptEnabled(script);
  await page.setViewport({ width, height });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }]);
  await page.goto(base + path, { waitUntil: ready });
  return page;
}
// The page that an action opens in a window of its own.
export async function opened(base, action) {
  const [target] = await Promise.all([new Promise((resolve) => browser.once("targetcreated", resolve)), action()]);
  return watch(await target.page(), base);
}

export const text = (page, selector) => page.$eval(selector, (element) => element.innerText);
// Waits until an expression holds in the page.
export async function until(page, what, test, ...values) {
  try { await page.waitForFunction(test, { timeout: 60000 }, ...values); check(true, what); } catch { check(false, `${what} (${page.url()}): ${await text(page, "main").catch(() => "")}`); }
}
export async function sound(page, where) {
  check(page.wrong.length === 0, `${where}: ${page.wrong.join("; ")}`);
  page.wrong.length = 0;
}
export async function accessible(page, where) {
  await page.evaluate(axe); // by the debugger, which no policy of the page stops
  const found = await page.evaluate(async () => (await window.axe.run(document, { resultTypes: ["violations"] })).violations.map((v) => `${v.id}: ${v.nodes[0].target} ${v.nodes[0].failureSummary}`));
  check(found.length === 0, `axe on ${where}: ${found.join(" | ")}`);
}
// Nothing is wider than the window.
export async function fits(page, where) {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  check(wide <= 0, `${where} is ${wide} px too wide`);
}
export async function shot(page, where) {
  if (pictures) await page.screenshot({ path: `${pictures}/${where.replaceAll(" ", "_")}.png`, fullPage: true });
}
export async function run(tests) {
  try {
    await tests();
  } catch (error) {
    failed++;
    console.log("FAILED: " + error.stack);
  } finally {
    await browser.close();
  }
}
export function finish() {
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed ? 1 : 0);
}
