// ONNX Runtime as a rival of `attend bench`. Answers lines on stdin with lines on stdout:
//   hello                                              -> hello onnxruntime VERSION, or none REASON
//   prepare SLOT BACKWARD CAUSAL SHAW ADDITIVE B H Q K D -> ready VARIANT CHECKSUM, or none REASON
//   conv SLOT BACKWARD PICTURES H W C LAYERS            -> ready VARIANT CHECKSUM, or none REASON
//   decode SLOT model=NAME hidden=N ...                 -> ready VARIANT FLOPS, or none REASON
//   run SLOT N                                         -> seconds that N calls took
//   free SLOT                                          -> freed
// One thread counts this process's CPU time, several the wall clock. Arguments: directory of the packages, threads.
'use strict';
const path = require('path');
const readline = require('readline');

const packages = path.resolve(process.argv[2]);
const threads = Number(process.argv[3] || 1);

// ---- Models, written as protocol-buffer bytes ---------------------------------------------------------------------

const FLOAT = 1, INT8 = 3, INT32 = 6, INT64 = 7, ATTRIBUTE_INT = 2, ATTRIBUTE_INTS = 7;

function varint(n)
{
    const bytes = [];
    for (; n > 127; n = Math.floor(n / 128))
        bytes.push((n % 128) | 128);
    bytes.push(n);
    return Buffer.from(bytes);
}
const number = (field, n) => Buffer.concat([varint(field * 8), varint(n)]);
const bytes = (field, body) => Buffer.concat([varint(field * 8 + 2), varint(body.length), body]);
const text = (field, s) => bytes(field, Buffer.from(s));
const message = (field, ...parts) => bytes(field, Buffer.concat(parts));

// A graph input or output: its name, and the type "tensor of elements with these dimensions".
function tensorInfo(field, {name, type, dims})
{
    const shape = dims.map((d) => message(1, number(1, d)));
    return message(field, text(1, name), message(2, message(1, number(1, type), message(2, ...shape))));
}

// One operation; its attributes are integers and lists of integers.
function node({op, domain, attributes, names, outputs})
{
    const parts = [...names.map((n) => text(1, n)), ...outputs.map((n) => text(2, n)), text(4, op)];
    for (const [name, value] of Object.entries(attributes || {}))
        parts.push(Array.isArray(value) ? message(5, text(1, name), ...value.map((v) => number(8, v)), number(20, ATTRIBUTE_INTS))
                                        : message(5, text(1, name), number(3, value), number(20, ATTRIBUTE_INT)));
    if (domain)
        parts.push(text(7, domain));
    return message(1, ...parts);
}

// A constant tensor of the graph.
function constant({name, dims, values})
{
    const raw = Buffer.from(values.buffer, values.byteOffset, values.byteLength);
    return message(5, ...dims.map((d) => number(1, d)), number(2, values instanceof Int8Array ? INT8 : FLOAT), text(8, name), bytes(9, raw));
}

function model({nodes, constants, inputs, output, opset})
{
    const graph = [...nodes.map(node), text(2, 'attention'), ...(constants || []).map(constant),
                   ...inputs.map((i) => tensorInfo(11, i)), tensorInfo(12, output)];
    return Buffer.concat([number(1, 10), message(7, ...graph), message(8, text(1, ''), number(2, opset)),
                          message(8, text(1, 'com.microsoft'), number(2, 1))]);
}

// ---- The input data of all contestants ----------------------------------------------------------------------------

// Uniform with variance 1; the same formula as in data.c and torch_worker.py.
function value(seed, i)
{
    let h = (Math.imul(i, 0x9E3779B1) + Math.imul(seed, 0x85EBCA77)) >>> 0;
    h = Math.imul(h ^ (h >>> 15), 0xC2B2AE3D) >>> 0;
    h = Math.imul(h ^ (h >>> 13), 0x27D4EB2F) >>> 0;
    return ((h >>> 8) / 16777216 * 2 - 1) * 1.7320508075688772;
}

function data(seed, count)
{
    const out = new Float32Array(count);
    for (let i = 0; i < count; i++)
        out[i] = value(seed, i);
    return out;
}

// [B,n,H*D] -> [B,H,n,D], or back.
function swap(x, B, n, H, D, back)
{
    const out = new Float32Array(x.length);
    for (let b = 0; b < B; b++)
        for (let i = 0; i < n; i++)
            for (let h = 0; h < H; h++) {
                const flat = ((b * n + i) * H + h) * D, headed = ((b * H + h) * n + i) * D;
                out.set(x.subarray(back ? headed : flat, (back ? headed : flat) + D), back ? flat : headed);
            }
    return out;
}

