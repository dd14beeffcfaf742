'use strict';
(() => {
const data = JSON.parse(document.getElementById('data').textContent);
const $ = id => document.getElementById(id);
const views = ['matrix', 'heads', 'model', 'pair', 'picture', 'difference'];
const titles = { matrix: 'Matrix', heads: 'Heads', model: 'Model', pair: 'Pair', picture: 'Picture', difference: 'Difference' };
const specials = new Set(['<s>', '</s>', '<pad>', '<unk>']);
const most = 8; // lines from a word in the view of heads
const state = { view: 'matrix', kind: '', head: '', against: '', level: data.levels[0].name, special: true, sort: 'layer', at: null };

/* ---- Maps ---- */

const level = () => data.levels.find(l => l.name === state.level) || data.levels[0];
const kinds = () => level().kinds;
const kind = () => kinds().find(k => k.name === state.kind) || kinds()[0];
const mapNamed = name => kind().maps.find(m => m.name === name) || kind().maps[0];
const chosen = () => mapNamed(state.head);
const pairMap = () => chosen().q ? chosen() : kind().maps.find(m => m.q); // a mean has no queries
const heads = () => kind().maps.filter(m => m.layer > 0 && !m.other);

function bytesOf(text) {
  const raw = atob(text), bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

/* A weight is low + n (high - low) / steps of its row, n of one or two bytes; of long rows the largest are there, with
   their columns. */
function valuesOf(map, k) {
  if (map.values) return map.values;
  const rows = k.rows.length, columns = k.columns.length, bytes = bytesOf(map.bytes);
  const values = new Float32Array(rows * columns), per = map.columns ? data.top : columns;
  const index = map.columns ? bytesOf(map.columns) : null;
  for (let i = 0; i < rows; i++)
    for (let p = 0; p < per; p++) {
      const n = i * per + p, j = index ? index[2 * n] + 256 * index[2 * n + 1] : p, low = map.low ? map.low[i] : 0;
      const step = map.steps > 255 ? bytes[2 * n] + 256 * bytes[2 * n + 1] : bytes[n];
      values[i * columns + j] = low + step * (map.high[i] - low) / map.steps;
    }
  return map.values = values;
}

/* What is shown of a map: the rows and columns without those that are switched off. */
function shown(map) {
  const k = kind(), keep = names => names.map((n, i) => i).filter(i => state.special || !specials.has(names[i]));
  const values = valuesOf(map, k), rows = keep(k.rows), columns = keep(k.columns), width = k.columns.length;
  return { k, map, rows, columns, rowNames: rows.map(i => k.rows[i]), columnNames: columns.map(j => k.columns[j]),
           value: (r, c) => values[rows[r] * width + columns[c]] };
}

/* ---- Colours ---- */

const darkQuery = matchMedia('(prefers-color-scheme: dark)');
let printing = false;
const isDark = () => darkQuery.matches && !printing;
let ramp = data.ramps.light; // set by render
const ink = () => isDark()
  ? { ground: '#15171c', text: '#e4e8ee', muted: '#a3afbb', low: '#d8dee6', high: '#10131a', gold: '#ff4fa3', line: '#7db3ec', less: '#e08a5b' }
  : { ground: '#fff', text: '#1c2733', muted: '#55636f', low: '#22303c', high: '#fff', gold: '#d9480f', line: '#18578f', less: '#b4541a' };
const known = new Map();
function rgb(hex) {
  if (!known.has(hex)) known.set(hex, [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16)));
  return known.get(hex);
}

/* From 0 to the largest weight of all, rounded up; other values from the smallest to the largest. */
function scaleOf(...all) {
  let low = Infinity, high = -Infinity;
  for (const s of all)
    for (let r = 0; r < s.rows.length; r++)
      for (let c = 0; c < s.columns.length; c++) { const v = s.value(r, c); low = Math.min(low, v); high = Math.max(high, v); }
  if (low >= 0 && high <= 1) return { low: 0, high: [.001, .002, .005, .01, .02, .05, .1, .2, .5, 1].find(x => high <= x + 1e-6) };
  return low <= high ? { low, high } : { low: 0, high: 1 };
}
const shadeOf = (scale, v) => scale.high > scale.low ? Math.max(0, Math.min(1, (v - scale.low) / (scale.high - scale.low))) : .5;
const colourOf = shade => ramp[Math.round(shade * (ramp.length - 1))];
const figure = v => chosen().steps > 255 ? v.toFixed(4) : '≈ ' + v.toFixed(3);

/* ---- Elements ---- */

function make(name, attributes, ...children) {
  const e = document.createElement(name);
  for (const a in attributes || {}) a === 'text' ? e.textContent = attributes[a] : a.startsWith('on') ? e.addEventListener(a.slice(2), attributes[a]) : e.setAttribute(a, attributes[a]);
  e.append(...children);
  return e;
}
function draw(parent, name, attributes, text) {
  const e = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const a in attributes) e.setAttribute(a, attributes[a]);
  if (text !== undefined) e.textContent = text;
  parent.append(e);
  return e;
}
function drawing(width, height, label) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  for (const [a, v] of [['xmlns', 'http://www.w3.org/2000/svg'], ['width', width], ['height', height], ['viewBox', `0 0 ${width} ${height}`]]) svg.setAttribute(a, v);
  svg.setAttribute('role', 'img');
  svg.setAttribute('aria-label', label);
  svg.setAttribute('font-family', 'system-ui, sans-serif');
  draw(svg, 'rect', { width, height, fill: ink().ground });
  return svg;
}
const ruler = document.createElement('canvas').getContext('2d');
function widthOf(text, size) {
  ruler.font = `${size}px system-ui, sans-serif`;
  return ruler.measureText(text).width;
}
const visible = name => name === ' ' ? '␣' : name;
function cut(name, size, room) {
  let text = [...visible(name)];
  if (widthOf(text.join(''), size) <= room) return text.join('');
  while (text.length > 1 && widthOf(text.join('') + '…', size) > room) text.pop();
  return text.join('') + '…';
}
const label = s => `${kind().title}, ${s.map.title}`;

