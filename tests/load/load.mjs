// load.mjs MODE ADDRESS ...: connections to attend serve, for tests/load/load.sh.
//   check ADDRESS SOURCES EXPECTED CONNECTIONS SECONDS   each connection asks for line after line, all of them at once; every answer must be
//                                                  the line of EXPECTED, byte for byte. Prints requests, wrong answers, per second, p50, p99, and how
//                                                  many were sent again because the server had closed the connection while it was not used.
//   broken ADDRESS SOURCE EXPECTED COUNT CONNECTIONS     malformed requests, bytes of good ones changed, left out and repeated, on many connections;
//                                                  now and then a good one, which must be answered with EXPECTED. Prints how many, and the answers by their status.
//   slow ADDRESS CONNECTIONS SECONDS               connections that send a byte of a request now and then, and are opened again when they are closed
import { readFileSync } from "node:fs";
import http from "node:http";
import net from "node:net";

const [mode, address, ...rest] = process.argv.slice(2);
const { hostname, port } = new URL(address);
const lines = (path) => readFileSync(path, "utf8").split("\n").slice(0, -1);

async function check(sources, expected, connections, seconds) {
  const from = lines(sources), to = lines(expected).map((line) => JSON.stringify({ translatedText: line }));
  const agent = new http.Agent({ keepAlive: true, maxSockets: connections });
  const times = [], wrong = [];
  const end = performance.now() + 1000 * seconds;
  let next = 0, closed = 0;
  const ask = (i) => new Promise((resolve) => {
    const begun = performance.now(), body = JSON.stringify({ q: from[i], source: "de", target: "en" });
    const request = http.request({ agent, hostname, port, path: "/translate", method: "POST", headers: { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(body) } }, (response) => {
      const parts = [];
      response.on("data", (part) => parts.push(part));
      response.on("end", () => {
        const said = Buffer.concat(parts).toString();
        times.push(performance.now() - begun);
        if (said.trimEnd() !== to[i]) wrong.push(`${from[i]}: ${said}`);
        resolve();
      });
    });
    request.on("error", (error) => {
      if (request.reusedSocket && !request.res) closed++, resolve(ask(i));
      else wrong.push(`${from[i]}: ${error.message}`), resolve();
    });
    request.end(body);
  });
  await Promise.all(Array.from({ length: connections }, async () => { while (performance.now() < end) await ask(next++ % from.length); }));
  times.sort((a, b) => a - b);
  const at = (share) => (times[Math.min(times.length - 1, Math.floor(share * times.length))] / 1000).toFixed(3);
  console.log(`requests ${times.length} wrong ${wrong.length} per_second ${(times.length / seconds).toFixed(1)} p50 ${at(0.5)} p99 ${at(0.99)} again ${closed}`);
  for (const line of wrong.slice(0, 5)) console.log("WRONG: " + line);
  process.exit(wrong.length ? 1 : 0);
}

function slow(connections, seconds) {
  let open = 0;
  const start = () => {
    const socket = net.connect(port, hostname);
    let sent = 0;
    const bytes = "POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nq=";
    const timer = setInterval(() => { socket.write(sent < bytes.length ? bytes[sent++] : "a"); }, 900);
    socket.on("connect", () => { open++; });
    socket.on("error", () => {});
    socket.on("close", () => { clearInterval(timer); setTimeout(start, 1000); });
  };
  for (let i = 0; i < connections; i++) start();
  setTimeout(() => { console.log(`opened ${open}`); process.exit(0); }, 1000 * seconds);
}

// Malformed requests, the same in every run.
let state = 1;
const draw = (n) => (state = (state * 48271) % 2147483647) % n;
const pick = (list) => list[draw(list.length)];
const BODIES = ['{"q":5,"source":"de","target":"en"}', '{"q":["a",null],"source":7}', '{"q":"a b","source":"de","target":"en"}', '{"q":["a","b"],"source":"auto","target":"en","alternatives":3,"format":"html"}', "q=a+b&source=de&target=en&confidence=1",
  '--x\r\nContent-Disposition: form-data; name="q"\r\n\r\na b\r\n--x--\r\n', '{"q":"<b>a</b> {x} 5 https://a.b","source":"de","target":"en","format":"html"}', '{"ask":"attend","query":[[1,2],[3,4]]}'];
