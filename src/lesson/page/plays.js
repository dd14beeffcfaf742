// What can be played with, by page. Each builds its controls, asks the library and draws the answer.
import { button, choice, curves, editor, heat, labelled, make, say, short, slider, tick } from "/lesson/lesson.js";

const X = [[1, 3, 2], [1, 1, 3], [1, 2, 1]], Y = [[1.95, 1.05, 2], [1, 2, 2], [1.6, 2.4, 0.6]];
const ENGLISH = ["I", "am", "good"], CHINESE = ["我", "很", "好"];
const row = (...children) => make("div.row", {}, ...children);
const words = (text) => text.trim().split(/\s+/).filter(Boolean).slice(0, 12);
const zeros = (rows, columns) => Array.from({ length: rows }, () => Array(columns).fill(0));
const unit = (rows, columns) => zeros(rows, columns).map((line, i) => line.map((_, j) => (i === j ? 1 : 0)));
const numbers = (count) => Array.from({ length: count }, (_, i) => String(i));

function sentence(text, listener) {
  const input = make("input", { type: "text", value: text, input: listener });
  return [labelled(say("sentence"), input), input];
}

function example(box, ask) {
  const out = row();
  const update = async () => {
    other.element.hidden = !both.checked;
    const columns = both.checked ? CHINESE : ENGLISH;
    const answer = await ask({ ask: "attend", score: score.value, query: x.read(), ...(both.checked && { key: other.read() }) });
    if (!answer) return;
    out.replaceChildren(
      heat(say("scores"), answer[0].scores[0], { rows: ENGLISH, columns }),
      heat(say("weights"), answer[0].weights[0], { rows: ENGLISH, columns, most: 1, digits: 4 }),
      heat(say("output"), answer[0].output, { rows: ENGLISH, digits: 5 }));
  };
  const x = editor("X", X, update, ENGLISH), other = editor("Y", Y, update, CHINESE);
  const [scoreLabel, score] = choice(say("score"), ["dot", "scaled"], "dot", update);
  const [bothLabel, both] = tick(say("other"), update);
  box.append(row(x.element, other.element), row(scoreLabel, bothLabel, button(say("reset"), () => { x.write(X); other.write(Y); update(); })), out);
  update();
}

function qkv(box, ask) {
  const out = row();
  const names = ["WQ", "WK", "WV"];
  const update = async () => {
    const parameters = Object.fromEntries(names.map((name, i) => [name, matrices[i].read()]));
    const answer = await ask({ ask: "attend", query: x.read(), parameters });
    if (!answer) return;
    const [a] = answer;
    out.replaceChildren(
      heat("Q", a.q, { rows: ENGLISH }), heat("K", a.k, { rows: ENGLISH }), heat("V", a.v, { rows: ENGLISH }),
      heat(say("scores"), a.scores[0], { rows: ENGLISH, columns: ENGLISH }),
      heat(say("weights"), a.weights[0], { rows: ENGLISH, columns: ENGLISH, most: 1 }),
      heat(say("output"), a.output, { rows: ENGLISH, digits: 3 }));
  };
  const x = editor("X", X, update, ENGLISH);
  const matrices = names.map((name) => editor(name, unit(2, 3), update));
  const set = (values) => { matrices.forEach((matrix, i) => matrix.write(values[i])); update(); };
  box.append(row(x.element, ...matrices.map((matrix) => matrix.element)),
    row(button(say("identity"), () => set([unit(2, 3), unit(2, 3), unit(2, 3)])),
      button(say("different"), () => set([[[1, 0, 0], [0, 1, -1]], [[0, 0, 1], [1, -1, 0]], [[0, 1, 0], [0, 0, 1]]]))), out);
  update();
}