function tell(text, event) {
  $('status').textContent = text;
  const tip = $('tip');
  tip.hidden = !event || !text;
  if (tip.hidden) return;
  tip.textContent = text;
  tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)) + 'px';
  tip.style.top = Math.min(event.clientY + 16, innerHeight - tip.offsetHeight - 8) + 'px';
}

/* ---- The matrix ---- */

/* Many cells are one picture of a pixel each, some are rectangles. */
function paint(s, colour) {
  const canvas = document.createElement('canvas');
  canvas.width = Math.max(1, s.columns.length);
  canvas.height = Math.max(1, s.rows.length);
  const context = canvas.getContext('2d'), image = context.createImageData(canvas.width, canvas.height), pixels = image.data;
  for (let r = 0, at = 0; r < s.rows.length; r++)
    for (let c = 0; c < s.columns.length; c++, at += 4) {
      const [red, green, blue] = rgb(colour(s.value(r, c)));
      pixels[at] = red;
      pixels[at + 1] = green;
      pixels[at + 2] = blue;
      pixels[at + 3] = 255;
    }
  context.putImageData(image, 0, 0);
  return canvas;
}

function geometry(s) {
  const columns = s.columns.length, rows = s.rows.length, few = columns <= 24 && rows <= 24;
  const widest = Math.max(0, ...s.columnNames.map(n => widthOf(visible(n), 13)));
  const g = { cell: few ? 40 : Math.max(2, Math.min(18, Math.floor(1000 / Math.max(rows, columns, 1)))), few };
  g.tall = few ? 26 : g.cell;
  if (few && widest + 10 <= 84) g.cell = Math.max(40, Math.ceil(widest + 10));
  g.level = few && widest + 10 <= g.cell;
  g.font = Math.max(7, Math.min(13, g.tall));
  g.every = Math.ceil(g.font / g.tall);
  g.left = 8 + Math.ceil(Math.min(220, Math.max(0, ...s.rowNames.map(n => widthOf(visible(n), g.font))))) + 8;
  g.top = g.level ? 26 : Math.ceil(Math.min(160, widest * g.font / 13)) + 12;
  g.width = g.left + columns * g.cell + 12;
  g.height = g.top + rows * g.tall + 52;
  return g;
}

