// ctranslate2.js MODEL LINES BEAM: translates with CTranslate2 itself; a line for each line, the mean log-probability of its
// tokens, a tab, and the text. With BEAM "time1" or "time32" it translates greedily so many lines at a time, once to warm up,
// and prints the processor seconds and the tokens of the second time.
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
  if (!beam.startsWith('time')) {
    for (const one of await translate(32, 32, Number(beam))) console.log(`${one.score.toFixed(6)}\t${one.text}`);
    return;
  }
  const batch = Number(beam.slice(4));
  await translate(batch, batch, 1);
  const start = process.cpuUsage();
  const said = await translate(batch, batch, 1);
  const { user, system } = process.cpuUsage(start);
  const seconds = (user + system) / 1e6;
  console.log(`${seconds.toFixed(4)} ${said.reduce((sum, one) => sum + one.text.split(' ').length, 0)}`);
})();