// ---- Variants ----------------------------------------------------------------------------------------------------

let Tensor, binding;

function start()
{
    Tensor = require(path.join(packages, 'node_modules', 'onnxruntime-common')).Tensor;
    const native = require(path.join(packages, 'node_modules', 'onnxruntime-node', 'dist', 'binding.js'));
    native.initOrt();
    binding = native.binding;
    return require(path.join(packages, 'node_modules', 'onnxruntime-node', 'package.json')).version;
}

// A call that runs the model into memory allocated once. The session is called directly, not through a promise, so
// that the time of small cases does not include JavaScript's event loop.
function session(spec, feeds)
{
    const made = new binding.InferenceSession();
    const content = model(spec);
    made.loadModel(content.buffer, content.byteOffset, content.byteLength,
                   {intraOpNumThreads: threads, interOpNumThreads: 1, graphOptimizationLevel: 'all'});
    const count = spec.output.dims.reduce((a, b) => a * b, 1), whole = spec.output.type === INT64;
    const out = whole ? new BigInt64Array(count) : new Float32Array(count);
    const fetches = {y: new Tensor(whole ? 'int64' : 'float32', out, spec.output.dims)};
    return {call: () => made.run(feeds, fetches, {}), out, close: () => made.dispose()};
}

function variants(causal, B, H, Q, K, D)
{
    const flat = [data(1, B * Q * H * D), data(2, B * K * H * D), data(3, B * K * H * D)];
    const lengths = [Q, K, K];
    const headed = flat.map((x, i) => swap(x, B, lengths[i], H, D, false));
    const dims3 = lengths.map((n) => [B, n, H * D]), dims4 = lengths.map((n) => [B, H, n, D]);
    const names = ['q', 'k', 'v'];
    const inputs = (dims) => names.map((name, i) => ({name, type: FLOAT, dims: dims[i]}));
    const feeds = (x, dims) => Object.fromEntries(names.map((name, i) => [name, new Tensor('float32', x[i], dims[i])]));
    const y3 = {name: 'y', type: FLOAT, dims: dims3[0]}, y4 = {name: 'y', type: FLOAT, dims: dims4[0]};
    const made = {
        'MultiHeadAttention': () => session({
            nodes: [{op: 'MultiHeadAttention', domain: 'com.microsoft', names, outputs: ['y'],
                     attributes: {num_heads: H, unidirectional: causal ? 1 : 0}}],
            opset: 17, output: y3, inputs: inputs(dims3)}, feeds(flat, dims3)),
        'Attention-23': () => session({
            nodes: [{op: 'Attention', names, outputs: ['y'], attributes: {is_causal: causal ? 1 : 0}}],
            opset: 23, output: y4, inputs: inputs(dims4)}, feeds(headed, dims4)),
    };
    // Keys and values stored per head, as in a decoder's cache.
    if (Q === 1) {
        const mixed = [dims3[0], dims4[1], dims4[2]];
        made['MultiHeadAttention 4-D'] = () => session({
            nodes: [{op: 'MultiHeadAttention', domain: 'com.microsoft', names, outputs: ['y'],
                     attributes: {num_heads: H}}],
            opset: 17, output: y3, inputs: inputs(mixed)}, feeds([flat[0], headed[1], headed[2]], mixed));
    }
    if (causal && Q === K) {
        const more = {last: new Tensor('int32', new Int32Array(B).fill(K - 1), [B]),
                      total: new Tensor('int32', Int32Array.of(K), [1])};
        made['GroupQueryAttention'] = () => session({
            nodes: [{op: 'GroupQueryAttention', domain: 'com.microsoft',
                     names: ['q', 'k', 'v', '', '', 'last', 'total'], outputs: ['y', 'keys', 'values'],
                     attributes: {num_heads: H, kv_num_heads: H}}],
            opset: 17, output: y3,
            inputs: [...inputs(dims3), {name: 'last', type: INT32, dims: [B]},
                     {name: 'total', type: INT32, dims: [1]}]},
            {...feeds(flat, dims3), ...more});
    }
    return made;
}

// ---- Convolutions ------------------------------------------------------------------------------------------------

