// The shell of the lesson: one page at a time, and what the plays share. Numbers come from the library: see ask().
import { plays } from "/lesson/plays.js";

export const texts = await (await fetch("/lesson/" + document.documentElement.lang + ".json")).json();
export const say = (name) => texts["js." + name] ?? name;

// ---- Elements

// make("td.heat", {"aria-label": "x"}, child, "text"): functions are listeners.
export function make(what, settings = {}, ...children) {
  const [tag, ...classes] = what.split(".");
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  for (const [name, value] of Object.entries(settings)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

// A label around a control, and the control itself is returned by `control`.
export function labelled(text, control) {
  return make("label", {}, text, control);
}

export function choice(text, names, chosen, listener) {
  const select = make("select", { change: listener }, ...names.map((name) => make("option", { value: name }, name)));
  select.value = chosen;
  return [labelled(text, select), select];
}

export function slider(text, least, most, step, value, listener) {
  const shown = make("output", {}, String(value));
  const input = make("input", { type: "range", min: least, max: most, step, input: () => { shown.value = input.value; listener(); } });
  input.value = value;
  return [make("label", {}, text, input, shown), input];
}

export function button(text, listener) {
  return make("button", { type: "button", click: listener }, text);
}

export function tick(text, listener) {
  const box = make("input", { type: "checkbox", change: listener });
  return [make("label", {}, box, text), box];
}

// ---- Matrices

export const short = (value, digits = 2) => (value === null ? "" : Number(value).toFixed(digits));

// A table of numbers with colours: from 0 to 1, or from -most to most.
export function heat(title, values, { rows, columns, digits = 2, most, tight = false } = {}) {
  const largest = most ?? Math.max(1e-12, ...values.flat().map((v) => Math.abs(v ?? 0)));
  const table = make("table" + (tight ? ".tight" : ""), {}, make("caption", {}, title));
  if (columns)
    table.append(make("tr", {}, make("td"), ...columns.map((name) => make("th", { scope: "col" }, name))));
  values.forEach((line, i) => {
    const row = make("tr");
    if (rows) row.append(make("th", { scope: "row" }, rows[i] ?? ""));
    else if (columns) row.append(make("td"));
    for (const value of line) {
      const cell = make("td.heat" + (value < 0 ? ".minus" : ""), tight ? { title: short(value, 3) } : {}, tight ? "" : short(value, digits));
      cell.style.setProperty("--share", Math.min(1, Math.abs(value ?? 0) / largest));
      row.append(cell);
    }
    table.append(row);
  });
  return make("div.scroll", {}, table);
}

// A table of inputs; read() is its numbers.
export function editor(title, values, listener, rows) {
  const table = make("table", {}, make("caption", {}, title));
  const inputs = values.map((line, i) => {
    const row = make("tr");
    if (rows) row.append(make("th", { scope: "row" }, rows[i]));
    table.append(row);
    return line.map((value, j) => {
      const input = make("input", { type: "number", step: "any", value, input: listener,
        "aria-label": `${title}, ${say("row")} ${i + 1}, ${say("column")} ${j + 1}` });
      row.append(make("td", {}, input));
      return input;
    });
  });
  const read = () => inputs.map((line) => line.map((input) => Number(input.value)));
  const write = (next) => next.forEach((line, i) => line.forEach((value, j) => { inputs[i][j].value = value; }));
  return { element: make("div.scroll", {}, table), read, write };
}

// Curves over their index; logarithmic if asked. Names end each curve.
export function curves(title, lines, { log = false, labels = [], width = 560, height = 220 } = {}) {
  const svgNS = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(svgNS, "svg");
  const add = (tag, settings, text) => {
    const element = document.createElementNS(svgNS, tag);
    for (const [name, value] of Object.entries(settings)) element.setAttribute(name, value);
    if (text) element.textContent = text;
    svg.append(element);
  };
  const scale = (v) => (log ? Math.log10(Math.max(v, 1e-6)) : v);
  const all = lines.flatMap((line) => line.values).map(scale);
  const low = Math.min(...all, log ? -1 : 0), high = Math.max(...all, low + 1e-9);
  const count = Math.max(2, ...lines.map((line) => line.values.length));
  const x = (i) => 50 + (i / (count - 1)) * (width - 150), y = (v) => 15 + ((high - scale(v)) / (high - low)) * (height - 45);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("width", width);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", title);
  add("path", { class: "axis", d: `M50 10V${height - 30}H${width - 95}` });
  const shown = (v) => (log ? "1e" + Math.round(v) : v.toFixed(1));
  add("text", { x: 4, y: 20 }, shown(high));
  add("text", { x: 4, y: height - 30 }, shown(low));
  labels.forEach((label, i) => add("text", { x: x((i / Math.max(1, labels.length - 1)) * (count - 1)) - 8, y: height - 12 }, label));
  const taken = [];
  lines.forEach((line, number) => {
    if (!line.values.length) return;
    const path = line.values.map((v, i) => `${i ? "L" : "M"}${x(i).toFixed(1)} ${y(v).toFixed(1)}`).join("");
    add("path", { class: "curve" + ["", " dashed", " dotted", " dashdot"][number % 4], d: path });
    let at = y(line.values.at(-1)) + 4;
    const step = at > height / 2 ? -13 : 13; // away from the axes
    while (taken.some((other) => Math.abs(other - at) < 13)) at += step;
    taken.push(at);
    add("text", { x: x(line.values.length - 1) + 6, y: at }, line.name);
  });
  return svg;
}

// ---- Questions

// Where questions go; a server may want a key, which the address of the page has then.
const key = new URLSearchParams(location.search).get("api_key");
const address = "/lesson/answer" + (key ? "?api_key=" + encodeURIComponent(key) : "");

// The answer of the library, or null when a later question of the same play has overtaken it.
export function asker(status) {
  let last = 0;
  return async (...requests) => {
    const mine = ++last;
    status.className = "";
    const slow = setTimeout(() => { if (mine === last) status.textContent = say("wait"); }, 300);
    try {
      const answers = await Promise.all(requests.map(async (request) => {
        const response = await fetch(address, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(request) });
        const answer = await response.json();
        if (!response.ok) throw new Error(/API key/.test(answer.error) ? say("key") : answer.error);
        return answer;
      }));
      if (mine !== last) return null;
      status.textContent = "";
      setTimeout(scrollable);
      return answers;
    } catch (error) {
      if (mine === last) { status.textContent = error.message; status.className = "wrong"; }
      return null;
    } finally {
      clearTimeout(slow);
    }
  };
}

// ---- One page at a time

// What is wider than the window can be scrolled, by the keyboard too.
function scrollable() {
  for (const box of document.querySelectorAll(".formula, .play, .scroll")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}
addEventListener("resize", scrollable);

const sections = [...document.querySelectorAll("main > section")];
const turn = document.querySelector(".turn");
const started = new Set();

function show() {
  const at = Math.max(0, sections.findIndex((section) => "#" + section.id === location.hash));
  sections.forEach((section, i) => { section.hidden = i !== at; });
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === "#" + sections[at].id) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const link = (selector, to) => {
    const element = turn.querySelector(selector);
    element.hidden = !sections[to];
    if (sections[to]) element.href = "#" + sections[to].id;
  };
  link(".before", at - 1);
  link(".after", at + 1);
  turn.hidden = false;
  scrollable();
  const other = document.querySelector("header a[hreflang]");
  other.hash = "#" + sections[at].id;
  const box = sections[at].querySelector(".play");
  if (box && !started.has(box)) {
    started.add(box);
    const status = make("p", { role: "status" });
    box.replaceChildren();
    plays[box.dataset.play](box, asker(status));
    box.append(status);
  }
}

addEventListener("hashchange", () => { show(); scrollTo(0, 0); sections.find((section) => !section.hidden).focus(); });
show();
