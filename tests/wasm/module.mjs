// module.mjs ATTEND.JS MODEL <CASES: what native.c prints, computed by the module in node.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';

const [, , script, model] = process.argv;
const module = await createRequire(import.meta.url)(resolve(script))();
const call = (name, type, ...values) => module.ccall(name, type, values.map(v => typeof v), values);
const bytes = (at, count) => console.log(Buffer.from(module.HEAPU8.slice(at, at + count)).toString('hex'));
const numbers = (count, salt) => {
    const at = module._malloc(4 * count);
    for (let i = 0; i < count; i++)
        module.HEAPF32[at / 4 + i] = Math.fround(Math.fround((i * 7919 + salt * 104729) % 2003) / 1001) - 1;
    return at;
};

function attention(names, [heads, queries, keys, width]) {
    const sizes = [queries * width, keys * width, keys * width, queries * width, heads * queries * keys];
    const given = sizes.slice(0, 4).map((size, i) => numbers(size, i + 1));
    const made = sizes.map(size => numbers(size, 0));
    if (!call('wasm_attention', 'boolean', ...names, heads, queries, keys, width, ...given.slice(0, 3), made[3], made[4],
        given[3], ...made.slice(0, 3)))
        console.log(call('wasm_error', 'string'));
    made.forEach((at, i) => bytes(at, 4 * sizes[i]));
    [...given, ...made].forEach(at => module._free(at));
}

function translate(beam, line) {
    console.log(call('wasm_translate', 'boolean', line, beam) ? call('wasm_target', 'string') : call('wasm_error', 'string'));
    console.log(Buffer.from(new Float64Array([call('wasm_score', 'number')]).buffer).toString('hex'));
    for (let i = 0, at; (at = call('wasm_map', 'number', i)); i++)
        bytes(at, 4 * [2, 3, 4].map(which => call('wasm_map_size', 'number', i, which)).reduce((a, b) => a * b));
}

const file = readFileSync(model);
const at = module._malloc(file.length);
module.HEAPU8.set(file, at);
if (!call('wasm_load', 'boolean', at, file.length)) console.log(call('wasm_error', 'string'));
for (const line of readFileSync(0, 'utf8').trimEnd().split('\n')) {
    const [what, ...words] = line.split(' ');
    if (what === 'attention') attention(words.slice(0, 4), words.slice(4).map(Number));
    else translate(Number(words[0]), words.slice(1).join(' '));
}
