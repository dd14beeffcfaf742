// lesson.mjs ATTEND MODULES [PICTURES]: the lesson of attend serve in a real browser. Every page is opened and played with, by
// mouse and by keyboard, in both languages, 360 px wide, dark, without JavaScript; no request leaves the machine, and axe
// finds nothing. MODULES is a folder with puppeteer-core and axe-core; screenshots go to PICTURES. The last line is "N passed, N failed".
import { accessible, check, finish, fits, open, run, serve, shot, sound, until } from "./lib/browser.mjs";

const PAGES = ["example", "qkv", "scaled", "softhard", "windows", "scores", "heads", "encoder", "positions", "recurrent", "antonyms", "beer", "scenes"];
const { base, end } = await serve();

async function go(page, name) {
  await page.click(`nav a[href="#${name}"]`);
  await page.waitForFunction((id) => !document.getElementById(id).hidden, {}, name);
  await page.waitForNetworkIdle({ idleTime: 100 }).catch(() => {});
}
// Formulas have as many parts as their elements take, which a browser draws wrongly without a word, and no scroll bars.
const formulas = (page) => page.$$eval("section:not([hidden]) .formula", (all) => all.flatMap((formula) => {
  const parts = { mfrac: 2, msub: 2, msup: 2, msubsup: 3, munder: 2, mover: 2, munderover: 3 };
  const wrong = [...formula.querySelectorAll("*")].filter((e) => parts[e.localName] && e.children.length !== parts[e.localName]).map((e) => e.outerHTML);
  return formula.scrollHeight > formula.clientHeight && getComputedStyle(formula).overflowY !== "hidden" ? [...wrong, "scrolls"] : wrong;
}));
const numbers = (page, name, caption) => page.evaluate((id, title) => {
  const table = [...document.querySelectorAll(`#${id} table`)].find((t) => t.caption?.innerText.startsWith(title));
  return table ? [...table.querySelectorAll("td.heat")].map((cell) => Number(cell.innerText)) : [];
}, name, caption);
const change = (page, selector, value) => page.$eval(selector, (input, to) => { input.value = to; input.dispatchEvent(new Event("input", { bubbles: true })); input.dispatchEvent(new Event("change", { bubbles: true })); }, value);
const press = (page, name, label) => page.evaluate((id, what) => [...document.querySelectorAll(`#${id} button`)].find((b) => b.innerText === what).click(), name, label);