function drawMatrix(s, colour, scale, legend) {
  const g = geometry(s), colours = ink(), svg = drawing(Math.max(g.width, 420), g.height, label(s));
  s.columnNames.forEach((name, c) => {
    if (c % g.every) return;
    const x = g.left + c * g.cell + g.cell / 2, y = g.top - 6;
    if (g.level) draw(svg, 'text', { x, y, 'text-anchor': 'middle', 'font-size': g.font, fill: colours.text }, visible(name));
    else draw(svg, 'text', { transform: `translate(${x + g.font * .36} ${y}) rotate(-90)`, 'font-size': g.font, fill: colours.text }, cut(name, g.font, 156));
  });
  s.rowNames.forEach((name, r) => {
    if (r % g.every) return;
    draw(svg, 'text', { x: g.left - 7, y: g.top + r * g.tall + g.tall / 2 + g.font * .36, 'text-anchor': 'end', 'font-size': g.font, fill: colours.text }, cut(name, g.font, 216));
  });
  const wide = s.columns.length * g.cell, high = s.rows.length * g.tall, gap = g.cell >= 12 ? 1 : 0;
  if (s.rows.length * s.columns.length > 4000)
    draw(svg, 'image', { x: g.left, y: g.top, width: wide, height: high, preserveAspectRatio: 'none', style: 'image-rendering: pixelated', href: paint(s, colour).toDataURL() });
  else
    for (let r = 0; r < s.rows.length; r++)
      for (let c = 0; c < s.columns.length; c++) {
        const v = s.value(r, c), x = g.left + c * g.cell, y = g.top + r * g.tall;
        draw(svg, 'rect', { x, y, width: g.cell - gap, height: g.tall - gap, fill: colour(v) });
        if (g.few && (Math.abs(v) >= .005 || scale.high > 1))
          draw(svg, 'text', { x: x + (g.cell - 1) / 2, y: y + g.tall / 2 + 4, 'text-anchor': 'middle', 'font-size': 11, fill: legend.dark(v) ? colours.high : colours.low }, v.toFixed(2));
      }
  if (state.level === data.linked)
    for (const [row, column, possible] of data.links) {
      const r = s.rows.indexOf(row), c = s.columns.indexOf(column);
      if (kind().name === data.linkedKind && r >= 0 && c >= 0)
        draw(svg, 'rect', { x: g.left + c * g.cell, y: g.top + r * g.tall, width: g.cell - gap, height: g.tall - gap, fill: 'none', stroke: colours.gold, 'stroke-width': Math.min(2, g.cell / 4), 'stroke-dasharray': possible ? '4 3' : 'none' });
    }
  const y = g.top + high + 14;
  for (let i = 0; i < 20; i++) draw(svg, 'rect', { x: 14 + 8 * i, y, width: 8, height: 10, fill: colour(scale.low + (i + .5) / 20 * (scale.high - scale.low)) });
  draw(svg, 'text', { x: 14, y: y + 24, 'font-size': 11, fill: colours.muted }, +scale.low.toPrecision(3));
  draw(svg, 'text', { x: 174, y: y + 24, 'text-anchor': 'end', 'font-size': 11, fill: colours.muted }, +scale.high.toPrecision(3));
  draw(svg, 'text', { x: 190, y: y + 9, 'font-size': 11, fill: colours.muted }, `rows: ${kind().rowTitle} · columns: ${kind().columnTitle}`);
  if (data.links.length && state.level === data.linked) draw(svg, 'text', { x: 190, y: y + 24, 'font-size': 11, fill: colours.gold }, '▭ gold links');
  const cursor = draw(svg, 'rect', { fill: 'none', stroke: colours.text, 'stroke-width': 2, width: g.cell, height: g.tall, visibility: 'hidden' });
  function point(r, c, event) {
    const inside = r >= 0 && c >= 0 && r < s.rows.length && c < s.columns.length;
    cursor.setAttribute('visibility', inside ? 'visible' : 'hidden');
    cursor.setAttribute('x', g.left + c * g.cell);
    cursor.setAttribute('y', g.top + r * g.tall);
    state.at = inside ? [r, c] : state.at;
    tell(inside ? `${visible(s.rowNames[r])} → ${visible(s.columnNames[c])}: ${figure(s.value(r, c))}` : '', event);
  }
  const cellAt = event => {
    const box = svg.getBoundingClientRect(), x = (event.clientX - box.left) * svg.viewBox.baseVal.width / box.width, y0 = (event.clientY - box.top) * svg.viewBox.baseVal.height / box.height;
    return [Math.floor((y0 - g.top) / g.tall), Math.floor((x - g.left) / g.cell)];
  };
  svg.addEventListener('mousemove', event => point(...cellAt(event), event));
  svg.addEventListener('dblclick', event => available('pair') && set({ view: 'pair', at: cellAt(event).map((v, i) => Math.max(0, Math.min(v, (i ? s.columns : s.rows).length - 1))) }));
  svg.addEventListener('mouseleave', () => { tell(''); cursor.setAttribute('visibility', 'hidden'); });
  svg.setAttribute('tabindex', 0);
  svg.addEventListener('keydown', event => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!step) return;
    event.preventDefault();
    const [r, c] = state.at || [-step[0] > 0 ? 1 : 0, 0], clamp = (v, n) => Math.max(0, Math.min(n - 1, v));
    point(clamp(r + (state.at ? step[0] : 0), s.rows.length), clamp(c + (state.at ? step[1] : 0), s.columns.length));
  });
  return svg;
}