function scaled(box, ask) {
  const out = row();
  const update = async () => {
    const d = 2 ** Number(power.value);
    shown.value = d;
    const answer = await ask({ ask: "scaling", d });
    if (!answer) return;
    const kinds = [["unscaled", answer[0].dot], ["isscaled", answer[0].scaled]];
    out.replaceChildren(
      heat(`d = ${d}`, kinds.map(([, a]) => [a.largest, a.entropy, a.gradient]),
        { rows: kinds.map(([name]) => say(name)), columns: ["largest", "entropy", "gradient"].map(say), digits: 4, most: 4 }),
      ...kinds.map(([name, a]) => heat(`${say("first")}: ${say(name)}`, a.weights, { most: 1 })));
  };
  const shown = make("output", {}, "64");
  const power = make("input", { type: "range", min: 2, max: 10, step: 1, input: update });
  power.value = 6;
  box.append(row(make("label", {}, "d", power, shown)), out);
  update();
}

function softhard(box, ask) {
  const out = row();
  const QUERY = [[1, 0.5]], KEYS = [[1, 0], [0, 1], [-1, 0.5], [0.5, 0.5]], VALUES = [[5], [6], [7], [9]];
  let seed = 1;
  const update = async () => {
    const answer = await ask({ ask: "draw", score: "dot", query: query.read()[0], key: KEYS, value: VALUES, reward: [1], draws: 2 ** Number(power.value), seed });
    shown.value = 2 ** Number(power.value);
    if (!answer) return;
    const [a] = answer;
    out.replaceChildren(
      heat(say("weights"), [a.weights, a.frequency], { rows: [say("soft"), say("frequency")], columns: KEYS.map((_, i) => `${say("place")}\u00A0${i + 1}`), most: 1, digits: 3 }),
      heat(say("gradient"), [a.exact, a.plain.mean, a.baseline.mean], { rows: [say("exact"), say("plain"), say("baseline")], columns: ["q1", "q2"], digits: 3, most: 4 }),
      heat(say("noise"), [a.plain.deviation, a.baseline.deviation], { rows: [say("plain"), say("baseline")], columns: ["q1", "q2"], digits: 3, most: 10 }));
  };
  const query = editor(say("query"), QUERY, update);
  const shown = make("output", {}, "16");
  const power = make("input", { type: "range", min: 0, max: 10, step: 1, input: update });
  power.value = 4;
  box.append(row(query.element), row(make("label", {}, say("draws"), power, shown), button(say("again"), () => { seed++; update(); })), out);
  update();
}

function windows(box, ask) {
  const out = row();
  const update = async () => {
    const list = words(text.value), D = width.value;
    const SIZE = 16, query = { words: list, size: SIZE, scale: 0.7 };
    const Wp = [Array.from({ length: SIZE }, (_, i) => (i % 3 === 0 ? 0.9 : -0.4))];
    const kinds = ["global", `local-m:${D}`, `local-p:${D}`];
    const answers = await ask(...kinds.map((window, i) => ({ ask: "attend", query, window, ...(i === 2 && { parameters: { Wp, vp: [Number(v.value)] } }) })));
    if (answers)
      out.replaceChildren(...kinds.map((kind, i) => heat(kind, answers[i].weights[0], { rows: list, columns: list, most: 1 })));
  };
  const [textLabel, text] = sentence("the cat sat on the mat and slept", update);
  const [widthLabel, width] = slider(say("size"), 1, 4, 1, 1, update);
  const [vLabel, v] = slider(say("v"), -3, 3, 0.5, 1.5, update);
  box.append(row(textLabel), row(widthLabel, vLabel), out);
  update();
}

