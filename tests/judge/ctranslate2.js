// ctranslate2.js MODEL LINES BEAM: translates with CTranslate2 itself; a line for each line, the mean log-probability of its
// tokens, a tab, and the text. With BEAM "time" it translates greedily, one line at a time and 32 at a time, and prints the seconds of each.
const { Ct2Translator } = require('ctranslate2');
const fs = require('fs');

const [model, input, beam] = process.argv.slice(2);
const lines = fs.readFileSync(input, 'utf8').split('\n').slice(0, -1);
const translator = new Ct2Translator({ modelPath: model, threads: 1 });

async function translate(batch, size, beamSize) {
  const said = [];
  for (let i = 0; i < lines.length; i += batch)
    said.push(...(await translator.translateBatch(lines.slice(i, i + batch), { beamSize, maxBatchSize: size, returnScores: true })));
  return said;
}

(async () => {
  if (beam !== 'time') {
    for (const one of await translate(32, 32, Number(beam))) console.log(`${one.score.toFixed(6)}\t${one.text}`);
    return;
  }
  await translate(32, 32, 1);
  for (const batch of [1, 32]) {
    const start = process.hrtime.bigint();
    await translate(batch, batch, 1);
    console.log((Number(process.hrtime.bigint() - start) / 1e9).toFixed(4));
  }
})();