function matrixView() {
  const s = shown(chosen()), scale = scaleOf(s);
  return drawMatrix(s, v => colourOf(shadeOf(scale, v)), scale, { dark: v => shadeOf(scale, v) > .62 });
}

/* The weights of one head less those of another: from orange, less, over the ground to blue, more. */
function differenceView() {
  const a = shown(chosen()), b = shown(mapNamed(state.against || kind().maps[0].name));
  const s = { ...a, value: (r, c) => a.value(r, c) - b.value(r, c), map: { title: `${a.map.title} less ${b.map.title}` } };
  let largest = 0;
  for (let r = 0; r < s.rows.length; r++) for (let c = 0; c < s.columns.length; c++) largest = Math.max(largest, Math.abs(s.value(r, c)));
  largest = largest || 1;
  const ground = rgb(isDark() ? '#20242b' : '#f5f7f9'), more = rgb(ink().line), less = rgb(ink().less);
  const mix = v => '#' + ground.map((x, i) => Math.round(x + ((v > 0 ? more : less)[i] - x) * Math.min(1, Math.abs(v) / largest)).toString(16).padStart(2, '0')).join('');
  return drawMatrix(s, mix, { low: -largest, high: largest }, { dark: v => Math.abs(v) / largest > .62 });
}

/* ---- Heads: lines between two columns of words ---- */