function scores(box, ask) {
  const out = row();
  const swap = [[0, 1, 0], [1, 0, 0], [0, 0, 1]];
  const kinds = [["dot"], ["scaled"], ["general", { W: swap }], ["additive", { W: unit(3, 3), U: unit(3, 3), v: [1, 1, 1] }]];
  const update = async () => {
    const answers = await ask(...kinds.map(([score, parameters]) => ({ ask: "attend", score, parameters: parameters ?? {}, normaliser: normaliser.value, query: query.read(), key: keys.read() })));
    if (!answers) return;
    const rows = kinds.map(([name]) => name), columns = ["k1", "k2", "k3"];
    out.replaceChildren(heat(say("scores"), answers.map((a) => a.scores[0][0]), { rows, columns }),
      heat(say("weights"), answers.map((a) => a.weights[0][0]), { rows, columns, most: 1 }));
  };
  const query = editor(say("query"), [[1, 2, -1]], update);
  const keys = editor(say("keys"), [[1, 1, 0], [2, 0.5, 1], [-1, 1, -1]], update, ["k1", "k2", "k3"]);
  const [label, normaliser] = choice(say("normaliser"), ["softmax", "sparsemax", "entmax15", "sigmoid", "relu", "hard"], "softmax", update);
  box.append(row(query.element, keys.element), row(label, button(say("times"), () => { query.write(query.read().map((line) => line.map((x) => 10 * x))); update(); }),
    button(say("reset"), () => { query.write([[1, 2, -1]]); update(); })), out);
  update();
}

function heads(box, ask) {
  const out = row();
  const update = async () => {
    const list = words(text.value), H = Number(count.value);
    const answer = await ask({ ask: "attend", query: { words: list, size: 16, scale: 1 }, heads: H });
    if (!answer) return;
    const look = list.indexOf("it") >= 0 ? list.indexOf("it") : list.length - 1;
    const maps = answer[0].weights;
    out.replaceChildren(
      heat(`${list[look]} →`, maps.map((map) => map[look]), { rows: maps.map((_, h) => `${say("head")}\u00A0${h + 1}`), columns: list, most: 1 }),
      ...maps.map((map, h) => heat(`${say("head")} ${h + 1}`, map, { tight: true, most: 1 })));
  };
  const [textLabel, text] = sentence("A dog ate the food because it was hungry", update);
  const [countLabel, count] = choice(say("heads"), ["1", "2", "4", "8"], "4", update);
  box.append(row(textLabel, countLabel), out);
  update();
}

function encoder(box, ask) {
  const out = row();
  let seed = 1;
  const update = async () => {
    const answer = await ask({ ask: "layer", query: x.read(), heads: Number(count.value), seed });
    if (!answer) return;
    const [a] = answer;
    out.replaceChildren(...[["MultiHead(X)", a.attention], ["X + MultiHead(X)", a.sum], ["A = LayerNorm", a.normed], ["FFN(A)", a.ffn], ["R = LayerNorm(A + FFN(A))", a.output]]
      .map(([title, values]) => heat(title, values, { rows: ENGLISH, digits: 3 })));
  };
  const x = editor("X", [[1, 3, 2, 0], [1, 1, 3, 0], [1, 2, 1, 1]], update, ENGLISH);
  const [label, count] = choice(say("heads"), ["1", "2", "4"], "2", update);
  box.append(row(x.element), row(label, button(say("weights2"), () => { seed++; update(); })), out);
  update();
}

