// Greedy decoding by CTranslate2, of folders that `attend convert --to ctranslate2` would write. It runs in a root folder of its own
// (tests/judge/root.bash), so paths are as seen from there. Each line on standard input is answered by one on standard output:
//   hello              hello ctranslate2
//   load SLOT FOLDER   ready VARIANT TOKENS: loads FOLDER, and translates FOLDER/line once, into so many tokens
//   run SLOT TIMES     the processor seconds (with several threads, seconds) of translating it so often
//   free SLOT          freed; the folder is removed
// or "none" and why not.
'use strict';
const fs = require('fs');
const readline = require('readline');
const {createRequire} = require('module');
const {Ct2Translator} = createRequire('/judge/')('ctranslate2');

const threads = Number(process.argv[1]);
const slots = new Map();

function clock()
{
    if (threads > 1)
        return Number(process.hrtime.bigint()) * 1e-9;
    const used = process.cpuUsage();
    return (used.user + used.system) * 1e-6;
}

async function translate({translator, line})
{
    const [said] = await translator.translateBatch([line], {beamSize: 1, maxBatchSize: 1});
    return said.text.split(' ').length;
}

async function answer(text)
{
    const [verb, slot, rest] = text.trim().split(/\s+/);
    if (verb === 'hello')
        return 'hello ctranslate2';
    if (verb === 'load') {
        try {
            const made = {
                translator: new Ct2Translator({modelPath: rest, threads}),
                line: fs.readFileSync(rest + '/line', 'utf8').trim(),
                folder: rest
            };
            const tokens = await translate(made);
            slots.set(slot, made);
            return `ready ${rest.split('.').pop()} ${tokens}`;
        } catch (error) {
            fs.rmSync(rest, {recursive: true, force: true});
            throw error;
        }
    }
    if (verb === 'run') {
        const begin = clock();
        for (let i = 0; i < Number(rest); i++)
            await translate(slots.get(slot));
        return String(clock() - begin);
    }
    if (verb === 'free') {
        if (slots.has(slot))
            fs.rmSync(slots.get(slot).folder, {recursive: true, force: true});
        slots.delete(slot);
        return 'freed';
    }
    return 'none unknown word ' + verb;
}

readline.createInterface({input: process.stdin}).on('line', async (line) => {
    let reply;
    try {
        reply = await answer(line);
    } catch (error) {
        reply = 'none ' + String(error.message).split('\n')[0];
    }
    process.stdout.write(reply + '\n');
}).on('close', () => process.exit(0));
