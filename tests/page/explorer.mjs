// explorer.mjs ATTEND MODULES [PICTURES]: the page of attend show -o FILE.html in a real browser. Every view by mouse and by
// keyboard, light and dark, 360 px wide, printed, without JavaScript; what is saved and copied; long lines in time; no request
// leaves, and axe finds nothing. The last line is "N passed, N failed".
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { accessible, attend, check, finish, fits, open as openAt, run, shot, sound, text, until } from "./lib/browser.mjs";

const open = (path, look) => openAt(base, path, { ready: "load", ...look });
// Of a narrow window; words and numbers may be moved into view, but what explains them is there at once.
const legendFits = (page) => page.$$eval("#figure svg text", (texts) => texts.filter((t) => /^(rows:|bold:|struck out:|numbers:)/.test(t.textContent))
  .every((t) => t.getBoundingClientRect().right <= document.querySelector("#figure").getBoundingClientRect().right));

const folder = mkdtempSync(tmpdir() + "/explorer-");
const command = (...words) => execFileSync(attend, words, { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
const base = "file://" + folder;
const LENGTHS = [60, 512, 1000], VIEWS = ["matrix", "heads", "model", "pair", "difference", "beam"];

writeFileSync(folder + "/lines", ["a b c", "b c", "c a b", "b b a c", "a c"].join("\n") + "\n");
command("train", "--model", "transformer", "--source", "lines", "--target", "lines", "--layers", "2", "--heads", "2", "--hidden", "16", "--ffn", "16", "--epochs", "40",
  "--source-vocab", "char", "--target-vocab", "char", "--quiet", "--output", "m");
command("show", "-m", "m", "ab <c>", "--beam", "3", "-o", "page.html");
// A picture of 20 x 20 pixels, white on black, and a model that has seen it
const header = "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 20, 20), }".padEnd(117) + "\n";
writeFileSync(folder + "/seen.npy", Buffer.concat([Buffer.from([0x93, ...Buffer.from("NUMPY"), 1, 0, header.length, 0]), Buffer.from(header),
  Buffer.from(Array.from({ length: 400 }, (_, i) => (i % 20 < 8 ? 255 : 0)))]));
writeFileSync(folder + "/seen", "seen.npy[0]\n");
writeFileSync(folder + "/said", "a bar on the left\n");
command("train", "--model", "show-attend-tell", "--image-channels", "1", "--source", "seen", "--target", "said", "--conv", "4x5s2,8x3s2", "--hidden", "8", "--embedding", "8", "--attention", "8",
  "--updates", "1", "--quiet", "--output", "viewer");
command("show", "-m", "viewer", "seen.npy[0]", "--target", "a bar on the left", "-o", "picture.html");
command("train", "--model", "transformer", "--source", "lines", "--target", "lines", "--layers", "6", "--heads", "8", "--hidden", "16", "--ffn", "16", "--updates", "1",
  "--source-vocab", "char", "--target-vocab", "char", "--quiet", "--output", "large");
const letters = (count) => "abc ba c".repeat(count).slice(0, count);
for (const length of LENGTHS) command("show", "-m", "large", letters(length), "--target", letters(length - 1), "-o", `p${length}.html`);

const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const state = (page) => page.evaluate(() => Object.fromEntries(new URLSearchParams(location.hash.slice(1))));
const status = (page) => text(page, "#status");

await run(async () => {
  // ---- Every view, wide and light, then narrow and dark
  for (const look of [{}, { width: 360, height: 800, dark: true }]) {
    for (const view of VIEWS) {
      const where = `${view} ${look.width ?? 1000}${look.dark ? " dark" : ""}`, page = await open(`/page.html#view=${view}`, look);
      check((await state(page)).view === view, `${where}: the address has ${JSON.stringify(await state(page))}`);
      check((await page.$$("#figure svg, #figure canvas")).length > 0, `${where} draws something`);
      await fits(page, where);
      if (look.width) check(await legendFits(page), `${where}: the legend is cut`);
      await accessible(page, where);
      await sound(page, where);
      await shot(page, `explorer ${where}`);
      await page.close();
    }
    const where = `picture ${look.width ?? 1000}${look.dark ? " dark" : ""}`, page = await open("/picture.html#view=picture", look);
    await page.waitForSelector("#figure .thumb");
    check((await page.$$("#figure .thumb canvas")).length === 6, `${where}: a picture for each word and the end`);
    await page.click("#figure .thumb:nth-child(2)");
    check((await status(page)) === "bar", `${where}: the word that is chosen, ${await status(page)}`);
    check((await text(page, "#formula")).startsWith("Clear where the word looks"), `${where} says what is clear`);
    check(await page.$eval("#figure", (figure) => figure.scrollWidth <= figure.clientWidth), `${where}: the large picture is cut`);
    await fits(page, where);
    await accessible(page, where);
    await sound(page, where);
    await shot(page, `explorer ${where}`);
    await page.close();
  }

  // ---- By the keyboard alone
  const page = await open("/page.html");
  for (let i = 0; i < VIEWS.length; i++) {
    await page.keyboard.press(String(i + 1));
    check((await state(page)).view === VIEWS[i], `key ${i + 1} opens ${VIEWS[i]}`);
  }
  await page.keyboard.press("1");
  await page.keyboard.press("]");
  check((await state(page)).head === "norms", `] chooses the next head, ${(await state(page)).head}`);
  await page.$eval("#figure svg", (svg) => svg.focus());
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  check(/ → .*: 0\.\d{4}$/.test(await status(page)), `a cell by the keyboard: ${await status(page)}`);
  await page.keyboard.press("7");
  check((await state(page)).view === "matrix", "there is no seventh view");

  // ---- Layers above the weights have their formulas
  for (const [head, paper] of [["gradient", "Chefer"], ["norms", "Kobayashi"]]) {
    await page.select("#head", head);
    check((await text(page, "#formula")).includes(paper), `the formula of ${head}`);
  }
  await page.select("#kind", "encoder");
  await page.select("#head", "rollout");
  check((await text(page, "#formula")).includes("Abnar"), "the formula of the rollout");

  // ---- Every view says what it shows
  for (const [view, words] of [["pair", "One query and one key"], ["difference", "minus"]]) {
    await page.keyboard.press(String(VIEWS.indexOf(view) + 1));
    check((await text(page, "#formula")).includes(words), `the ${view} view says ${await text(page, "#formula")}`);
  }

  // ---- The beam
  await page.$$eval("#views button", (all) => all.at(-1).click());
  const result = await page.$$eval("#figure .unit", (all) => all.filter((u) => u.getAttribute("aria-label").includes("part of the result")).map((u) => u.querySelector("text").textContent).join(""));
  const cutOff = await page.$$eval("#figure svg text", (all) => all.filter((t) => t.getBBox().x + t.getBBox().width > t.ownerSVGElement.viewBox.baseVal.width).map((t) => t.textContent));
  check(cutOff.length === 0, `texts of the beam are cut off: ${cutOff}`);
  check(result === (await text(page, "#text b:last-of-type")).replaceAll(" ", "␣") + "</s>", `the result is ${result}`);
  await shot(page, "explorer beam pointed at");

  // ---- Save SVG: a file that stands alone
  const client = await page.createCDPSession();
  await client.send("Browser.setDownloadBehavior", { behavior: "allow", downloadPath: folder });
  await page.keyboard.press("1");
  for (const [key, name] of [["1", "encoder.rollout.svg"], ["6", "beam.svg"]]) {
    await page.keyboard.press(key);
    if (key === "1") await page.select("#head", "rollout");
    await page.click("#save");
    for (let i = 0; i < 100 && !existsSync(`${folder}/${name}`); i++) await wait(100);
    const svg = existsSync(`${folder}/${name}`) ? readFileSync(`${folder}/${name}`, "utf8") : "";
    check(svg.startsWith("<svg ") && svg.includes('xmlns="http://www.w3.org/2000/svg"') && !svg.includes("<script"), `${name} is ${svg.slice(0, 80)}`);
    const drawn = await open(`/${name}`);
    check((await drawn.$$("text")).length > 5, `${name} has text`);
    await drawn.close();
  }

  // ---- Copy TSV: the numbers that are shown
  await page.evaluate(() => { navigator.clipboard.writeText = async (words) => { window.copied = words; }; });
  await page.keyboard.press("1");
  await page.click("#copy");
  await until(page, "a table is copied", () => window.copied);
  const table = (await page.evaluate(() => window.copied)).trimEnd().split("\n").map((line) => line.split("\t"));
  const names = await page.evaluate(() => JSON.parse(document.getElementById("data").textContent).levels[0].kinds.find((k) => k.name === "encoder").rows);
  check(JSON.stringify(table[0].slice(1)) === JSON.stringify(names) && table.length === names.length + 1, `the table has ${table[0]}`);
  check(table.slice(1).every((row) => Math.abs(row.slice(1).reduce((sum, x) => sum + Number(x), 0) - 1) < 1e-2), "rows of the rollout sum to 1");
  await page.keyboard.press("6");
  await page.click("#copy");
  await until(page, "the steps are copied", () => window.copied.startsWith("step\tparent\tunit\tlog_probability\tsum\tstate\tresult\n1\t0\t"));
  await sound(page, "the explorer");

  // ---- Printed: the drawing and what it says, light, without controls
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "dark" }]);
  await page.keyboard.press("1");
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  await page.emulateMediaType("print");
  const printed = await page.evaluate(() => ({ hidden: ["nav", "#controls", "#status", "details"].every((q) => getComputedStyle(document.querySelector(q)).display === "none"),
    ground: document.querySelector("#figure svg rect").getAttribute("fill"), page: getComputedStyle(document.body).backgroundColor, note: document.querySelector("footer p").innerText }));
  check(printed.hidden, "the controls are not printed");
  check(printed.ground === "#fff" && printed.page === "rgb(255, 255, 255)", `printed on ${printed.ground} and ${printed.page}`);
  check(printed.note.includes("not explanations"), "the note is printed");
  await shot(page, "explorer printed");
  await page.evaluate(() => dispatchEvent(new Event("afterprint")));
  await page.emulateMediaType("screen");
  await page.close();

  // ---- Without JavaScript
  const plain = await open("/page.html", { script: false });
  check((await text(plain, "body")).includes("switched off"), "without JavaScript the page says what to do");
  await plain.close();

  // ---- Large models and long lines. What else runs changes the time that a page takes to open, but not the processor time of its
  // thread, from the beginning of its navigation.
  check(statSync(folder + "/p60.html").size < 1e6, `6 + 6 layers of 8 heads and 60 units take ${statSync(folder + "/p60.html").size} bytes`);
  for (const length of LENGTHS) {
    const long = await open(`/p${length}.html#kind=encoder`), session = await long.createCDPSession();
    await session.send("Performance.enable", { timeDomain: "threadTicks" });
    const opened = await long.evaluate(() => performance.getEntriesByType("navigation")[0].loadEventEnd); // it is drawn by then
    await long.reload({ waitUntil: "load" });
    const used = async () => 1000 * (await session.send("Performance.getMetrics")).metrics.find((m) => m.name === "TaskDuration").value;
    const busy = await used();
    check(busy > 0 && busy < (length > 512 ? 2000 : 1000), `the page of ${length} units takes ${busy} ms of processor time to open`);
    const times = [], drawing = [];
    for (let i = 0; i < 3; i++) {
      const before = await used();
      times.push(await long.evaluate(() => new Promise((resolve) => {
        const began = performance.now();
        addEventListener("hashchange", () => setTimeout(() => resolve(performance.now() - began)), { once: true });
        location.hash = location.hash.includes("view=model") ? "view=matrix&kind=encoder" : "view=model&kind=encoder";
      })));
      drawing.push(await used() - before);
    }
    check(drawing[0] > 0 && Math.max(...drawing) < 1000, `the model view, matrix and model view of ${length} units take ${drawing} ms of processor time`);
    check((await long.$$("#figure canvas")).length === 48, `${length} units: a small map for every head`);
    await sound(long, `${length} units`);
    await shot(long, `explorer ${length}`);
    console.log(`${length} units: opened in ${Math.round(opened)} ms (${Math.round(busy)} ms of processor time), model view ${Math.round(times[0])} (${Math.round(drawing[0])}), matrix ${Math.round(times[1])} (${Math.round(drawing[1])})`);
    await long.close();
  }
});
rmSync(folder, { recursive: true });
finish();