// The request that draws a kind, and the one that applies it to words.
const SHAW = { first: [0, 3, 0, -1, 0], last: [-2, 8, 0, -2, -4] };
function positions(box, ask) {
  const out = row(), below = row();
  const SIZE = 16, N = 12;
  const kinds = ["sinusoidal", "learned", "shaw", "rope", "alibi"];
  const drawing = {
    sinusoidal: () => ({ ask: "positions", kind: "sinusoidal", length: 32, size: 32 }),
    learned: () => ({ ask: "positions", kind: "learned", length: 32, size: 32 }),
    rope: () => ({ ask: "positions", kind: "rope", length: 32, size: 32 }),
    // Keys of zeros and vectors that are their own distance: the scores are clip(j - i, 2).
    shaw: () => ({ ask: "attend", score: "dot", position: "shaw:2:keys", query: Array(N).fill([1]), key: Array(N).fill([0]), parameters: { wK: [[-2], [-1], [0], [1], [2]] } }),
    alibi: () => ({ ask: "attend", score: "dot", position: "alibi", heads: 4, query: zeros(N, 4) }),
  };
  const applied = (name, list) => {
    const query = { words: list, size: SIZE, scale: 0.6, ...(["sinusoidal", "learned"].includes(name) && { added: name }) };
    const wK = SHAW.first.map((a, i) => { const line = Array(SIZE).fill(0); line[0] = a; line[SIZE - 1] = SHAW.last[i]; return line; });
    return { ask: "attend", query, ...(name === "shaw" && { position: "shaw:2:keys", parameters: { wK } }), ...(["rope", "alibi"].includes(name) && { position: name }) };
  };
  const update = async () => {
    const list = words(text.value), name = kind.value;
    const answers = await ask(drawing[name](), applied("none", list), applied(name, list));
    if (!answers) return;
    const [drawn, none, chosen] = answers;
    out.replaceChildren(...(drawn.table ? [heat(name, drawn.table, { tight: true, most: 1, rows: numbers(32) })]
      : drawn.scores.map((map, h) => heat(drawn.scores.length > 1 ? `${name}, ${say("head")} ${h + 1}` : `${name}: j − i`, map, { rows: numbers(N), columns: numbers(N), digits: drawn.scores.length > 1 ? 1 : 0 }))));
    below.replaceChildren(heat("none", none.weights[0], { rows: list, columns: list, most: 1 }), heat(name, chosen.weights[0], { rows: list, columns: list, most: 1 }));
  };
  const [kindLabel, kind] = choice(say("kind"), kinds, "sinusoidal", update);
  const [textLabel, text] = sentence("the dog sees the cat", update);
  box.append(row(kindLabel), out, row(textLabel), below);
  update();
}

function recurrent(box, ask) {
  const out = row();
  let seed = 1;
  const update = async () => {
    const answer = await ask({ ask: "recurrent", seed });
    if (!answer) return;
    const { left, lengths, milliseconds } = answer[0];
    out.replaceChildren(
      make("div", {}, make("h3", {}, say("left")), curves(say("left"), Object.entries(left).map(([name, values]) => ({ name, values })), { log: true, labels: ["t = 1", "64"] })),
      heat(say("left"), Object.values(left).map((values) => [1, 3, 7, 15, 31, 63].map((t) => values[t])), { rows: Object.keys(left), columns: ["2", "4", "8", "16", "32", "64"], digits: 4, most: 1 }),
      heat(say("time"), Object.values(milliseconds), { rows: Object.keys(milliseconds), columns: lengths.map((n) => `n = ${n}`), digits: 3 }));
  };
  box.append(row(button(say("measure"), () => { seed++; update(); })), out);
  update();
}

const MODELS = ["rnn-plain", "rnn-attention", "rnn-encdec", "bahdanau", "luong", "transformer"];
function learn(task, first, stop) {
  return (box, ask) => {
    const curve = make("div"), says = row();
    let running = false, at = 0, seed = 1;
    const draw = (a) => {
      curve.replaceChildren(make("h3", {}, say("curve")), a.losses.length === 0 ? make("p", {}, say("unlearned")) : curves(say("curve"), [{ name: a.losses.length ? a.losses.at(-1).toPrecision(3) : "", values: a.losses }], { log: true, labels: ["0", String(a.update)] }));
      const table = make("table", {}, make("caption", {}, say("says")));
      for (const { source, output } of a.says) {
        const end = output.indexOf("E");
        const join = (list) => list.filter((s) => s !== "P").join(task === "beer" ? " " : "");
        table.append(make("tr", {}, make("th", { scope: "row" }, join(source)), make("td", {}, "→"), make("td", {}, join(end < 0 ? output : output.slice(0, end)))));
      }
      const reading = a.says.at(-1);
      says.replaceChildren(table, reading.weights
        ? heat(say("looks"), reading.weights, { rows: reading.output, columns: reading.source, most: 1 })
        : make("p", {}, say("none")));
      count.value = a.update;
    };
    const go = async (to) => {
      const answer = await ask({ ask: "learn", task, model: model.value, seed, update: to, ...(word?.value && { word: word.value }) });
      if (!answer) { set(false); return false; }
      at = answer[0].update;
      draw(answer[0]);
      return true;
    };
    const set = (on) => { running = on; start.textContent = say(on ? "pause" : "start"); };
    const run = async () => {
      set(!running);
      while (running && at < stop && box.isConnected && !box.closest("section").hidden) if (!(await go(at + 25))) return;
      set(false);
    };
    const again = () => { set(false); at = 0; go(0); };
    const [modelLabel, model] = choice(say("model"), MODELS, first, again);
    const start = button(say("start"), run), count = make("output", {}, "0");
    const word = task === "antonyms" ? make("input", { type: "text", maxlength: 5, size: 6, pattern: "[a-z]{1,5}", change: () => { if (!running) go(at); } }) : null;
    box.append(row(modelLabel, start, button(say("step"), () => { set(false); go(Math.min(stop, at + 25)); }), button(say("begin"), () => { seed++; again(); }), make("span", {}, say("update") + " ", count)),
      word ? row(labelled(say("word"), word)) : "", curve, says);
    go(0);
  };
}

