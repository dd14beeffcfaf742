// clients.mjs BASE MODULES SOURCE EXPECTED: six clients of LibreTranslate from the npm registry, which nobody here wrote, translate
// the line SOURCE from de to en at BASE; each must say EXPECTED. MODULES is the folder they are installed in. The last line
// is "N passed, N failed".
import { createRequire } from "node:module";
import Module from "node:module";

const [base, modules, source, expected] = process.argv.slice(2);
const require = createRequire(modules + "/");
let passed = 0, failed = 0;
async function client(name, ask) {
  try {
    const said = await ask();
    if (said === expected) { passed++; return; }
    console.log(`FAILED: ${name} says ${JSON.stringify(said)}`);
  } catch (error) {
    console.log(`FAILED: ${name}: ${error.stack}`);
  }
  failed++;
}

await client("libretranslate-ts", async () => {
  const { libreTranslate } = require("libretranslate-ts");
  libreTranslate.setApiEndpoint(base);
  libreTranslate.setApiKey("");
  const codes = (await libreTranslate.listLanguages()).map((language) => language.code).join();
  const found = await libreTranslate.detect(source);
  const said = await libreTranslate.translate(source, "de", "en", 2);
  if (codes !== "de,en" || found.language !== "de" || !(said.alternatives?.length >= 1)) return { codes, found, said };
  return said.translatedText;
});
await client("translate", async () => {
  const { Translate } = await import(require.resolve("translate"));
  return Translate({ engine: "libre", url: base + "/translate" })(source, { from: "de", to: "en" });
});
await client("libretranslate-extended", async () => {
  const { translate, detectLanguage } = require("libretranslate-extended");
  const settings = { provider: "libretranslate", baseUrl: base };
  const language = await detectLanguage(source, settings);
  return language === "de" ? translate({ query: source, source: "de", target: "en" }, settings) : language;
});
await client("libretranslate", async () => require("libretranslate").translate({ query: source, source: "de", target: "en", apiurl: base }));
await client("@translate-tools/core", async () => {
  const { LibreTranslateTranslator } = require("@translate-tools/core/translators/unstable/LibreTranslateTranslator");
  const translator = new LibreTranslateTranslator({ apiHost: base + "/translate" });
  return translator.translate(source, "de", "en");
});
await client("n8n-nodes-libretranslate", async () => {
  // The node runs inside n8n, whose part is played here: parameters, credentials, and a request in JSON.
  const load = Module._load;
  Module._load = (name, ...more) => (name === "n8n-workflow" ? { NodeOperationError: Error, NodeApiError: Error, NodeConnectionType: { Main: "main" } } : load(name, ...more));
  const { LibreTranslate } = require("n8n-nodes-libretranslate/dist/nodes/LibreTranslate/LibreTranslate.node.js");
  const run = async (parameters) => new LibreTranslate().execute.call({
    getInputData: () => [{ json: {} }], getCredentials: async () => ({ url: base + "/", apiKey: "" }), continueOnFail: () => false, getNode: () => ({}),
    getNodeParameter: (name) => parameters[name],
    helpers: { request: async ({ method, url, body }) => (await fetch(url, { method, headers: { "Content-Type": "application/json" }, body: body && JSON.stringify(body) })).json() },
  });
  const limit = (await run({ resource: "settings", operation: "getFrontendSettings" }))[0][0].json.charLimit;
  const said = (await run({ resource: "translation", operation: "translate", text: source, sourceLanguage: "auto", targetLanguage: "en", additionalFields: { format: "text", alternatives: 1 } }))[0][0].json;
  return limit === 5000 ? said.translatedText : limit;
});
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