// Layers of convolution and relu, "16x5s2,32x3": channels x window, stride. Arrays of the benchmark have the channels last,
// here they come first.
function convolutions([B, H, W, C], layers)
{
    const nodes = [], constants = [], feeds = {x: new Tensor('float32', swap(data(1, B * H * W * C), B, H * W, C, 1, false), [B, C, H, W])};
    const first = [B, C, H, W];
    layers.split(',').forEach((layer, i, all) => {
        const [, channels, window, stride] = /^(\d+)x(\d+)(?:s(\d+))?$/.exec(layer).map((n) => Number(n || 1));
        const cells = window * window, scale = Math.sqrt(2 / (cells * C)), pad = Math.floor(window / 2);
        const values = data(5 + i, channels * cells * C).map((v) => v * scale);
        constants.push({name: 'w' + i, dims: [channels, C, window, window], values: swap(values, channels, cells, C, 1, false)},
                       {name: 'b' + i, dims: [channels], values: new Float32Array(channels)});
        nodes.push({op: 'Conv', names: [i === 0 ? 'x' : 'y' + (i - 1), 'w' + i, 'b' + i], outputs: ['z' + i],
                    attributes: {strides: [stride, stride], pads: [pad, pad, pad, pad], kernel_shape: [window, window]}},
                   {op: 'Relu', names: ['z' + i], outputs: [i + 1 === all.length ? 'y' : 'y' + i]});
        [H, W, C] = [Math.ceil(H / stride), Math.ceil(W / stride), channels];
    });
    const made = session({nodes, constants, opset: 17, output: {name: 'y', type: FLOAT, dims: [B, C, H, W]},
                          inputs: [{name: 'x', type: FLOAT, dims: first}]}, feeds);
    return {...made, flat: () => swap(made.out, B, H * W, C, 1, true)};
}

function prepareConvolution(words)
{
    if (Number(words[0]))
        return 'none it has no gradients';
    const best = fastest({'Conv': () => convolutions(words.slice(1, 5).map(Number), words[5])});
    if (typeof best !== 'string')
        best.number = product(best.flat());
    return best;
}

// ---- A decoder's step --------------------------------------------------------------------------------------------

// One step of a Transformer's decoder over keys and values that are stored per head: the source's, and as many target
// tokens as there are on average. `together`: q, k and v come from one product. With int8 the weights have a scale per
// column, and the input of a product is rounded to 8 bits, too, as in ONNX Runtime's dynamic quantisation.
function decoderStep(c, together)
{
    const {rows: B, length: S, hidden: d, heads: H, ffn, layers, words: V} = c;
    const own = Math.ceil(S / 2), nodes = [], constants = [], inputs = [{name: 'x', type: FLOAT, dims: [B, 1, d]}];
    let flops = 0, seed = 10;
    const weight = (scale, ...dims) => {
        const name = 'w' + seed, values = data(seed++, dims.reduce((a, b) => a * b, 1)).map((x) => x * scale);
        constants.push({name, dims, values});
        return name;
    };
    const apply = (op, names, more) => {
        const name = 't' + nodes.length, outputs = (more && more.outputs) || [name];
        nodes.push({op, names, ...more, outputs});
        return name;
    };
    const whole = (from, to) => {
        const name = 'w' + seed, values = Int8Array.from(data(seed++, from * to), (x) => Math.round(x * 73));
        constants.push({name, dims: [from, to], values});
        constants.push({name: name + 'scale', dims: [to], values: new Float32Array(to).fill(0.05 / 73)});
        return [name, name + 'scale', ''];
    };
    const product = (x, from, to) => {
        flops += 2 * B * from * to;
        return c.weights === 'int8' ? apply('DynamicQuantizeMatMul', [x, ...whole(from, to)], {domain: 'com.microsoft'})
                                    : apply('MatMul', [x, weight(0.05, from, to)]);
    };
    const linear = (x, from, to) => apply('Add', [product(x, from, to), weight(0.05, to)]);
    const norm = (x, y) => apply('LayerNormalization', [apply('Add', [x, y]), weight(1, d), weight(0.05, d)],
                                 {attributes: {axis: 2}});
    const look = (q, keys, length) => {
        flops += 4 * B * length * d;
        const kv = ['k', 'v'].map((which) => keys + which);
        for (const name of kv)
            inputs.push({name, type: FLOAT, dims: [B, H, length, d / H]});
        return apply('MultiHeadAttention', [q, ...kv], {domain: 'com.microsoft', attributes: {num_heads: H}});
    };
    let x = 'x';
    for (let l = 0; l < layers; l++) {
        let q, k, v;
        if (together) {
            [q, k, v] = ['q', 'k', 'v'].map((which) => which + l);
            apply('Split', [linear(x, d, 3 * d)], {outputs: [q, k, v], attributes: {axis: 2}});
        } else {
            [q, k, v] = [linear(x, d, d), linear(x, d, d), linear(x, d, d)];
        }
        const seen = look(q, 'own' + l, own);
        const kept = apply('Add', [apply('Add', [k, v]), seen]); // k and v go to a cache, so they must be computed
        x = norm(x, linear(kept, d, d));
        x = norm(x, linear(look(linear(x, d, d), 'source' + l, S), d, d));
        x = norm(x, linear(apply('Relu', [linear(x, d, ffn)]), ffn, d));
    }
    const logits = product(x, d, V);
    nodes.push({op: 'ArgMax', names: [logits], outputs: ['y'], attributes: {axis: 2, keepdims: 1}});
    const feeds = Object.fromEntries(inputs.map(({name, dims}, i) => [
        name, new Tensor('float32', data(1000 + i, dims.reduce((a, b) => a * b, 1)), dims)]));
    const spec = {nodes, constants, inputs, output: {name: 'y', type: INT64, dims: [B, 1, 1]}, opset: 17};
    const made = session(spec, feeds);
    const steps = () => {
        for (let t = 0; t < S; t++)
            made.call();
    };
    return {...made, call: steps, flops: S * flops};
}

