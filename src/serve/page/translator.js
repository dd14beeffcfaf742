// The translator's page. The text is translated while one types; each word of the translation is a button that shows its
// sources, and, when pressed, other words at its place. What is shown is asked from the server that sent this page.
const texts = await (await fetch("/translator/" + document.documentElement.lang + ".json")).json();
const say = (name, values = {}) => texts["js." + name].replace(/\{(\w+)\}/g, (_, key) => values[key] ?? "");
const at = (id) => document.getElementById(id);
const source = at("source"), target = at("target"), q = at("q"), output = at("output"), key = document.querySelector("#key input");
const most = Number(document.body.dataset.most), LOOKED = 1000; // characters of a line whose weights are asked for

function make(tag, settings = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(settings)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

function tell(text, wrong = false) {
  at("status").textContent = text;
  at("status").classList.toggle("wrong", wrong);
}

// ---- Questions to the server

let asking = new AbortController();
async function ask(path, body) {
  const values = { source: said ?? source.value, target: target.value, ...body };
  if (key.value) values.api_key = key.value;
  const response = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(values), signal: asking.signal });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

// ---- The translation

let said = null; // the language that was detected
let sure = null; // the confidence of the translation; null: not known
let lines = []; // {source, target, words: [[before, word]], sources, weights, yours: words that were forced}
let line = -1, word = -1; // where one is

async function translate() {
  asking.abort();
  asking = new AbortController();
  said = null;
  close();
  const text = q.value;
  if (!text.trim()) { show([]); trust(null); tell(""); return; }
  try {
    tell(say("translating"));
    const answer = await ask("/translate", { q: text, format: "text", alternatives: most, confidence: true });
    said = answer.detectedLanguage?.language ?? null;
    tell(said ? say("detected", { language: nameOf(said) }) : "");
    sure = answer.confidence ?? null;
    use(text, answer.translatedText, [answer.translatedText, ...(answer.alternatives ?? [])]);
  } catch (error) {
    if (error.name !== "AbortError") { show([]); trust(null); tell(error.message, true); }
  }
}

// Shows a translation, then asks where its words come from.
async function use(text, translation, all) {
  trust(all ? sure : null);
  const sources = text.split("\n"), targets = translation.split("\n");
  show(targets.map((line, i) => ({ source: sources[i] ?? "", target: line, yours: 0 })), all);
  await lookAll();
}

// How much of the translation is likely to be right. It is that of the best one, as the search found it.
function trust(confidence) {
  at("sure").hidden = confidence === null;
  at("percent").textContent = confidence === null ? "" : String(Math.round(100 * confidence));
}

async function lookAll() {
  try {
    for (const one of lines.slice()) if (!one.words) await look(one);
  } catch (error) {
    if (error.name !== "AbortError") tell(say("noattention") + " " + error.message);
  }
}

async function look(one) {
  if (!one.source.trim() || !one.target.trim() || one.source.length > LOOKED || one.target.length > LOOKED) return;
  const answer = await ask("/attention", { q: one.source, translation: one.target });
  Object.assign(one, { words: answer.target, sources: answer.source, weights: answer.weights });
  const index = lines.indexOf(one);
  if (index >= 0) output.children[index].replaceWith(lineOf(one, index));
  reachable();
}

let all = []; // the translations of the whole text
function show(list, translations = all) {
  lines = list;
  all = translations;
  line = word = -1;
  output.replaceChildren(...lines.map(lineOf));
  output.lang = target.value;
  at("looked").hidden = true;
  const others = [...new Set(all)].filter((text) => text !== lines.map((one) => one.target).join("\n"));
  at("others").hidden = lines.length === 0 || others.length === 0;
  at("others").querySelector("ul").replaceChildren(...others.map((text) => make("li", {}, make("button", { type: "button", lang: target.value, click: () => { close(); use(q.value, text); } }, text))));
  explorable();
}

function lineOf(one, index) {
  const element = make("div");
  if (!one.words) element.append(one.target);
  else
    one.words.forEach(([before, text], i) => element.append(before, text === "" ? "" : make("button", {
      type: "button", class: i < one.yours ? "word yours" : "word", tabindex: -1, "aria-haspopup": "true",
      pointerenter: () => go(index, i), focus: () => go(index, i), click: () => choose(index, i),
    }, text)));
  return element;
}

const buttons = () => [...output.querySelectorAll("button.word")];
const buttonAt = (l, w) => output.children[l]?.querySelectorAll("button.word")[w];

// One word can be reached by the tab key; the arrow keys lead to the others.
function reachable() {
  const list = buttons(), here = buttonAt(line, word) ?? list[0];
  for (const button of list) button.tabIndex = button === here ? 0 : -1;
}

output.addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key], list = buttons();
  const to = event.key === "Home" ? 0 : event.key === "End" ? list.length - 1 : step ? list.indexOf(document.activeElement) + step : -1;
  if (list[to]) { list[to].focus(); event.preventDefault(); }
});

// ---- Where the model looked

