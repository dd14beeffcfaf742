// translator.mjs ATTEND MODULES [PICTURES]: the translator's page of attend serve in a real browser: typing, alternatives,
// where the model looked, another word at a place, the explorer, both languages, 360 px, dark, the keyboard alone, without
// JavaScript, a key. The last line is "N passed, N failed".
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { accessible, attend, check, finish, fits, open, opened, run, serve, shot, sound, text, until } from "./lib/browser.mjs";

// A model that reverses its words, and one that copies them; letters, so that both are trained in seconds.
const folder = mkdtempSync(join(tmpdir(), "attend-page-"));
const file = (name) => join(folder, name);
let state = 1;
const letter = () => "abcdefgh"[(state = (state * 48271) % 2147483647) % 8];
const lines = Array.from({ length: 500 }, (_, i) => Array.from({ length: 2 + (i % 4) }, letter));
writeFileSync(file("source"), lines.map((words) => words.join(" ")).join("\n") + "\n");
writeFileSync(file("target"), lines.map((words) => words.toReversed().join(" ").toUpperCase()).join("\n") + "\n");
const small = ["--model", "bahdanau", "--embedding", "12", "--hidden", "24", "--attention", "12", "--maxout", "12", "--batch-size", "20", "--learning-rate", "0.01", "--epochs", "14", "--seed", "1", "--quiet"];
const train = (source, target, output) => execFileSync(attend, ["train", "--source", file(source), "--target", file(target), "--output", file(output), ...small]);
train("source", "target", "de-en");
train("target", "source", "en-de");
execFileSync(attend, ["calibrate", "-m", file("de-en"), "--source", file("source"), "--target", file("target"), "--beam", "4", "-o", file("calibrated")]);
writeFileSync(file("keys"), "secret\n");
const translated = (line, ...more) => execFileSync(attend, ["translate", "-m", file("de-en"), "--beam", "4", ...more], { input: line + "\n", encoding: "utf8" }).trimEnd();

const { base, end } = await serve("-m", "de-en=" + file("calibrated"), "-m", "en-de=" + file("en-de"));
const SHOWN = (all) => [...document.getElementById("output").children].map((line) => line.textContent).join("\n") === all;
const LOOKED = () => document.querySelectorAll("#output button.word").length > 0;
const write = async (page, words) => { await page.click("#q", { clickCount: 3 }); await page.keyboard.press("Backspace"); await page.type("#q", words); };
const focused = (page) => page.evaluate(() => document.activeElement.innerText || document.activeElement.id);