function headsView() {
  const s = shown(chosen()), colours = ink(), font = 14, step = 24, rows = s.rows.length, columns = s.columns.length;
  const room = 240, left = 16 + Math.ceil(Math.min(room, Math.max(60, ...s.rowNames.map(n => widthOf(visible(n), font))))), right = left + (innerWidth < 600 ? 110 : 260);
  const width = right + 16 + Math.ceil(Math.min(room, Math.max(40, ...s.columnNames.map(n => widthOf(visible(n), font))))) + 60;
  const svg = drawing(width, Math.max(rows, columns) * step + 44, label(s)), lines = [], words = [];
  draw(svg, 'text', { x: left - 8, y: 16, 'text-anchor': 'end', 'font-size': 11, fill: colours.muted }, kind().rowTitle);
  draw(svg, 'text', { x: right + 8, y: 16, 'font-size': 11, fill: colours.muted }, kind().columnTitle);
  const yOf = i => 36 + i * step;
  for (let r = 0; r < rows; r++) {
    const order = [...Array(columns).keys()].sort((x, y) => s.value(r, y) - s.value(r, x)).slice(0, most);
    for (const c of order) {
      const w = s.value(r, c);
      if (!(w > .01)) continue;
      const y1 = yOf(r) - 4, y2 = yOf(c) - 4, middle = (left + right) / 2;
      lines.push({ r, c, w, e: draw(svg, 'path', { d: `M${left} ${y1}C${middle} ${y1} ${middle} ${y2} ${right} ${y2}`, fill: 'none', stroke: colours.line, 'stroke-width': Math.max(.5, 7 * Math.min(1, w)), 'stroke-opacity': .25 + .6 * Math.min(1, w) }) });
    }
  }
  function light(side, index, event) {
    for (const l of lines) l.e.setAttribute('visibility', index < 0 || (side ? l.c : l.r) === index ? 'visible' : 'hidden');
    for (const w of words) {
      const v = index < 0 || w.side === side ? 0 : side ? s.value(w.index, index) : s.value(index, w.index);
      w.number.textContent = v >= .005 ? v.toFixed(2) : '';
      w.e.setAttribute('fill-opacity', index < 0 || w.side === side ? (index < 0 || w.index === index ? 1 : .35) : .35 + .65 * Math.min(1, 3 * v));
      w.e.setAttribute('font-weight', w.side === side && w.index === index ? 'bold' : 'normal');
    }
    const best = index < 0 ? [] : [...Array(side ? rows : columns).keys()].map(i => [side ? s.value(i, index) : s.value(index, i), i]).sort((x, y) => y[0] - x[0]).slice(0, 5);
    tell(index < 0 ? '' : visible((side ? s.columnNames : s.rowNames)[index]) + (side ? ' ← ' : ' → ') + best.filter(b => b[0] >= .005).map(b => `${visible((side ? s.rowNames : s.columnNames)[b[1]])} ${b[0].toFixed(2)}`).join(', '));
  }
  for (const side of [0, 1])
    (side ? s.columnNames : s.rowNames).forEach((name, index) => {
      const x = side ? right + 8 : left - 8, e = draw(svg, 'text', { x, y: yOf(index), 'text-anchor': side ? 'start' : 'end', 'font-size': font, fill: colours.text, class: 'word', tabindex: 0, role: 'button' }, cut(name, font, room));
      const number = draw(svg, 'text', { x: side ? width - 8 : left + 4, y: yOf(index), 'text-anchor': side ? 'end' : 'start', 'font-size': 11, fill: colours.muted });
      words.push({ side, index, e, number });
      for (const type of ['mouseenter', 'focus']) e.addEventListener(type, event => light(side, index, event));
      for (const type of ['mouseleave', 'blur']) e.addEventListener(type, () => light(side, -1));
    });
  svg.setAttribute('role', 'group');
  return svg;
}

/* ---- The model: a small map for every head ---- */

function modelView() {
  const all = heads().slice(), across = state.sort === 'layer' ? Math.max(...all.map(m => m.head)) : Math.max(1, Math.floor((innerWidth - 40) / 150));
  if (state.sort !== 'layer') all.sort((a, b) => (state.sort === 'sharp' ? 1 : -1) * (a.entropy - b.entropy));
  const grid = make('div', { class: 'grid', style: `grid-template-columns: repeat(${across}, max-content)` });
  const size = Math.max(64, Math.min(150, Math.floor((innerWidth - 60) / across) - 22));
  const scale = scaleOf(...all.map(shown));
  for (const map of all) {
    const s = shown(map), canvas = paint(s, v => colourOf(shadeOf(scale, v)));
    const longer = Math.max(canvas.width, canvas.height);
    canvas.style.width = Math.max(8, canvas.width / longer * size) + 'px';
    canvas.style.height = Math.max(8, canvas.height / longer * size) + 'px';
    canvas.setAttribute('role', 'img');
    canvas.setAttribute('aria-label', label(s));
    const entropy = map.entropy.toFixed(2);
    grid.append(make('button', { type: 'button', class: 'thumb', 'aria-pressed': map.name === state.head, title: `${map.title}: mean entropy of a row ${entropy} nats`,
      onclick: () => set({ head: map.name, view: 'matrix' }) }, canvas, make('span', {}, make('b', { text: map.name }), ` ${entropy} nats`)));
  }
  return grid;
}

/* ---- A pair: how its weight came about ---- */