const PATHS = ["/translate", "/detect", "/languages", "/", "/lesson/answer", "/attention", "/alternatives", "/explorer", "/watch/runs", "/translator/en", "/../../etc/passwd", "/%00%ff", "/translate?q=%zz&source=de&target=en"];
const TYPES = ["application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "multipart/form-data; boundary=", "text/plain; charset=\"", ""];
function mutate(bytes) {
  for (let i = draw(4); i > 0 && bytes.length > 0; i--) {
    const at = draw(bytes.length), length = draw(8);
    const put = pick([Buffer.from([draw(256)]), Buffer.from(pick(["\\ud800", "\u0000", '"', "{", "[[[[", "&&", "%", "999999999999999999999", "-1", "\r\n", "null"])), bytes.subarray(at, at + length), Buffer.alloc(0)]);
    bytes = Buffer.concat([bytes.subarray(0, at), put, bytes.subarray(Math.min(bytes.length, at + draw(2) * length))]);
  }
  return bytes;
}
function malformed() {
  const body = mutate(Buffer.from(pick(BODIES))), length = pick([body.length, body.length, body.length, body.length, body.length, 0, body.length + draw(9), "-1", "x", "99999999999999999999"]);
  const head = `${pick(["POST", "POST", "POST", "GET", "PUT", "OPTIONS", "HEAD", "BREW"])} ${pick(PATHS)} HTTP/1.${draw(3)}\r\nHost: a\r\nContent-Type: ${pick(TYPES)}\r\n${draw(9) ? `Content-Length: ${length}` : "Transfer-Encoding: chunked"}\r\n\r\n`;
  return Buffer.concat([draw(5) ? Buffer.from(head) : mutate(Buffer.from(head)), body]);
}

// Each connection sends requests until it is closed, by either side, or a tenth of a second passes without an answer; then the next one is opened.
async function broken(source, expected, count, connections) {
  const statuses = {}, wrong = [];
  let sent = 0;
  const good = JSON.stringify({ q: source, source: "de", target: "en" }), right = JSON.stringify({ translatedText: expected });
  const healthy = async () => {
    const answer = await (await fetch(address + "/translate", { method: "POST", headers: { "Content-Type": "application/json" }, body: good })).text();
    if (answer.trimEnd() !== right) wrong.push(answer);
  };
  const one = () => new Promise((resolve) => {
    const socket = net.connect(port, hostname);
    let timer, done = false;
    const end = () => { if (!done) { done = true; clearTimeout(timer); socket.destroy(); resolve(); } };
    const next = () => {
      clearTimeout(timer);
      if (sent >= count || socket.writableEnded) return end();
      sent++;
      socket[draw(2) ? "write" : "end"](malformed());
      timer = setTimeout(end, 100);
    };
    socket.on("connect", next).on("error", end).on("close", end);
    socket.on("data", (bytes) => {
      const status = bytes.subarray(0, 12).toString("latin1").match(/^HTTP\/1\.[01] (\d{3})/)?.[1];
      if (status) { statuses[status] = (statuses[status] ?? 0) + 1; next(); }
    });
  });
  await Promise.all(Array.from({ length: connections }, async () => { while (sent < count) await one(); }));
  for (let i = 0; i < 10; i++) await healthy();
  console.log(`malformed ${sent} wrong ${wrong.length} answers ${JSON.stringify(statuses)}`);
  for (const line of wrong.slice(0, 5)) console.log("WRONG: " + line);
  process.exit(wrong.length ? 1 : 0);
}

if (mode === "check") await check(rest[0], rest[1], Number(rest[2]), Number(rest[3]));
else if (mode === "broken") await broken(rest[0], rest[1], Number(rest[2]), Number(rest[3]));
else slow(Number(rest[0]), Number(rest[1]));