await run(async () => {
  // ---- Both languages, wide and light, then narrow and dark
  for (const [language, look] of [["en", {}], ["zh", { width: 360, height: 800, dark: true }]]) {
    const where = `translator ${language} ${look.width ?? 1000}${look.dark ? " dark" : ""}`;
    const page = await open(base, "/translator/" + language, look);
    await accessible(page, where + " empty");
    await page.select("#source", "de");
    await page.select("#target", "en");
    await page.type("#q", "a b c\n\nd e");
    const expected = `${translated("a b c")}\n\n${translated("d e")}`;
    await until(page, where + ": a translation while one types", SHOWN, expected);
    await until(page, where + ": words to press", () => document.querySelectorAll("#output button.word").length === 5);
    check((await page.$$("#others li")).length >= 1, where + ": other translations");
    const percent = Number(await text(page, "#percent"));
    check(percent > 50 && percent <= 100, `${where}: a confidence of ${percent} %`);
    await page.hover("#output button.word");
    await until(page, where + ": where it looked", () => document.querySelectorAll("#words .light").length > 0 && document.getElementById("said").innerText.includes("←"));
    const strongest = await page.$$eval("#words span", (all) => all.map((e) => [Number(e.title || 0), e.innerText]).sort((a, b) => b[0] - a[0])[0][1]);
    check(strongest === expected[0].toLowerCase(), `${where}: ${expected[0]} looks at ${strongest}`);
    await page.click("#output button.word:nth-of-type(2)");
    await until(page, where + ": other words here", () => document.querySelectorAll("#choices li button").length >= 2);
    check((await text(page, "#choices .start")).includes(expected[0]), where + ": after what");
    await fits(page, where);
    await accessible(page, where);
    await sound(page, where);
    await shot(page, where);
    await page.close();
  }

  // ---- Another word, and the search goes on from it
  const page = await open(base, "/translator/en");
  await page.select("#source", "de");
  await write(page, "a b c");
  await until(page, "words", LOOKED);
  await page.click("#output button.word");
  await until(page, "words for the first place", () => document.querySelectorAll("#choices li button").length >= 2);
  const other = await page.$eval("#choices li:nth-child(2) button", (b) => b.firstChild.data);
  await page.click("#choices li:nth-child(2) button");
  const forced = translated("a b c\t" + other, "--prefix").split("\n")[0];
  check(forced.startsWith(other), "attend translate --prefix begins with the word");
  page.expected = (await (await fetch(base + "/alternatives", { method: "POST", body: new URLSearchParams({ q: "a b c", source: "de", target: "en", start: other }) })).json()).translatedText;
  await until(page, "the line goes on from the word", SHOWN, page.expected);
  await until(page, "a forced word is marked", () => document.querySelectorAll("#output .yours").length === 1);
  await page.click("#output button.word:last-of-type");
  await until(page, "words for the last place", () => !document.getElementById("choices").hidden);
  await page.type("#own-word", "H");
  await page.keyboard.press("Enter");
  await until(page, "one's own word", () => document.getElementById("output").innerText.includes("H"));
  await sound(page, "another word");

  // ---- One of the other translations, another language, and back
  await write(page, "c d e f");
  await until(page, "another text", SHOWN, translated("c d e f"));
  await until(page, "its others", () => document.querySelectorAll("#others li button").length > 0);
  const second = await text(page, "#others li button");
  await page.click("#others li button");
  await until(page, "another translation is shown", SHOWN, second);
  await page.click("#swap");
  await until(page, "swapped", (all) => document.getElementById("q").value === all && document.getElementById("source").value === "en" && document.getElementById("target").value === "de", second);
  await page.select("#source", "auto");
  await until(page, "a detected language", () => document.getElementById("status").innerText.includes(":"));
  await sound(page, "languages");

  // ---- The explorer of the line
  await page.select("#source", "de");
  await page.select("#target", "en");
  await write(page, "a <b c");
  await until(page, "the line to explore", () => document.querySelector("#explore [name=q]").value === "a <b c");
  const explorer = await opened(base, () => page.click("#explore button"));
  await until(explorer, "the explorer draws", () => document.querySelector("#figure svg, #figure canvas, #figure table"));
  check((await text(explorer, "body")).includes("a <b c"), "the explorer has the text");
  await explorer.$$eval("#views button", (all) => all.at(-1).click());
  check((await explorer.$$("#figure .unit")).length > 4, "the explorer has the search");
  await sound(explorer, "the explorer");
  await shot(explorer, "explorer");
  await explorer.close();

  // ---- What the server refuses is said
  await page.evaluate(() => { document.getElementById("q").removeAttribute("maxlength"); });
  await page.$eval("#q", (q) => { q.value = "a ".repeat(3000); q.dispatchEvent(new Event("input")); });
  await until(page, "a message", () => document.getElementById("status").innerText.includes("exceeds text limit (5000)"));
  page.wrong.length = 0; // the browser logs the status 400
  await page.close();

  // ---- The keyboard alone: type, go to the second word, choose another one
  const keys = await open(base, "/translator/en");
  for (let i = 0; i < 40 && (await focused(keys)) !== "q"; i++) await keys.keyboard.press("Tab");
  await keys.keyboard.type("a b c");
  await until(keys, "typed", LOOKED);
  await keys.keyboard.press("Tab");
  const words = (await text(keys, "#output")).trim().split(" ");
  check((await focused(keys)) === words[0], `Tab leads to the first word, not ${await focused(keys)}`);
  await keys.keyboard.press("ArrowRight");
  check((await focused(keys)) === words[1], "an arrow leads to the second word");
  check((await text(keys, "#said")).startsWith(words[1] + " ←"), "its sources are said");
  await keys.keyboard.press("Enter");
  await until(keys, "words to choose", () => document.activeElement.closest("#choices li"));
  await keys.keyboard.press("Escape");
  check((await focused(keys)) === words[1] && (await keys.$eval("#choices", (e) => e.hidden)), "Escape leads back");
  await keys.keyboard.press("Enter");
  await until(keys, "words to choose again", () => document.activeElement.closest("#choices li"));
  await keys.keyboard.press("Tab");
  const chosen = await keys.evaluate(() => document.activeElement.firstChild.data);
  await keys.keyboard.press("Enter");
  await until(keys, "chosen by the keyboard", (word) => document.getElementById("output").innerText.trim().split(" ")[1] === word, chosen);
  await until(keys, "the focus is on it", (word) => document.activeElement.innerText === word, chosen);
  await sound(keys, "the keyboard");
  await keys.close();

  // ---- Without JavaScript a plain form translates, and says what was wrong
  const still = await open(base, "/", { script: false, width: 360 });
  await still.select("#source", "de");
  await still.type("#q", "a b <c>");
  await Promise.all([still.waitForNavigation(), still.click("#go")]);
  check((await text(still, "#output")) === translated("a b <c>"), `the form says ${await text(still, "#output")}`);
  check((await still.$eval("#q", (q) => q.value)) === "a b <c>", "the text is kept");
  check((await still.$$("#others li")).length > 0, "the form lists other translations");
  await fits(still, "without JavaScript");
  await shot(still, "translator still");
  await Promise.all([still.waitForNavigation(), still.$eval("#q", (q) => { q.value = ""; }).then(() => still.click("#go"))]);
  check((await text(still, "#status")) === "Invalid request: missing q parameter", "the form says what is missing");
  still.wrong.length = 0;
  await still.close();

  const policy = (await fetch(base + "/")).headers.get("content-security-policy");
  check(policy?.startsWith("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"), `the policy is ${policy}`);

  // ---- A server that wants a key
  const locked = await serve("-m", "de-en=" + file("de-en"), "--api-keys", file("keys"), "--require-key");
  const key = await open(locked.base, "/translator/en");
  await key.type("#q", "a b c");
  await until(key, "a key is asked for", () => document.getElementById("status").innerText.includes("API key"));
  key.wrong.length = 0;
  await key.type("#key input", "secret");
  await key.keyboard.press("Tab");
  await until(key, "with the key", LOOKED);
  await sound(key, "a key");
  await key.close();
  await locked.end();
});
await end();
rmSync(folder, { recursive: true });
finish();
