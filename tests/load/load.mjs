// load.mjs MODE ADDRESS ...: connections to attend serve, for tests/load/load.sh.
//   check ADDRESS SOURCES EXPECTED CONNECTIONS SECONDS   each connection asks for line after line, all of them at once; every answer must be
//                                                  the line of EXPECTED, byte for byte. Prints requests, wrong answers, per second, p50, p99.
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
  let next = 0;
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
    request.on("error", (error) => { wrong.push(`${from[i]}: ${error.message}`); resolve(); });
    request.end(body);
  });
  await Promise.all(Array.from({ length: connections }, async () => { while (performance.now() < end) await ask(next++ % from.length); }));
  times.sort((a, b) => a - b);
  const at = (share) => (times[Math.min(times.length - 1, Math.floor(share * times.length))] / 1000).toFixed(3);
  console.log(`requests ${times.length} wrong ${wrong.length} per_second ${(times.length / seconds).toFixed(1)} p50 ${at(0.5)} p99 ${at(0.99)}`);
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

if (mode === "check") await check(rest[0], rest[1], Number(rest[2]), Number(rest[3]));
else slow(Number(rest[0]), Number(rest[1]));