function prepareDecoding(words)
{
    const c = Object.fromEntries(words.map((word) => word.split('=')).map(([k, v]) => [k, isNaN(v) ? v : Number(v)]));
    if (c.model !== 'transformer' || c.position !== 'sinusoidal')
        return 'none only the transformer is written here';
    const kind = c.weights === 'int8' ? 'int8 step' : 'step';
    return fastest({[kind + ' only, q k v apart']: () => decoderStep(c, false),
                    [kind + ' only, q k v together']: () => decoderStep(c, true)});
}

// ---- The protocol -------------------------------------------------------------------------------------------------

function clock()
{
    if (threads > 1)
        return Number(process.hrtime.bigint()) * 1e-9;
    const used = process.cpuUsage();
    return (used.user + used.system) * 1e-6;
}

function seconds(call, times)
{
    const begin = clock();
    for (let i = 0; i < times; i++)
        call();
    return clock() - begin;
}

const slots = new Map();

// Keeps the fastest of the variants that this version of the runtime can run; a string explains why there is none.
function fastest(variants)
{
    let best = null, reason = 'no variant ran';
    for (const [name, make] of Object.entries(variants)) {
        try {
            const made = make();
            made.call();
            const once = Math.min(seconds(made.call, 1), seconds(made.call, 1));
            const times = Math.max(1, Math.min(1000, Math.ceil(0.01 / Math.max(once, 1e-6))));
            made.time = Math.min(...[0, 1, 2].map(() => seconds(made.call, times) / times));
            made.name = name;
            if (best && best.time <= made.time) {
                made.close();
                continue;
            }
            if (best)
                best.close();
            best = made;
        } catch (error) {
            reason = String(error.message).split('\n')[0];
        }
    }
    return best || 'none ' + reason;
}

function prepare(words)
{
    const [backward, causal, shaw, additive, B, H, Q, K, D] = words.map(Number);
    if (backward || shaw || additive)
        return 'none it has no such operator';
    const best = fastest(variants(causal, B, H, Q, K, D));
    if (typeof best !== 'string')
        best.number = checksum(best, {B, H, Q, D});
    return best;
}

function checksum(made, {B, H, Q, D})
{
    return product(made.name === 'Attention-23' ? swap(made.out, B, Q, H, D, true) : made.out);
}

function product(flat)
{
    let sum = 0;
    for (let i = 0; i < flat.length; i++)
        sum += flat[i] * value(9, i);
    return sum;
}

function answer(line)
{
    const [verb, slot, ...rest] = line.trim().split(/\s+/);
    if (verb === 'hello')
        return 'hello onnxruntime ' + start();
    if (verb === 'prepare' || verb === 'decode' || verb === 'conv') {
        const made = verb === 'prepare' ? prepare(rest) : verb === 'conv' ? prepareConvolution(rest) : prepareDecoding(rest);
        if (typeof made === 'string')
            return made;
        slots.set(slot, made);
        return `ready ${made.name.replace(/ /g, '_')} ${verb === 'decode' ? made.flops : made.number}`;
    }
    if (verb === 'run') {
        const {call, time} = slots.get(slot);
        // The contestant before has filled the caches with its data: the first of the short calls is not counted.
        if (time < 0.01)
            call();
        return String(seconds(call, Number(rest[0])));
    }
    if (verb === 'free') {
        if (slots.has(slot))
            slots.get(slot).close();
        slots.delete(slot);
        return 'freed';
    }
    return 'none unknown word ' + verb;
}

readline.createInterface({input: process.stdin}).on('line', (line) => {
    let reply;
    try {
        reply = answer(line);
    } catch (error) {
        reply = 'none ' + String(error.message).split('\n')[0];
    }
    process.stdout.write(reply + '\n');
}).on('close', () => process.exit(0));