function vectorOf(text, unit, index, size) {
  const bytes = bytesOf(text), view = new DataView(bytes.buffer);
  return Array.from({ length: size }, (_, d) => view.getInt16(2 * (index * size + d), true) * unit);
}
function drawBars(svg, values, y, title, largest) {
  const colours = ink(), step = Math.max(3, Math.min(24, Math.floor(640 / values.length))), high = 34, zero = y + high;
  draw(svg, 'text', { x: 8, y: zero + 4, 'font-size': 13, fill: colours.text }, title);
  draw(svg, 'path', { d: `M110 ${zero}h${step * values.length}`, stroke: colours.muted, 'stroke-width': .5 });
  values.forEach((v, d) => {
    const size = Math.min(high, Math.abs(v) / largest * high), bar = draw(svg, 'rect', { x: 110 + d * step, y: v > 0 ? zero - size : zero, width: step - 1, height: Math.max(.3, size), fill: v > 0 ? colours.line : colours.less });
    draw(bar, 'title', {}, `${d + 1}: ${v.toPrecision(4)}`);
  });
}
function pairView() {
  const map = pairMap(), s = shown(map), colours = ink(), box = make('div', {});
  const [r, c] = state.at && state.at[0] < s.rows.length && state.at[1] < s.columns.length ? state.at : [0, 0];
  const pick = (names, value, change, title) => {
    const select = make('select', { onchange: e => set({ at: change(+e.target.value) }) });
    fill(select, names.map((n, i) => [i, `${visible(n)}`]), value);
    return make('label', { style: 'margin-right: 1em' }, `${title} `, select);
  };
  const q = vectorOf(map.q, map.qUnit, s.rows[r], map.size), scale = map.scaled ? 1 / Math.sqrt(map.size) : 1;
  const keyed = s.k.columns.map((n, j) => vectorOf(map.k, map.kUnit, j, map.size)), all = valuesOf(map, s.k).subarray(s.rows[r] * s.k.columns.length);
  const dot = k => k.reduce((sum, x, d) => sum + x * q[d], 0), scores = keyed.map(k => scale * dot(k)), k = keyed[s.columns[c]];
  const [from, to] = map.seen[s.rows[r]], open = scores.map((e, j) => j).filter(j => j >= from && j < to), top = Math.max(...open.map(j => scores[j])), total = open.reduce((sum, j) => sum + Math.exp(scores[j] - top), 0);
  const products = q.map((x, d) => x * k[d]), largest = Math.max(1e-9, ...q.map(Math.abs), ...k.map(Math.abs)), score = scores[s.columns[c]], w = open.includes(s.columns[c]) ? Math.exp(score - top) / total : -1;
  const shownScores = s.columns.map((j, i) => [i, j]).filter(([i, j]) => j >= from && j < to).sort((a, b) => scores[b[1]] - scores[a[1]]).slice(0, 24);
  const svg = drawing(800, 400 + 20 * shownScores.length, `${label(s)}: ${s.rowNames[r]} and ${s.columnNames[c]}`);
  drawBars(svg, q, 8, 'query q', largest);
  drawBars(svg, k, 92, 'key k', largest);
  drawBars(svg, products, 176, 'q × k', Math.max(1e-9, ...products.map(Math.abs)));
  const line = (y, text) => draw(svg, 'text', { x: 8, y, 'font-size': 14, fill: colours.text }, text);
  line(284, `q · k = Σ q_d k_d = ${dot(k).toFixed(4)}`);
  line(308, map.scaled ? `score e = q · k / √${map.size} = ${score.toFixed(4)}` : `score e = q · k = ${score.toFixed(4)}`);
  line(332, w >= 0 ? `weight = exp(e) / Σ exp(e_j) over ${open.length} key${open.length === 1 ? '' : 's'} = ${w.toFixed(4)}` : 'weight = 0: this key is outside the window of the query');
  draw(svg, 'text', { x: 8, y: 364, 'font-size': 12, fill: colours.muted }, `the scores of ${visible(s.rowNames[r])} with the keys that it sees, and their weights`);
  shownScores.forEach(([i, j], n) => {
    const y = 386 + 20 * n, value = all[j];
    draw(svg, 'text', { x: 150, y, 'text-anchor': 'end', 'font-size': 12, fill: colours.text, 'font-weight': i === c ? 'bold' : 'normal' }, cut(s.columnNames[i], 12, 140));
    draw(svg, 'text', { x: 215, y, 'text-anchor': 'end', 'font-size': 12, fill: colours.muted }, scores[j].toFixed(3));
    draw(svg, 'rect', { x: 230, y: y - 11, width: Math.max(.5, 300 * value), height: 13, fill: colours.line });
    draw(svg, 'text', { x: 236 + 300 * value, y, 'font-size': 12, fill: colours.text }, value.toFixed(4));
  });
  box.append(make('p', {}, pick(s.rowNames, r, i => [i, c], 'query'), pick(s.columnNames, c, i => [r, i], 'key')), svg);
  return box;
}

