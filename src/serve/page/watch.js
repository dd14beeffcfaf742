// Curves of runs while they go on: the server reads their logs, and this page asks for them every two seconds.
const texts = await (await fetch("/translator/" + document.documentElement.lang + ".json")).json();
const say = (name) => texts["watch." + name] ?? name;
const WIDTH = Math.min(520, innerWidth - 32), HEIGHT = 220, LEFT = 62, BOTTOM = 26, TOP = 8, RIGHT = 8;
const SVG = "http://www.w3.org/2000/svg";

function make(tag, settings = {}, ...children) {
  const element = tag.startsWith("svg:") ? document.createElementNS(SVG, tag.slice(4)) : document.createElement(tag);
  for (const [name, value] of Object.entries(settings)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const short = (value) => (value === 0 ? "0" : Math.abs(value) >= 1e5 || Math.abs(value) < 1e-3 ? value.toExponential(1) : String(Number(value.toPrecision(3))));
function time(seconds) {
  const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const i = Math.max(0, parts.findIndex(([size]) => seconds >= size));
  if (seconds < 1) return "0 s";
  const [size, unit] = parts[i], rest = parts[i + 1];
  return `${Math.floor(seconds / size)} ${unit}` + (rest && i < 2 ? ` ${Math.floor((seconds % size) / rest[0])} ${rest[1]}` : "");
}

// One chart: the same number of every run over its updates.
function chart(name, runs) {
  const title = name.startsWith("score ") ? `${say("score")}: ${name.slice(6)}` : say(name);
  const lines = runs.map((run, i) => ({ run, i, points: run.series[name] ?? [] })).filter(({ points }) => points.length);
  const all = lines.flatMap(({ points }) => points);
  const right = Math.max(1, ...all.map(([x]) => x)), low = Math.min(...all.map(([, y]) => y)), high = Math.max(...all.map(([, y]) => y));
  const span = high - low || Math.abs(high) || 1, bottom = high > low ? low : low - span / 2;
  const x = (value) => LEFT + ((WIDTH - LEFT - RIGHT) * value) / right;
  const y = (value) => HEIGHT - BOTTOM - ((HEIGHT - BOTTOM - TOP) * (value - bottom)) / span;
  const last = lines.map(({ run, points }) => `${run.name} ${short(points.at(-1)[1])}`).join(", ");
  const svg = make("svg:svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${title}: ${last}` });
  const power = 10 ** Math.floor(Math.log10(span / 4)), step = power * [1, 2, 5, 10].find((n) => 4 * n * power >= span * 0.999);
  for (let i = Math.ceil(bottom / step); i * step <= bottom + span * 1.001; i++) {
    const value = i * step;
    svg.append(make("svg:line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }), make("svg:text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, short(value)));
  }
  for (let i = 0; i <= 4; i++) svg.append(make("svg:text", { x: x((right * i) / 4), y: HEIGHT - 8, "text-anchor": i === 4 ? "end" : i ? "middle" : "start" }, short(Math.round((right * i) / 4))));
  for (const { i, points } of lines) {
    const path = points.map(([u, v], n) => `${n ? "L" : "M"}${x(u).toFixed(1)} ${y(v).toFixed(1)}`).join("");
    svg.append(make("svg:path", { class: `curve run${i % 6}${i >= 6 ? " dashed" : ""}`, d: path }));
    if (points.length < 2) svg.append(make("svg:circle", { class: `dot run${i % 6}`, cx: x(points[0][0]), cy: y(points[0][1]), r: 3 }));
  }
  return make("figure", {}, make("figcaption", {}, title), svg);
}

function row(run, i) {
  const last = (name) => run.series[name]?.at(-1)?.[1];
  const number = (value, digits) => make("td", {}, value === undefined ? "" : digits === undefined ? short(value) : value.toFixed(digits));
  const state = run.ended !== null ? `${say("ended")}: ${run.ended}` : run.quiet > 600 ? `${say("quiet")} ${time(run.quiet)}` : run.left !== null ? time(run.left) : "";
  return make("tr", {}, make("th", { scope: "row" }, make("span", { class: `key run${i % 6}${i >= 6 ? " dashed" : ""}`, "aria-hidden": "true" }), " " + run.name),
    number(run.update, 0), number(last("loss"), 4), number(last("rate")), number(last("words"), 0), make("td", {}, state));
}

let before = "";
async function draw() {
  try {
    const answer = await (await fetch("/watch/runs")).text();
    document.getElementById("status").textContent = "";
    if (answer === before) return;
    before = answer;
    const runs = JSON.parse(answer);
    const names = ["loss", ...new Set(runs.flatMap((run) => Object.keys(run.series)).filter((name) => name.startsWith("score "))), "rate", "words"].filter((name) => runs.some((run) => run.series[name]?.length));
    document.getElementById("runs").replaceChildren(...runs.map(row));
    document.getElementById("curves").replaceChildren(...names.map((name) => chart(name, runs)));
    if (!runs.length) document.getElementById("status").textContent = say("none");
  } catch {
    document.getElementById("status").textContent = say("gone");
  }
}
await draw();
setInterval(() => { if (!document.hidden) draw(); }, 2000);
