'use strict';
(() => {
const data = JSON.parse(document.getElementById('data').textContent);
const $ = id => document.getElementById(id);
const views = ['matrix', 'heads', 'model', 'pair', 'picture', 'difference', 'beam'];
const titles = { beam: 'Beam', matrix: 'Matrix', heads: 'Heads', model: 'Model', pair: 'Pair', picture: 'Picture', difference: 'Difference' };
const specials = new Set(['<s>', '</s>', '<pad>', '<unk>']);
const importanceFormula = 'Importance: |∂L/∂ξ| for this line, L = −log p(target), ξ = 1 a factor of what the head adds, divided by the L2 norm over the heads of the layer (Michel et al. 2019). attend heads measures it on a text.';
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
  if (map.joined) return map.values = joined(map, k);
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

/* Between words, of the weights between units: a word's column is the sum of its units' columns, its row the mean of their rows. */
function joined(map, k) {
  const units = data.levels[0].kinds.find(u => u.name === k.name), from = valuesOf(units.maps.find(m => m.name === map.name), units);
  const columns = k.columns.length, wide = units.columns.length, values = new Float32Array(k.rows.length * columns), count = new Int32Array(k.rows.length);
  k.rowWords.forEach((word, i) => {
    if (word < 0) return;
    count[word]++;
    for (let j = 0; j < wide; j++) if (k.columnWords[j] >= 0) values[word * columns + k.columnWords[j]] += from[i * wide + j];
  });
  for (let r = 0; r < k.rows.length; r++) for (let c = 0; c < columns && count[r]; c++) values[r * columns + c] /= count[r];
  return values;
}

/* A map reduced to at most `thumbnail` rows and columns, each number the largest of those it stands for. Numbers that the page does
   not have are 0. */
const thumbnail = 150;
function placesOf(names) {
  const at = new Int32Array(names.length).fill(-1), kept = names.map((n, i) => i).filter(i => state.special || !specials.has(names[i])), count = Math.min(thumbnail, kept.length);
  kept.forEach((i, rank) => { at[i] = Math.floor(rank * count / kept.length); });
  return { at, count };
}
function reduced(map, k, rows, columns) {
  const wide = columns.count, values = new Float32Array(rows.count * wide).fill(map.low ? -Infinity : 0), put = (i, j, v) => {
    const place = rows.at[i] * wide + columns.at[j];
    if (rows.at[i] >= 0 && columns.at[j] >= 0 && v > values[place]) values[place] = v;
  };
  if (map.columns && !map.values) { // the largest weights of long rows
    const bytes = bytesOf(map.bytes), index = bytesOf(map.columns), two = map.steps > 255;
    for (let n = 0; n < k.rows.length * data.top; n++) {
      const i = Math.floor(n / data.top), low = map.low ? map.low[i] : 0;
      put(i, index[2 * n] + 256 * index[2 * n + 1], low + (two ? bytes[2 * n] + 256 * bytes[2 * n + 1] : bytes[n]) * (map.high[i] - low) / map.steps);
    }
  } else {
    const from = valuesOf(map, k), all = k.columns.length;
    for (let i = 0; i < k.rows.length; i++) for (let j = 0; j < all; j++) put(i, j, from[i * all + j]);
  }
  for (let n = 0; map.low && n < values.length; n++) if (values[n] === -Infinity) values[n] = 0;
  return { map, rows: rows.count, columns: wide, values };
}
/* Its picture, a pixel for each number. */
function smallPicture(s, scale) {
  const canvas = document.createElement('canvas'), colours = new Uint32Array(ramp.map(pixelOf));
  canvas.width = Math.max(1, s.columns);
  canvas.height = Math.max(1, s.rows);
  const context = canvas.getContext('2d'), image = context.createImageData(canvas.width, canvas.height), pixels = new Uint32Array(image.data.buffer), last = colours.length - 1;
  const factor = scale.high > scale.low ? last / (scale.high - scale.low) : 0, low = scale.low;
  for (let n = 0; n < s.values.length; n++) pixels[n] = colours[Math.max(0, Math.min(last, Math.round((s.values[n] - low) * factor)))];
  context.putImageData(image, 0, 0);
  return canvas;
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
const isNarrow = () => innerWidth < 460; // what stands beside a scale stands below it
let ramp = data.ramps.light; // set by render
const ink = () => isDark()
  ? { ground: '#15171c', text: '#e4e8ee', muted: '#a3afbb', low: '#d8dee6', high: '#10131a', gold: '#ff4fa3', line: '#7db3ec', less: '#e08a5b' }
  : { ground: '#fff', text: '#1c2733', muted: '#55636f', low: '#22303c', high: '#fff', gold: '#d9480f', line: '#18578f', less: '#b4541a' };
const rgb = hex => [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16));
/* A colour as a pixel: the bytes red, green, blue and 255. */
const known = new Map();
function pixelOf(hex) {
  if (!known.has(hex)) known.set(hex, new Uint32Array(new Uint8Array([...rgb(hex), 255]).buffer)[0]);
  return known.get(hex);
}

/* From 0 to the largest weight of all, rounded up; other values from the smallest to the largest. */
function scaleOf(...all) {
  let low = Infinity, high = -Infinity;
  for (const s of all)
    for (let r = 0; r < s.rows.length; r++)
      for (let c = 0; c < s.columns.length; c++) {
        const v = s.value(r, c);
        if (v < low) low = v;
        if (v > high) high = v;
      }
  return scaleFrom(low, high);
}
function scaleFrom(low, high) {
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
  const context = canvas.getContext('2d'), image = context.createImageData(canvas.width, canvas.height), pixels = new Uint32Array(image.data.buffer);
  let last = NaN, pixel = 0; // most weights of a long row are 0
  for (let r = 0, at = 0; r < s.rows.length; r++)
    for (let c = 0; c < s.columns.length; c++) {
      const v = s.value(r, c);
      if (v !== last) {
        pixel = pixelOf(colour(v));
        last = v;
      }
      pixels[at++] = pixel;
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
  const g = geometry(s), colours = ink(), narrow = isNarrow(), svg = drawing(Math.max(g.width, narrow ? 310 : 420), g.height + (narrow ? 32 : 0), label(s));
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
  const beside = narrow ? { x: 14, y: y + 42 } : { x: 190, y: y + 9 }; // the scale
  if (kind().rowTitle !== 'rows') draw(svg, 'text', { ...beside, 'font-size': 11, fill: colours.muted }, `rows: ${kind().rowTitle} · columns: ${kind().columnTitle}`);
  if (data.links.length && state.level === data.linked) draw(svg, 'text', { x: beside.x, y: beside.y + 15, 'font-size': 11, fill: colours.gold }, '▭ gold links');
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

const measured = map => map.importance !== undefined;
function modelView() {
  const all = heads().slice(), across = state.sort === 'layer' ? Math.max(...all.map(m => m.head)) : Math.max(1, Math.floor((innerWidth - 40) / 150));
  if (state.sort === 'important') all.sort((a, b) => b.importance - a.importance);
  else if (state.sort !== 'layer') all.sort((a, b) => (state.sort === 'sharp' ? 1 : -1) * (a.entropy - b.entropy));
  const grid = make('div', { class: 'grid', style: `grid-template-columns: repeat(${across}, max-content)` });
  const size = Math.max(64, Math.min(150, Math.floor((innerWidth - 60) / across) - 22));
  const k = kind(), rows = placesOf(k.rows), columns = placesOf(k.columns), small = all.map(map => reduced(map, k, rows, columns));
  let low = Infinity, high = -Infinity;
  for (const s of small) for (const v of s.values) { if (v < low) low = v; if (v > high) high = v; }
  const scale = scaleFrom(low, high);
  for (const s of small) {
    const map = s.map, canvas = smallPicture(s, scale);
    const longer = Math.max(canvas.width, canvas.height);
    canvas.style.width = Math.max(8, canvas.width / longer * size) + 'px';
    canvas.style.height = Math.max(8, canvas.height / longer * size) + 'px';
    canvas.setAttribute('role', 'img');
    canvas.setAttribute('aria-label', label(s));
    const entropy = map.entropy.toFixed(2);
    grid.append(make('button', { type: 'button', class: 'thumb', 'aria-pressed': map.name === state.head, title: `${map.title}: mean entropy of a row ${entropy} nats` + (measured(map) ? `; importance ${map.importance.toFixed(2)}` : ''),
      onclick: () => set({ head: map.name, view: 'matrix' }) }, canvas, make('span', {}, make('b', { text: map.name }), ` ${entropy} nats`, ...measured(map) ? [make('span', { class: 'importance', text: `importance ${map.importance.toFixed(2)}` })] : [])));
  }
  return grid;
}

/* ---- A pair: how its weight came about ---- */

function vectorOf(text, unit, index, size) {
  const bytes = bytesOf(text), view = new DataView(bytes.buffer);
  return Array.from({ length: size }, (_, d) => view.getInt16(2 * (index * size + d), true) * unit);
}
function drawBars(svg, values, y, title, largest, room) {
  const colours = ink(), step = Math.max(3, Math.min(24, Math.floor(room / values.length))), high = 34, zero = y + high;
  draw(svg, 'text', { x: 8, y: zero + 4, 'font-size': 13, fill: colours.text }, title);
  draw(svg, 'path', { d: `M84 ${zero}h${step * values.length}`, stroke: colours.muted, 'stroke-width': .5 });
  values.forEach((v, d) => {
    const size = Math.min(high, Math.abs(v) / largest * high), bar = draw(svg, 'rect', { x: 84 + d * step, y: v > 0 ? zero - size : zero, width: step - 1, height: Math.max(.3, size), fill: v > 0 ? colours.line : colours.less });
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
  const wide = Math.max(310, Math.min(800, innerWidth - 40)), narrow = wide < 500, names = narrow ? 90 : 150, room = wide - names - 80 - 60; // of a weight of 1
  const svg = drawing(Math.max(wide, 96 + 3 * q.length), 420 + 20 * shownScores.length, `${label(s)}: ${s.rowNames[r]} and ${s.columnNames[c]}`);
  drawBars(svg, q, 8, 'query q', largest, wide - 100);
  drawBars(svg, k, 92, 'key k', largest, wide - 100);
  drawBars(svg, products, 176, 'q × k', Math.max(1e-9, ...products.map(Math.abs)), wide - 100);
  const line = (y, text) => draw(svg, 'text', { x: 8, y, 'font-size': 14, fill: colours.text }, text);
  line(284, `q · k = Σ q_d k_d = ${dot(k).toFixed(4)}`);
  line(308, map.scaled ? `score e = q · k / √${map.size} = ${score.toFixed(4)}` : `score e = q · k = ${score.toFixed(4)}`);
  const formula = `weight = exp(e) / Σ exp(e_j) over ${open.length} key${open.length === 1 ? '' : 's'}`;
  const lines = w < 0 ? ['weight = 0: this key is outside', 'the window of the query'] : [formula, `= ${w.toFixed(4)}`];
  (narrow ? lines : [lines.join(' ')]).forEach((text, n) => line(332 + 22 * n, text));
  draw(svg, 'text', { x: 8, y: 384, 'font-size': 12, fill: colours.muted }, narrow ? 'the scores with the keys, and the weights' : `the scores of ${visible(s.rowNames[r])} with the keys that it sees, and their weights`);
  shownScores.forEach(([i, j], n) => {
    const y = 406 + 20 * n, value = all[j];
    draw(svg, 'text', { x: names, y, 'text-anchor': 'end', 'font-size': 12, fill: colours.text, 'font-weight': i === c ? 'bold' : 'normal' }, cut(s.columnNames[i], 12, names - 10));
    draw(svg, 'text', { x: names + 65, y, 'text-anchor': 'end', 'font-size': 12, fill: colours.muted }, scores[j].toFixed(3));
    draw(svg, 'rect', { x: names + 80, y: y - 11, width: Math.max(.5, room * value), height: 13, fill: colours.line });
    draw(svg, 'text', { x: names + 86 + room * value, y, 'font-size': 12, fill: colours.text }, value.toFixed(4));
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
    large.replaceChildren(overlay(s, r, Math.min(360, innerWidth - 40)));
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

/* ---- The beam: the hypotheses of every step, and where they looked ---- */

const beamOf = ([parent, name, score, logProb, end, best]) => ({ parent, name, score, logProb, kept: end > 0, ended: end === 2, best: best === 1 });
const beamState = u => u.ended ? 'ended' : u.kept ? 'kept' : 'dropped';
/* Where a hypothesis looked when the units of a step were chosen: a weight for each source unit. */
function look(step, parent) {
  const columns = data.beam.source.length, bytes = step.bytes ? bytesOf(step.bytes) : [];
  return data.beam.source.map((_, j) => step.bytes ? bytes[parent * columns + j] * step.high[parent] / step.steps : 0);
}
/* All that were kept, and as many of the others, the best. */
function fewer(units) {
  const kept = units.filter(u => u.kept);
  return [...kept, ...units.filter(u => !u.kept).sort((a, b) => b.score - a.score).slice(0, Math.max(3, kept.length))];
}
function beamView() {
  const colours = ink(), steps = data.beam.steps.map(s => fewer(s.units.map(beamOf))), font = 13, wide = 104, tall = 34, left = 14;
  const sources = data.beam.source.map(n => ({ name: n, width: Math.ceil(widthOf(visible(n), font)) + 10 }));
  const legend = [...isNarrow() ? ['bold: the result', 'struck out: the best of those that were dropped'] : ['bold: the result · struck out: the best of those that were dropped'], 'numbers: log-probability so far, without length penalty'];
  const width = Math.max(isNarrow() ? 310 : 420, left + steps.length * wide + 20);
  let x = left + 60, y = 26;
  for (const s of sources) { // the source in lines
    if (x + s.width > Math.min(width, 1100) && x > left + 60) { x = left + 60; y += 24; }
    Object.assign(s, { x, y });
    x += s.width + 4;
  }
  const top = y + 40, rows = Math.max(...steps.map(s => s.length)), svg = drawing(width, top + rows * tall + 28 + 16 * legend.length, 'the hypotheses of each step of the search');
  draw(svg, 'text', { x: left, y: 26, 'font-size': 11, fill: colours.muted }, 'source');
  for (const s of sources) {
    s.box = draw(svg, 'rect', { x: s.x, y: s.y - 15, width: s.width, height: 20, rx: 3, fill: colourOf(0) });
    s.text = draw(svg, 'text', { x: s.x + 5, y: s.y, 'font-size': font, fill: colours.text }, visible(s.name));
  }
  const place = (t, i) => [left + t * wide, top + 20 + i * tall];
  const parentOf = (t, u) => t === 0 ? -1 : steps[t - 1].map((p, i) => p.kept && !p.ended ? i : -1).filter(i => i >= 0)[u.parent];
  const lines = document.createElementNS('http://www.w3.org/2000/svg', 'g');
  svg.append(lines);
  function point(t, i, event) {
    const u = t < 0 ? null : steps[t][i], weights = u ? look(data.beam.steps[t], u.parent) : [], largest = Math.max(1e-9, ...weights);
    sources.forEach((s, j) => {
      const shade = u ? weights[j] / largest * Math.min(1, largest + .25) : 0;
      s.box.setAttribute('fill', colourOf(shade));
      s.text.setAttribute('fill', shade > .62 ? colours.high : u || isDark() ? colours.low : colours.text);
    });
    const best = weights.map((w, j) => [w, j]).sort((a, b) => b[0] - a[0]).slice(0, 3).filter(b => b[0] >= .005);
    tell(u ? `${visible(u.name)}: log p ${u.logProb.toFixed(3)}, together ${u.score.toFixed(3)}, ${beamState(u)}` + (best.length ? `; looked at ${best.map(b => `${visible(data.beam.source[b[1]])} ${b[0].toFixed(2)}`).join(', ')}` : '') : '', event);
  }
  steps.forEach((units, t) => {
    draw(svg, 'text', { x: left + t * wide, y: top, 'font-size': 11, fill: colours.muted }, t + 1);
    units.forEach((u, i) => {
      const [ux, uy] = place(t, i), from = parentOf(t, u), group = document.createElementNS('http://www.w3.org/2000/svg', 'g');
      if (from >= 0) {
        const [px, py] = place(t - 1, from), start = px + 2 + Math.min(wide - 26, widthOf(visible(steps[t - 1][from].name), font));
        draw(lines, 'path', { d: `M${start} ${py - 4}C${ux - 12} ${py - 4} ${start + 4} ${uy - 4} ${ux - 4} ${uy - 4}`, fill: 'none', stroke: u.best ? colours.line : colours.muted, 'stroke-width': u.best ? 3 : u.kept ? 1.2 : .6, 'stroke-opacity': u.best ? .9 : u.kept ? .7 : .4, 'stroke-dasharray': u.kept ? 'none' : '3 3' });
      }
      for (const [a, v] of Object.entries({ tabindex: 0, role: 'img', class: 'word unit', 'aria-label': `step ${t + 1}: ${u.name}, log p ${u.logProb.toFixed(3)}, together ${u.score.toFixed(3)}, ${beamState(u)}${u.best ? ', part of the result' : ''}` })) group.setAttribute(a, v);
      draw(group, 'text', { x: ux, y: uy, 'font-size': font, fill: u.kept ? colours.text : colours.muted, 'font-weight': u.best ? 'bold' : 'normal', 'text-decoration': u.kept ? 'none' : 'line-through' }, cut(u.name, font, wide - 26));
      draw(group, 'text', { x: ux, y: uy + 12, 'font-size': 10, fill: colours.muted }, u.score.toFixed(2) + (u.ended && u.kept ? ' end' : ''));
      svg.append(group);
      for (const type of ['mouseenter', 'focus']) group.addEventListener(type, event => point(t, i, type === 'focus' ? null : event));
      for (const type of ['mouseleave', 'blur']) group.addEventListener(type, () => point(-1));
    });
  });
  legend.forEach((line, i) => draw(svg, 'text', { x: left, y: top + rows * tall + 32 + 16 * i, 'font-size': 11, fill: colours.muted }, line));
  svg.setAttribute('role', 'group');
  return svg;
}

/* ---- State, controls, keys ---- */

function available(view) {
  return view === 'picture' ? data.picture && kind().name === 'cross' : view === 'model' ? heads().length > 0 : view === 'pair' ? !!pairMap() : view === 'difference' ? kind().maps.length > 1 : view === 'beam' ? !!data.beam : true;
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
  if (!['layer', 'sharp', 'even', 'important'].includes(state.sort) || state.sort === 'important' && !heads().every(measured)) state.sort = 'layer';
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
const draws = { matrix: matrixView, heads: headsView, model: modelView, pair: pairView, picture: pictureView, difference: differenceView, beam: beamView };

/* What is shown, in a sentence or a formula. */
function formulaOf() {
  const title = name => mapNamed(name || kind().maps[0].name).title;
  switch (state.view) {
    case 'beam': return 'Each step of the search: the units that extend the hypotheses of the step before. Point at one, and the source shows where its hypothesis looked.';
    case 'model': return heads().every(measured) ? importanceFormula : '';
    case 'picture': return `Clear where the word looks: the weight of a cell, relative to the largest of the word. ${chosen().formula || ''}`;
    case 'pair': return 'One query and one key of one head: their vectors, the products, the score, and its weight among all keys.';
    case 'difference': return `${title(state.head)} minus ${title(state.against)}: blue where the first has the larger weight, orange where the second has.`;
    default: return chosen().formula || '';
  }
}

function render() {
  ramp = data.ramps[isDark() ? 'dark' : 'light'];
  $('views').replaceChildren(...views.filter(available).map(v => make('button', { type: 'button', 'aria-pressed': v === state.view, text: titles[v], onclick: () => set({ view: v }) })));
  fill($('kind'), kinds().map(k => [k.name, k.title]), state.kind);
  fill($('head'), kind().maps.map(m => [m.name, m.title]), state.head);
  fill($('against'), kind().maps.map(m => [m.name, m.title]), state.against);
  $('sort').lastElementChild.hidden = !heads().every(measured);
  $('sort').value = state.sort;
  $('against-label').hidden = state.view !== 'difference';
  $('sort-label').hidden = state.view !== 'model';
  $('words').checked = state.level === 'word';
  $('special').checked = state.special;
  $('save').hidden = !['matrix', 'heads', 'pair', 'difference', 'beam'].includes(state.view);
  for (const id of ['kind', 'head', 'words', 'special']) $(id).parentElement.hidden = state.view === 'beam' || id === 'words' && data.levels.length < 2;
  $('formula').textContent = formulaOf();
  $('figure').replaceChildren(draws[state.view]());
  if (state.view === 'pair') $('head').value = pairMap().name;
  if (state.view !== 'picture') tell('');
}

function save() {
  const svg = $('figure').querySelector('svg').cloneNode(true), text = new XMLSerializer().serializeToString(svg);
  const address = URL.createObjectURL(new Blob([text], { type: 'image/svg+xml' }));
  make('a', { href: address, download: `${state.view === 'beam' ? 'beam' : `${state.kind}.${state.head}`}.svg` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
function tsv() {
  if (state.view === 'beam') return ['step\tparent\tunit\tlog_probability\tsum\tstate\tresult', ...data.beam.steps.flatMap((s, t) => s.units.map(beamOf).map(u => [t + 1, t ? u.parent + 1 : 0, u.name.replace(/[\t\n\r]/g, ' '), u.logProb, u.score, beamState(u), +u.best].join('\t')))].join('\n') + '\n';
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
  tell(`copied ${state.view === 'beam' ? 'the steps' : chosen().title} as a table`);
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
