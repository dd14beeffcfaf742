// report.mjs ATTEND MODULES [PICTURES]: the page of attend compare --html in a real browser, wide and light, then 360 px and dark:
// nothing is wider than the window, and what the plots say can be read. The last line is "N passed, N failed".
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { accessible, attend, check, finish, fits, open, run, shot, sound } from "./lib/browser.mjs";

const folder = mkdtempSync(join(tmpdir(), "attend-report-"));
writeFileSync(join(folder, "small.spec"), "task = copy\nrow = dot : --score dot\nrow = general : --score general\nmodel = rnn-attention\nhidden = 16\nupdates = 200\nseeds = 1\n");
execFileSync(attend, ["compare", "small.spec", "--quiet", "--html", "small.html"], { cwd: folder, stdio: ["ignore", "pipe", "inherit"] });

await run(async () => {
  for (const look of [{}, { width: 360, height: 800, dark: true }]) {
    const where = `report ${look.width ?? 1000}${look.dark ? " dark" : ""}`, page = await open("file://" + folder, "/small.html", look);
    const sizes = await page.$$eval(".plot", (plots) => plots.map((plot) => Math.min(...[...plot.querySelectorAll("text")].map((t) => parseFloat(getComputedStyle(t).fontSize))) * plot.getBoundingClientRect().width / plot.viewBox.baseVal.width));
    check(sizes.length > 1 && sizes.every((size) => size > 7.5), `${where}: the words of the plots have ${sizes} px`);
    await fits(page, where);
    await accessible(page, where);
    await sound(page, where);
    await shot(page, where);
    await page.close();
  }
});
rmSync(folder, { recursive: true });
finish();