function go(l, w) {
  const one = lines[l];
  if (!one?.words) return;
  line = l;
  word = w;
  reachable();
  for (const button of buttons()) { button.classList.remove("here", "light"); }
  buttonAt(l, w).classList.add("here");
  const weights = one.weights[w] ?? [], largest = Math.max(0.01, ...weights.map(([, weight]) => weight));
  at("looked").hidden = false;
  at("words").lang = said ?? source.value;
  at("words").replaceChildren(...one.sources.flatMap(([before, text], i) => {
    const weight = weights.find(([index]) => index === i)?.[1] ?? 0;
    const span = make("span", weight ? { class: "light", title: weight.toFixed(3) } : {}, text);
    span.style.setProperty("--share", weight / largest);
    span.addEventListener("pointerenter", () => back(one, l, i));
    return [before, span];
  }));
  const first = weights.slice().sort((a, b) => b[1] - a[1]).slice(0, 3);
  at("said").textContent = one.words[w][1] + " ← " + (first.length ? first.map(([i, weight]) => `${one.sources[i][1]} ${weight.toFixed(2)}`).join(", ") : say("none"));
  explorable();
}

// The other way: the words that a source word was looked at for.
function back(one, l, s) {
  const weights = one.weights.map((row) => row.find(([index]) => index === s)?.[1] ?? 0), largest = Math.max(0.01, ...weights);
  weights.forEach((weight, i) => {
    const button = buttonAt(l, i);
    button?.classList.toggle("light", weight > 0);
    button?.style.setProperty("--share", weight / largest);
  });
}

// ---- Other words at a place

const percent = (p) => (p < 0.001 ? "< 0.1 %" : (100 * p).toFixed(p < 0.1 ? 1 : 0) + " %");

let place = null; // {line, word, start}
const startBefore = (one, w) => one.words.slice(0, w).map(([before, text]) => before + text).join("");

async function choose(l, w) {
  const one = lines[l], start = startBefore(one, w);
  go(l, w);
  place = { one, word: w, start };
  try {
    const answer = await ask("/alternatives", { q: one.source, start, alternatives: 8 });
    const list = at("choices").querySelector("ul");
    at("choices").querySelector(".start").textContent = start.trim() ? say("after", { start: start.trim().slice(-40) }) : say("first");
    list.replaceChildren(...answer.alternatives.map((choice) => make("li", {},
      make("button", { type: "button", "aria-pressed": String(choice.word === one.words[w][1]), click: () => force(choice.start, choice.word) }, choice.word || say("end"),
        " ", make("span", { class: "share" }, percent(choice.probability))))));
    list.lang = target.value;
    at("own-word").value = "";
    at("choices").hidden = false;
    list.querySelector("button")?.focus();
  } catch (error) {
    if (error.name !== "AbortError") tell(error.message, true);
  }
}

// The line begins with these words, and the search goes on from there.
async function force(start, forced) {
  const { one, word: w } = place;
  try {
    const answer = await ask("/alternatives", { q: one.source, start, alternatives: 0 });
    const index = lines.indexOf(one);
    const fresh = { source: one.source, target: answer.translatedText, yours: 0 };
    close();
    trust(null);
    const changed = lines.slice();
    changed[index] = fresh;
    show(changed);
    tell(say("forced", { word: forced || say("end") }));
    await look(fresh);
    fresh.yours = Math.min(w + 1, fresh.words?.length ?? 0);
    output.children[index].replaceWith(lineOf(fresh, index));
    reachable();
    (buttonAt(index, w) ?? buttonAt(index, w - 1))?.focus();
  } catch (error) {
    if (error.name !== "AbortError") tell(error.message, true);
  }
}

function close() {
  at("choices").hidden = true;
  place = null;
}

at("own").addEventListener("submit", (event) => {
  event.preventDefault();
  const own = at("own-word").value.trim();
  if (own && place) force(place.start + (place.word > 0 ? place.one.words[place.word][0] : "") + own, own);
});
function back_to_text() {
  const here = buttonAt(line, word);
  close();
  here?.focus();
}
at("close").addEventListener("click", back_to_text);
at("choices").addEventListener("keydown", (event) => { if (event.key === "Escape") back_to_text(); });

// ---- The explorer, the languages, and what starts a translation

function explorable() {
  const form = at("explore"), one = lines[line] ?? lines.find((each) => each.target.trim());
  form.hidden = !one;
  if (!one) return;
  const values = { source: said ?? source.value, target: target.value, q: one.source, translation: one.target, api_key: key.value };
  for (const [name, value] of Object.entries(values)) form.elements[name].value = value;
}

const names = new Intl.DisplayNames([document.documentElement.lang], { type: "language", fallback: "none" });
function nameOf(code) {
  try { return names.of(code) ?? code; } catch { return code; }
}
for (const option of [...source.options, ...target.options]) {
  const name = option.value === "auto" ? null : nameOf(option.value);
  if (name && name !== option.value) option.textContent = name;
}

at("swap").addEventListener("click", () => {
  const from = said ?? source.value;
  if ([...source.options].some((option) => option.value === target.value)) source.value = target.value;
  if ([...target.options].some((option) => option.value === from)) target.value = from;
  const translation = lines.map((one) => one.target).join("\n");
  if (translation) q.value = translation;
  translate();
});

let timer = 0;
function soon() {
  clearTimeout(timer);
  timer = setTimeout(translate, 350);
}
q.addEventListener("input", soon);
key.addEventListener("change", soon);
source.addEventListener("change", translate);
target.addEventListener("change", translate);
at("ask").addEventListener("submit", (event) => { event.preventDefault(); clearTimeout(timer); translate(); });
at("swap").hidden = false;
at("go").hidden = true;
document.documentElement.classList.add("ready");
if (q.value.trim()) translate();
