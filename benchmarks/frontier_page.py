"""How long the frontier's page takes to answer a slider, and its data to be made.

Run: python benchmarks/frontier_page.py [--plotly] [--save]

A move is timed in a real Chromium without a graphics card, from the slider's event until the next
frame has been painted: eight charts, the count, the list. The answer is checked first. With
``--plotly`` a page of six of these charts is drawn by Plotly instead, for comparison.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path

import _harness
from playwright.sync_api import CDPSession, sync_playwright
from plotly.offline import get_plotlyjs

from evenhand.frontier import Run
from evenhand.frontier.page.data import page_data
from evenhand.frontier.page.write import write_page
from evenhand.frontier.run import OBJECTIVES
from evenhand.testing.frontier import synthetic_runs

SEED = 0
N_RUNS = 5000
N_MANY = 100_000
POSITIONS = list(range(192, 32, -8))
CHROMIUM = "/usr/bin/chromium"
MOVE = """async positions => {
  const slider = document.getElementById('slide-epsilon'), out = [];
  for (const position of positions) {
    await new Promise(done => setTimeout(done, 100));
    slider.value = position;
    const start = performance.now();
    slider.dispatchEvent(new Event('input', { bubbles: true }));
    await window.redrawn; // by Plotly
    await new Promise(done => requestAnimationFrame(() => {
      const painted = new MessageChannel(); // its message comes after the frame was painted
      painted.port1.onmessage = done;
      painted.port2.postMessage(0);
    }));
    out.push(performance.now() - start);
  }
  return out;
}"""


def moves(path: Path, epsilons: list[float] | None) -> tuple[list[float], float]:
    """Return the milliseconds of each move, and those of processor time that a move took.

    The second number is of the page's own thread: on a busy machine only that one is the page's.
    """
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--enable-unsafe-swiftshader"],
        )
        page = chromium.new_page(viewport={"width": 1366, "height": 768})
        page.goto(path.as_uri())
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        before = thread_seconds(session)
        found: list[float] = page.evaluate(MOVE, POSITIONS)
        each = 1000 * (thread_seconds(session) - before) / len(POSITIONS)
        if epsilons is not None:
            limit = float(page.locator("#field-epsilon").input_value())
            shown = int(page.locator("#count").inner_text().replace(",", ""))
            assert shown == sum(epsilon <= limit for epsilon in epsilons)
        chromium.close()
    return found, each


PLOTLY = """<!DOCTYPE html><script>%s</script><input type="range" id="slide-epsilon" max="200">
<div id="charts" style="display: grid; grid-template-columns: repeat(3, 1fr)"></div><script>
const values = %s, kind = "%s", names = Object.keys(values), charts = [];
for (const x of names) for (const y of names) if (x < y) {
  const chart = document.getElementById("charts").appendChild(document.createElement("div"));
  chart.style.height = "196px";
  Plotly.newPlot(chart, [{ type: kind, mode: "markers", x: values[x], y: values[y],
    marker: { size: 5 } }], { margin: { l: 30, r: 5, t: 5, b: 20 } }, { staticPlot: true });
  charts.push(chart);
}
const low = Math.log(Math.min(...values.epsilon)), high = Math.log(Math.max(...values.epsilon));
document.getElementById("slide-epsilon").addEventListener("input", event => {
  const limit = Math.exp(low + (high - low) * event.target.value / 200);
  const colours = values.epsilon.map(epsilon => epsilon <= limit ? "#0072b2" : "#d5dae0");
  window.redrawn = Promise.all(charts.map(
    chart => Plotly.restyle(chart, { "marker.color": [colours] })));
});
</script>"""


def write_plotly(runs: list[Run], path: Path, kind: str) -> Path:
    """Write a page on which Plotly draws the pairs of objectives and colours what is within."""
    values = {name: [getattr(run, name) for run in runs] for name in OBJECTIVES}
    path.write_text(PLOTLY % (get_plotlyjs(), json.dumps(values), kind), encoding="utf-8")
    return path


def thread_seconds(session: CDPSession) -> float:
    found = session.send("Performance.getMetrics")["metrics"]
    return next(float(one["value"]) for one in found if one["name"] == "ThreadTime")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", action="store_true", help="append the line to results.jsonl")
    parser.add_argument("--plotly", action="store_true", help="time Plotly instead")
    arguments = parser.parse_args()
    runs = synthetic_runs(N_RUNS, seed=SEED)
    if arguments.plotly:
        with tempfile.TemporaryDirectory() as folder:
            for kind in ("scatter", "scattergl"):
                path = write_plotly(runs, Path(folder) / "plotly.html", kind)
                times, cpu_ms = moves(path, None)
                print(
                    f"Plotly, {kind}: {path.stat().st_size / 1e6:.2f} MB, "
                    f"{statistics.median(times):.0f} ms a move, {cpu_ms:.0f} ms of its processor"
                )
        return
    with tempfile.TemporaryDirectory() as folder:
        path = write_page(runs, Path(folder) / "frontier.html", title="Benchmark")
        size = path.stat().st_size
        times, cpu_ms = moves(path, [run.epsilon for run in runs])
    many = synthetic_runs(N_MANY, seed=SEED)
    start = time.process_time()
    data_s = _harness.seconds(lambda: page_data(many))
    data_cpu_s = time.process_time() - start
    _harness.report(
        {
            **_harness.heading(
                "frontier_page", seed=SEED, sizes={"runs": N_RUNS, "runs_of_data": N_MANY}
            ),
            "load": [round(x, 2) for x in os.getloadavg()],
            "move_ms": [round(x, 1) for x in times],
            "median_ms": round(statistics.median(times), 1),
            "cpu_ms_a_move": round(cpu_ms, 1),
            "page_mb": round(size / 1e6, 2),
            "data_s": round(data_s, 2),
            "data_cpu_s": round(data_cpu_s, 2),
            "target": "100 ms a move; 8 MB; data of 100,000 runs within 5 s",
        },
        save=arguments.save,
    )


if __name__ == "__main__":
    main()
