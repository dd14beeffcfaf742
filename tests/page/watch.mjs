// watch.mjs ATTEND MODULES [PICTURES]: attend serve --watch in a real browser: the curves of runs while they grow, from logs
// and from a folder; both languages, 360 px, dark, without JavaScript. The last line is "N passed, N failed".
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { accessible, check, finish, fits, open, run, serve, shot, sound, text, until } from "./lib/browser.mjs";

const folder = mkdtempSync(join(tmpdir(), "attend-watch-"));
const log = join(folder, "first.log.jsonl");
const line = (path, values) => appendFileSync(path, JSON.stringify({ ...values, time: "2026-01-01T00:00:00Z" }) + "\n");
const start = (path) => { writeFileSync(path, ""); line(path, { event: "start", epoch: 1, update: 0, run: { updates: 1000 } }); };
const update = (path, n, cost) => line(path, { event: "update", epoch: 1, update: n, sentences: n, cost, seconds: 10, words_per_second: 1234.5, gradient_norm: 1.5, learning_rate: 0.001 });
start(log);
for (let n = 100; n <= 400; n += 100) update(log, n, 4 - n / 200);
line(log, { event: "valid", epoch: 1, update: 200, bleu: 12.5, loss: 2.25, better: true, failures: 0 });
line(log, { event: "valid", epoch: 1, update: 400, bleu: 20.5, loss: 1.75, better: true, failures: 0 });
appendFileSync(log, '{"event":"upd'); // a line that is not whole yet
for (const name of ["dot<b>", "general"]) { // as attend compare has its runs
  mkdirSync(join(folder, "runs", name), { recursive: true });
  const path = join(folder, "runs", name, "model.log.jsonl");
  start(path);
  update(path, 100, 3);
  update(path, 200, name === "general" ? 2 : 2.5);
}

const { base, end } = await serve("--watch", log, "--watch", join(folder, "runs"));
await run(async () => {
  for (const [language, look] of [["en", {}], ["zh", { width: 360, height: 800, dark: true }]]) {
    const where = `watch ${language} ${look.width ?? 1000}${look.dark ? " dark" : ""}`;
    const page = await open(base, "/watch/" + language, look);
    await until(page, where + ": curves", () => document.querySelectorAll("#curves figure").length === 5);
    const rows = await page.$$eval("#runs tr", (all) => all.map((row) => [...row.children].map((cell) => cell.innerText.trim())));
    check(rows.length === 3 && rows[0].join("|") === "first|400|2.0000|0.001|1235|1 min" && rows[1][0] === "dot<b>", `${where}: the rows are ${rows.map((r) => r.join("|"))}`);
    check((await page.$$eval("#curves figure:first-child path", (all) => all.length)) === 3, where + ": a curve for each run");
    await fits(page, where);
    await accessible(page, where);
    await sound(page, where);
    await shot(page, where);
    await page.close();
  }

  // ---- A run that goes on, and ends
  const page = await open(base, "/watch");
  appendFileSync(log, 'ate","epoch":1,"update":500,"sentences":500,"cost":1.25,"seconds":10,"words_per_second":2000,"learning_rate":0.0005}\n');
  await until(page, "a new point", () => document.querySelector("#runs tr td").innerText === "500" && document.querySelector("#runs tr td:nth-of-type(2)").innerText === "1.2500");
  const news = join(folder, "runs", "later.log.jsonl");
  start(news);
  update(news, 100, 9);
  await until(page, "a new run", () => document.querySelectorAll("#runs tr").length === 4);
  line(log, { event: "end", epoch: 1, update: 500, reason: "interrupted", seconds: 50 });
  await until(page, "its end", () => document.querySelector("#runs tr td:last-child").innerText.includes("interrupted"));
  await sound(page, "a run that goes on");
  await page.close();

  // ---- Without JavaScript there is the table
  const still = await open(base, "/", { script: false, width: 360 });
  check((await text(still, "#runs")).includes("dot<b>"), "the table without JavaScript");
  await fits(still, "without JavaScript");
  await still.close();
});
await end();
rmSync(folder, { recursive: true });
finish();