// A picture of 6 x 6 cells: colour and shape of each, or nothing.
const SCENE = { 7: ["red", "circle"], 10: ["blue", "circle"], 20: ["red", "square"], 27: ["blue", "triangle"], 34: ["red", "triangle"] };
const SIGN = { circle: ["●", "○"], square: ["■", "□"], triangle: ["▲", "△"] };
const FEATURES = ["red", "blue", "circle", "square", "triangle"];
function scenes(box, ask) {
  const out = row();
  let seed = 1;
  const key = Array.from({ length: 36 }, (_, i) => FEATURES.map((name) => (SCENE[i]?.includes(name) ? 1 : 0)));
  const grid = (title, values, most) => {
    const table = make("table.grid", {}, make("caption", {}, title));
    for (let r = 0; r < 6; r++)
      table.append(make("tr", {}, ...[0, 1, 2, 3, 4, 5].map((c) => {
        const i = 6 * r + c, object = SCENE[i];
        const cell = make("td.heat", { title: short(values[i], 3) }, object ? SIGN[object[1]][object[0] === "red" ? 0 : 1] : "");
        cell.setAttribute("aria-label", `${object ? `${say(object[0])} ${say(object[1])}, ` : ""}${short(values[i], 3)}`);
        cell.style.setProperty("--share", Math.min(1, values[i] / most));
        return cell;
      })));
    return make("div.scroll", {}, table);
  };
  const update = async () => {
    const asked = FEATURES.filter((_, i) => boxes[i].checked);
    const sharpness = Number(sharp.value);
    const query = [FEATURES.map((name) => (asked.includes(name) ? sharpness : 0)), ...FEATURES.map((name) => FEATURES.map((other) => (other === name ? sharpness : 0)))];
    const answers = await ask({ ask: "attend", score: "dot", query: [query[0]], key, normaliser: hard.checked ? "hard" : "softmax", sample: hard.checked, seed },
      { ask: "attend", score: "dot", query: query.slice(1), key });
    if (!answers) return;
    const map = answers[0].weights[0][0];
    out.replaceChildren(grid(say("map"), map, Math.max(...map)), grid(say("sums"), answers[1].sums[0], Math.max(...answers[1].sums[0])));
  };
  const ticks = FEATURES.map((name) => tick(say(name), update)), boxes = ticks.map(([, element]) => element);
  boxes[0].checked = boxes[2].checked = true;
  const [sharpLabel, sharp] = slider(say("sharp"), 0, 6, 0.5, 3, update);
  const [hardLabel, hard] = tick(say("hard"), update);
  box.append(make("fieldset", {}, make("legend", {}, say("asks")), row(...ticks.map(([label]) => label))),
    row(sharpLabel, hardLabel, button(say("again"), () => { seed++; update(); })),
    make("p", {}, `● ■ ▲ ${say("red")}   ○ □ △ ${say("blue")}`), out);
  update();
}

export const plays = { example, qkv, scaled, softhard, windows, scores, heads, encoder, positions, recurrent,
  antonyms: learn("antonyms", "rnn-plain", 1000), beer: learn("beer", "rnn-attention", 1000), scenes };