await run(async () => {
  // ---- Every page in both languages, wide and light, then narrow and dark
  for (const [language, look] of [["en", {}], ["zh", { width: 360, height: 800, dark: true }]]) {
    const page = await open(base, "/lesson/" + language, look);
    for (const name of PAGES) {
      const where = `${language} ${name} ${look.width ?? 1000}${look.dark ? " dark" : ""}`;
      await go(page, name);
      await until(page, `${where} shows something`, (id) => document.querySelector(`#${id} .play table, #${id} .play svg`), name);
      check((await page.$$("section:not([hidden])")).length === 1, `${where}: one page at a time`);
      await fits(page, where);
      const wrong = await formulas(page);
      check(wrong.length === 0, `${where}: ${wrong[0]}`);
      await accessible(page, where);
      await sound(page, where);
      await shot(page, where);
    }
    await page.close();
  }

  // ---- The numbers are those of the notes, and follow what is changed
  const page = await open(base, "/lesson");
  await until(page, "the worked example", () => document.querySelectorAll("#example td.heat").length === 27);
  const z = await numbers(page, "example", "Output");
  check(JSON.stringify(z) === "[1,2.95769,2.01129,1,1.54015,2.72257,1,2.86416,2]", `Z is ${z}`);
  await page.click("#example input[type=checkbox]");
  await until(page, "Y", () => document.querySelector("#example table:has(td.heat) th[scope=col]")?.innerText === "我");
  check((await numbers(page, "example", "Weights")).map((w) => w.toFixed(2)).join() === "0.10,0.66,0.24,0.49,0.49,0.02,0.16,0.42,0.42", "the weights of Y");
  await page.click("#example input[type=number]");
  await page.keyboard.press("ArrowUp");
  await until(page, "a changed number", () => [...document.querySelectorAll("#example td.heat")][0].innerText !== "9.10");
  await change(page, "#example input[type=number]", "1e9");
  await until(page, "a message", () => document.querySelector("#example [role=status]").innerText.includes("must have numbers from -1000000"));
  page.wrong.length = 0; // the browser logs the status 400

  await go(page, "qkv");
  await press(page, "qkv", "Different matrices");
  await until(page, "other scores", () => { const s = [...document.querySelectorAll("#qkv table")].find((t) => t.caption.innerText === "Scores"); const v = [...s.querySelectorAll("td.heat")].map((c) => c.innerText); return v[1] !== v[3]; });

  await go(page, "scaled");
  await change(page, "#scaled input[type=range]", "10");
  await until(page, "d = 1024", () => document.querySelector("#scaled caption").innerText === "d = 1024");
  const scaled = await numbers(page, "scaled", "d = 1024");
  check(scaled[0] > 0.95 && scaled[3] < 0.5 && scaled[5] > 5 * scaled[2], `scaling: ${scaled}`);

  await go(page, "softhard");
  await change(page, "#softhard input[type=range]", "10");
  await until(page, "1024 draws", () => document.querySelector("#softhard output").value === "1024");
  await page.waitForNetworkIdle({ idleTime: 200 });
  const weights = await numbers(page, "softhard", "Weights");
  check(weights.length === 8 && weights.slice(0, 4).every((w, i) => Math.abs(w - weights[4 + i]) < 0.06), `draws: ${weights}`);

  await go(page, "windows");
  const band = await numbers(page, "windows", "local-m:1");
  check(band.length === 64 && band[2] === 0 && band[7] === 0 && band[0] > 0, `local-m: ${band}`);
  check((await numbers(page, "windows", "global")).every((w) => w > 0 || w === 0), "global");
  await change(page, "#windows input[type=text]", "one two three");
  await until(page, "another sentence", () => document.querySelectorAll("#windows td.heat").length === 27);

  await go(page, "scores");
  await press(page, "scores", "× 10");
  await until(page, "ten times the dot product", () => document.querySelector("#scores td.heat").innerText === "30.00");
  const all = await numbers(page, "scores", "Scores");
  check(all.slice(9).every((e) => Math.abs(e) <= 3), `additive: ${all}`);
  await page.select("#scores select", "hard");
  await until(page, "hard", () => [...document.querySelectorAll("#scores table:last-of-type td.heat")].length > 0);

  await go(page, "heads");
  await page.select("#heads select", "8");
  await until(page, "eight heads", () => document.querySelectorAll("#heads table").length === 9);

  await go(page, "encoder");
  await until(page, "the layer", () => document.querySelectorAll("#encoder td.heat").length === 60);
  const layer = await numbers(page, "encoder", "R =");
  check(Math.abs(layer.slice(0, 4).reduce((a, b) => a + b)) < 0.003, `a normalised row: ${layer}`);
  await press(page, "encoder", "Other weights");
  await until(page, "other weights", (before) => [...document.querySelectorAll("#encoder td.heat")].at(-1).innerText !== before.toFixed(3), layer.at(-1));

  await go(page, "positions");
  for (const kind of ["learned", "shaw", "rope", "alibi"]) {
    await page.select("#positions select", kind);
    await until(page, kind, (name) => document.querySelector("#positions caption").innerText.startsWith(name), kind);
    if (kind === "shaw") check((await numbers(page, "positions", "shaw: j")).slice(0, 5).join() === "0,1,2,2,2", "clip(j - i, 2)");
    if (kind === "alibi") check((await numbers(page, "positions", "alibi, head 1")).slice(0, 3).join() === "0,-0.3,-0.5", "ALiBi's first head of four, 1/4 for each step");
  }

  await go(page, "recurrent");
  await until(page, "the curves", () => document.querySelectorAll("#recurrent svg path.curve").length === 4);
  await press(page, "recurrent", "Measure again");

  // ---- Models that are trained in the page
  await go(page, "beer");
  await press(page, "beer", "Learn");
  await until(page, "i want a beer", () => document.querySelector("#beer .play").innerText.includes("i want a beer") && Number(document.querySelector("#beer output").value) >= 100);
  await press(page, "beer", "Pause");
  check((await page.$$("#beer td.heat")).length === 25, "where it looks");
  await go(page, "antonyms");
  await press(page, "antonyms", "25 updates");
  await until(page, "25 updates", () => document.querySelector("#antonyms output").value === "25");
  await page.type("#antonyms input[type=text]", "queen");
  await page.keyboard.press("Tab");
  await until(page, "a word of one's own", () => [...document.querySelectorAll("#antonyms th")].some((th) => th.innerText === "queen"));
  await page.select("#antonyms select", "transformer");
  await until(page, "a transformer", () => document.querySelectorAll("#antonyms td.heat").length === 30);

  await go(page, "scenes");
  const most = () => page.$$eval("#scenes table.grid:first-of-type td", (cells) => { const v = cells.slice(0, 36).map((c) => Number(c.title)); return v.indexOf(Math.max(...v)); });
  await until(page, "the map", () => document.querySelectorAll("#scenes .grid td").length === 72);
  check((await most()) === 7, "the red circle");
  await sound(page, "playing");

  // ---- The keyboard alone: from the list of pages to the next page
  await page.goto(base + "/lesson/en", { waitUntil: "networkidle0" });
  for (let i = 0; i < 3; i++) await page.keyboard.press("Tab"); // the language, the first page, the second
  await page.keyboard.press("Enter");
  await until(page, "a page by the keyboard", () => location.hash === "#qkv" && !document.getElementById("qkv").hidden && document.activeElement.id === "qkv");
  await page.click(".turn .after");
  await until(page, "the next page", () => location.hash === "#scaled");
  check((await page.$eval("header a[hreflang]", (a) => a.hash)) === "#scaled", "the other language opens the same page");
  await page.close();

  // ---- Without JavaScript all of the text is there
  const still = await open(base, "/lesson/zh", { script: false });
  const response = await (await fetch(base + "/lesson/zh")).text();
  check(!response.includes("{{") && (response.match(/<section/g) ?? []).length === PAGES.length, "the page has all texts");
  await shot(still, "still");
  await sound(still, "without JavaScript");
  await still.close();

  const policy = (await fetch(base + "/lesson")).headers.get("content-security-policy");
  check(policy?.startsWith("default-src 'none'"), `the policy is ${policy}`);
});
await end();
finish();