/* ---- The picture: what each word attends to ---- */

let image = null;
function overlay(s, r, size) {
  const canvas = document.createElement('canvas'), { rows, columns } = data.picture, ratio = image.height / image.width;
  canvas.width = ratio > 1 ? Math.round(size / ratio) : size;
  canvas.height = ratio > 1 ? size : Math.round(size * ratio);
  const context = canvas.getContext('2d');
  context.imageSmoothingEnabled = image.width > size;
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  let largest = 0;
  for (let c = 0; c < s.columns.length; c++) largest = Math.max(largest, s.value(r, c));
  for (let c = 0; r >= 0 && c < s.columns.length; c++) {
    const x = c % columns, y = Math.floor(c / columns), at = (i, n, all) => Math.floor(i * all / n);
    context.fillStyle = `rgba(127,133,140,${.82 * (1 - (largest > 0 ? s.value(r, c) / largest : 0))})`;
    context.fillRect(at(x, columns, canvas.width), at(y, rows, canvas.height), at(x + 1, columns, canvas.width) - at(x, columns, canvas.width), at(y + 1, rows, canvas.height) - at(y, rows, canvas.height));
  }
  return canvas;
}
function pictureView() {
  const s = shown(chosen()), box = make('div', {}), large = make('div', { class: 'large' }), grid = make('div', { class: 'grid', style: 'grid-template-columns: repeat(auto-fill, 130px)' });
  if (!image) {
    image = new Image();
    image.onload = render;
    image.src = data.picture.address;
  }
  if (!image.complete || !image.width) return box;
  const choose = r => {
    state.at = [r, 0];
    large.replaceChildren(overlay(s, r, 360));
    [...grid.children].forEach((b, i) => b.setAttribute('aria-pressed', i === r));
    tell(s.rowNames[r]);
  };
  s.rowNames.forEach((name, r) => {
    const canvas = overlay(s, r, 120);
    canvas.setAttribute('role', 'img');
    canvas.setAttribute('aria-label', `where "${name}" looks`);
    grid.append(make('button', { type: 'button', class: 'thumb', onclick: () => choose(r), onfocus: () => choose(r) }, canvas, make('span', {}, make('b', { text: visible(name) }))));
  });
  box.append(large, grid);
  choose(state.at && state.at[0] < s.rows.length ? state.at[0] : 0);
  return box;
}

/* ---- State, controls, keys ---- */

function available(view) {
  return view === 'picture' ? data.picture && kind().name === 'cross' : view === 'model' ? heads().length > 0 : view === 'pair' ? !!pairMap() : view === 'difference' ? kind().maps.length > 1 : true;
}
function readHash() {
  const given = new URLSearchParams(location.hash.slice(1));
  for (const name of ['view', 'kind', 'head', 'against', 'level', 'sort']) if (given.has(name)) state[name] = given.get(name);
  if (given.has('special')) state.special = given.get('special') === '1';
}
function writeHash() {
  const { view, kind: k, head, against, level: l, sort, special } = state, parts = new URLSearchParams({ view, kind: k, head, level: l, special: special ? 1 : 0 });
  if (view === 'model') parts.set('sort', sort);
  if (view === 'difference') parts.set('against', against);
  history.replaceState(null, '', '#' + parts);
}
function settle() {
  if (!data.levels.some(l => l.name === state.level)) state.level = data.levels[0].name;
  state.kind = kind().name;
  if (!kind().maps.some(m => m.name === state.head)) state.head = kind().maps[0].name;
  if (!kind().maps.some(m => m.name === state.against)) state.against = (kind().maps.find(m => m.other) || heads()[0] || kind().maps[0]).name;
  if (!views.includes(state.view) || !available(state.view)) state.view = 'matrix';
  if (!['layer', 'sharp', 'even'].includes(state.sort)) state.sort = 'layer';
}
function set(change) {
  Object.assign(state, change);
  if (!('at' in change)) state.at = null;
  settle();
  writeHash();
  render();
}
const fill = (select, options, value) => {
  select.replaceChildren(...options.map(([v, text]) => make('option', { value: v, text })));
  select.value = value;
};
const draws = { matrix: matrixView, heads: headsView, model: modelView, pair: pairView, picture: pictureView, difference: differenceView };

function render() {
  ramp = data.ramps[isDark() ? 'dark' : 'light'];
  $('views').replaceChildren(...views.filter(available).map(v => make('button', { type: 'button', 'aria-pressed': v === state.view, text: titles[v], onclick: () => set({ view: v }) })));
  fill($('kind'), kinds().map(k => [k.name, k.title]), state.kind);
  fill($('head'), kind().maps.map(m => [m.name, m.title]), state.head);
  fill($('against'), kind().maps.map(m => [m.name, m.title]), state.against);
  $('sort').value = state.sort;
  $('against-label').hidden = state.view !== 'difference';
  $('sort-label').hidden = state.view !== 'model';
  $('words').checked = state.level === 'word';
  $('words').parentElement.hidden = data.levels.length < 2;
  $('special').checked = state.special;
  $('save').hidden = !['matrix', 'heads', 'pair', 'difference'].includes(state.view);
  $('formula').textContent = chosen().formula || '';
  $('figure').replaceChildren(draws[state.view]());
  if (state.view === 'pair') $('head').value = pairMap().name;
  if (state.view !== 'picture') tell('');
}

function save() {
  const svg = $('figure').querySelector('svg').cloneNode(true), text = new XMLSerializer().serializeToString(svg);
  const address = URL.createObjectURL(new Blob([text], { type: 'image/svg+xml' }));
  make('a', { href: address, download: `${state.kind}.${state.head}.svg` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
function tsv() {
  const s = shown(chosen()), clean = n => n.replace(/[\t\n\r]/g, ' ');
  return [['', ...s.columnNames.map(clean)].join('\t'), ...s.rowNames.map((n, r) => [clean(n), ...s.columns.map((_, c) => +s.value(r, c).toPrecision(4))].join('\t'))].join('\n') + '\n';
}
async function copy() {
  const text = tsv();
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = make('textarea', {});
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
  tell(`copied ${chosen().title} as a table`);
}

document.title = data.title;
$('title').textContent = data.title;
if (data.source) $('text').append(make('b', { text: data.source }), ' → ', make('b', { text: data.target }), data.other ? ` · other model: ${data.other}` : '');
$('kind').onchange = e => set({ kind: e.target.value });
$('head').onchange = e => set({ head: e.target.value });
$('against').onchange = e => set({ against: e.target.value });
$('sort').onchange = e => set({ sort: e.target.value });
$('words').onchange = e => set({ level: e.target.checked ? 'word' : 'subword' });
$('special').onchange = e => set({ special: e.target.checked });
$('save').onclick = save;
$('copy').onclick = copy;
addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === 'SELECT') return;
  const open = views.filter(available), names = kind().maps.map(m => m.name), at = names.indexOf(state.head);
  if (event.key >= '1' && event.key <= String(open.length)) set({ view: open[event.key - 1] });
  else if (event.key === '[' && at > 0) set({ head: names[at - 1] });
  else if (event.key === ']' && at + 1 < names.length) set({ head: names[at + 1] });
  else if (event.key === 'w' && data.levels.length > 1) set({ level: state.level === 'word' ? 'subword' : 'word' });
  else if (event.key === 's') set({ special: !state.special });
});
addEventListener('hashchange', () => { readHash(); settle(); render(); });
addEventListener('beforeprint', () => { printing = true; render(); });
addEventListener('afterprint', () => { printing = false; render(); });
darkQuery.addEventListener('change', render);
readHash();
settle();
render();
})();
