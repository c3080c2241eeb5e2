"""Write benchmarks.md, benchmarks.svg and benchmarks.json from raw results.

    report.py FOLDER RAW...

Raw lines:  variant benchmark threads operations seconds operations/s bytes|- [key=value...]
            variant benchmark threads DNF|FAILED|ABSENT - - -
            # fact KEY: TEXT     # command WHICH: TEXT       # size BENCHMARK: NOH FAST SLOW | UNIT
Text between the notes markers of an existing benchmarks.md is kept, and so is the network's part (net_report.py).
Standard library only.
"""
import json
import math
import os
import statistics
import sys
from collections import defaultdict

# benchmark: (unit, floor, aim); floors and aims are noh's throughput over the best peer's
BENCHES = {
    "ping-pong": ("messages", 2, 3),
    "thread-ring": ("messages", 2, 3),
    "big": ("messages", 2, 3),
    "chameneos": ("meetings", 2, 3),
    "bank-transaction": ("transfers", 2, 3),
    "counting": ("messages", 1.3, 2),
    "fan-in-10": ("messages", 1.3, 2),
    "fan-in-1000": ("messages", 1.3, 2),
    "fork-join-throughput": ("messages", 1.3, 2),
    "fork-join-create": ("actors", 4, 8),
    "random-counters-1M": ("messages", 6, 10),
}
OWN = ["random-counters-10M", "flood", "counting-batch", "read-only"]
NAMES = {"noh": "noh", "caf": "CAF", "erlang": "Erlang", "go": "Go", "tokio": "Tokio",
         "tokio-unbounded": "Tokio, unbounded"}
BESIDE = {"tokio-unbounded"}        # shown, but not a peer for the ratio: promises less
VARIANTS = {
    "erlang-hibernate": "hibernating",
    "caf": "work stealing",
    "caf-sharing": "shared queue",
    "tokio": "multi_thread",
    "tokio-current": "current_thread",
    "tokio-unbounded": "multi_thread",
    "tokio-unbounded-current": "current_thread",
}
MARKS = {
    "caf-sharing": ("ˢ", "with CAF's shared queue, here faster than its work stealing."),
    "erlang-hibernate": ("ʰ", "with processes that hibernate while they wait, here faster."),
    "tokio-current": ("ᶜ", "with Tokio's current_thread runtime, here faster than multi_thread."),
}
MARKS["tokio-unbounded-current"] = MARKS["tokio-current"]
OPEN, CLOSE = "<!-- notes -->", "<!-- /notes -->"
NETWORK = "<!-- network -->", "<!-- /network -->"        # written by net_report.py


def peer_of(variant):
    return "tokio-unbounded" if "unbounded" in variant else variant.split("-")[0]


class Cell:
    """All repetitions of one variant, benchmark and thread count."""

    def __init__(self):
        self.rates, self.bytes, self.extra, self.failed, self.state = [], [], {}, 0, None

    @property
    def median(self):
        return statistics.median(self.rates)

    @property
    def bytes_per_actor(self):
        return round(statistics.median(self.bytes)) if self.bytes else None


class Results:
    def __init__(self, files):
        self.facts, self.commands, self.sizes, self.others = {}, {}, {}, []
        self.cells = defaultdict(Cell)          # (variant, benchmark, threads)
        self.disturbed = 0
        for name in files:
            with open(name) as f:
                for line in f:
                    self.read(line.rstrip("\n"))
        self.threads = sorted({t for _, _, t in self.cells})
        seen = {peer_of(v) for v, _, _ in self.cells}
        self.peers = [p for p in NAMES if p in seen and p != "noh"]
        self.benches = [b for b in BENCHES if any(k[1] == b for k in self.cells)]

    def read(self, line):
        if line.startswith("#"):
            self.disturbed += line.startswith("# disturbed")
            for word, into in (("fact", self.facts), ("command", self.commands),
                               ("size", self.sizes)):
                if line.startswith(f"# {word} "):
                    key, text = line[len(word) + 3:].split(":", 1)
                    into[key] = text.strip()
            return
        w = line.split()
        if len(w) < 7:
            return
        cell = self.cells[(w[0], w[1], int(w[2]))]
        if w[3] in ("DNF", "FAILED", "ABSENT"):
            cell.state = w[3]
            cell.failed += w[3] == "FAILED"
            return
        cell.rates.append(float(w[5]))
        if w[6] != "-":
            cell.bytes.append(float(w[6]))
        for pair in w[7:]:
            key, _, value = pair.partition("=")
            if key == "other":
                self.others.append(float(value))
            else:
                cell.extra.setdefault(key, []).append(value)

    def best_variant(self, peer, bench, threads):
        """(variant, cell) of the peer's faster scheduler; (None, cell without rates or None)."""
        cells = [(v, c) for (v, b, t), c in self.cells.items()
                 if peer_of(v) == peer and b == bench and t == threads]
        measured = [x for x in cells if x[1].rates]
        if measured:
            return max(measured, key=lambda x: x[1].median)
        return None, cells[0][1] if cells else None

    def best_peer(self, bench, threads):
        """(peer, median) of the fastest peer, or None."""
        found = []
        for peer in self.peers:
            variant, cell = self.best_variant(peer, bench, threads)
            if variant and peer not in BESIDE:
                found.append((cell.median, peer))
        return (max(found)[1], max(found)[0]) if found else None

    def ratio(self, bench, threads):
        noh = self.cells.get(("noh", bench, threads))
        best = self.best_peer(bench, threads)
        return noh.median / best[1] if noh and noh.rates and best else None


# ── numbers as text ────────────────────────────────────────────────────────────────────────────
def mega(x):
    m = x / 1e6
    return f"{m:.0f}" if m >= 100 else f"{m:.1f}" if m >= 10 else f"{m:.2f}"


def times(x):
    return f"{x:.0f}" if x >= 20 else f"{x:.1f}" if x >= 9.95 else f"{x:.2f}"


def spread(cell, mark=""):
    if cell is None:
        return "-"
    if not cell.rates:
        return {"DNF": "does not finish", "FAILED": "failed", "ABSENT": "-"}.get(cell.state, "-")
    text = f"{mega(cell.median)}{mark}"
    if len(cell.rates) > 1:
        text += f" ({mega(min(cell.rates))}-{mega(max(cell.rates))})"
    return text + (f", {cell.failed} failed" if cell.failed else "")


def table(head, rows, align):
    line = {"l": ":--", "r": "--:"}
    out = ["| " + " | ".join(head) + " |", "|" + "|".join(line[a] for a in align) + "|"]
    return out + ["| " + " | ".join(r) + " |" for r in rows] + [""]


def workers(n):
    return f"{n} worker" + ("s" if n != 1 else "")


# ── benchmarks.md ──────────────────────────────────────────────────────────────────────────────
def throughput_section(r, threads):
    rows, marks = [], set()
    for bench in r.benches:
        noh, best = r.cells.get(("noh", bench, threads)), r.best_peer(bench, threads)
        ratio = r.ratio(bench, threads)
        row = [bench, BENCHES[bench][0], spread(noh),
               f"{NAMES[best[0]]} {mega(best[1])}" if best else "-",
               f"**{times(ratio)}**" if ratio else "-"]
        for peer in r.peers:
            variant, cell = r.best_variant(peer, bench, threads)
            mark = MARKS.get(variant, ("",))[0]
            marks.add(mark)
            row.append(spread(cell, mark))
        rows.append(row)
    head = ["benchmark", "unit", "noh", "best peer", "ratio"] + [NAMES[p] for p in r.peers]
    out = [f"## {workers(threads).capitalize()}", "",
           "Million operations per second: median (lowest-highest). Ratio: noh over the best peer.",
           ""]
    out += table(head, rows, "ll" + "r" * (len(head) - 2))
    for mark, text in dict.fromkeys(MARKS.values()):
        if mark in marks:
            out += [f"{mark} {text}", ""]
    return out


def verdict(ratio, floor, aim):
    if ratio is None:
        return "not measured"
    word = "aim reached" if ratio >= aim else "floor reached" if ratio >= floor else "below floor"
    return f"{times(ratio)}, {word}"


def floors_section(r):
    rows = []
    for bench in r.benches:
        _, floor, aim = BENCHES[bench]
        rows.append([bench, f"{floor}", f"{aim}"] +
                    [verdict(r.ratio(bench, t), floor, aim) for t in r.threads])
    head = ["benchmark", "floor", "aim"] + [workers(t) for t in r.threads]
    return (["## Floors and aims", "", "How many times the best peer's throughput noh should have, "
             "at least and preferably, and what it has.", ""] +
            table(head, rows, "lrr" + "l" * len(r.threads)))


def memory_section(r):
    rows = []
    for peer in ["noh"] + r.peers:
        variants = sorted({v for v, _, _ in r.cells if peer_of(v) == peer})
        row = []
        for bench in ("fork-join-create", "random-counters-1M", "random-counters-10M"):
            found = [c.bytes_per_actor for (v, b, _), c in r.cells.items()
                     if v in variants and b == bench and c.bytes]
            row.append(str(min(found)) if found else "-")
        if any(x != "-" for x in row):
            rows.append([NAMES[peer]] + row)
    if not rows:
        return []
    return (["## Bytes per actor", "",
             "Growth of the process's anonymous memory (RssAnon) over the number of live actors, "
             "everything included; the smallest median of its variants and worker counts. The "
             "actors of noh have names and a directory, those of the peers only a handle.", ""] +
            table(["", "fork-join-create", "random-counters-1M", "random-counters-10M"], rows,
                  "lrrr"))


def own_section(r):
    rows = []
    for bench in OWN:
        for t in r.threads:
            cell = r.cells.get(("noh", bench, t))
            if cell is None or (not cell.rates and cell.state == "ABSENT"):
                continue
            ns = f"{1e9 / cell.median:.1f}" if cell.rates else "-"
            extra = ", ".join(f"{k} {statistics.median_low(v)}" for k, v in cell.extra.items())
            rows.append([bench, str(t), spread(cell), ns, str(cell.bytes_per_actor or "-"), extra])
    out = ["## noh's own rows", ""]
    if not rows:
        return out + ["Not measured in this run.", ""]
    return (out + ["Without a counterpart among the peers, so without a ratio.", ""] +
            table(["row", "workers", "million/s", "ns each", "bytes per actor", ""], rows,
                  "lrrrrl"))


def method_section(r):
    f = r.facts
    out = ["## Machine and method", ""]
    out.append(f"- {f.get('cpu', '?')}, {f.get('cores', '?')} cores, {f.get('memory', '?')}, "
               f"{f.get('kernel', '?')}; {f.get('date', '?')}.")
    out += [f"- {f[p]}" for p in NAMES if p in f]
    if "skipped" in f:
        out.append(f"- Left out, could not be built here: {f['skipped']}.")
    out.append(f"- Medians of {f.get('repetitions', '?')} repetitions. Inside each, all peers of a "
               "benchmark run one after the other, starting with another one every time.")
    if r.others:
        out.append(f"- Meanwhile other processes used {100 * statistics.median(r.others):.0f} % of "
                   f"the machine in the median and {100 * max(r.others):.0f} % at worst; "
                   f"{r.disturbed} runs above 15 % were repeated.")
    out += ["- Every run checks its result (sums, counts, balances) and fails if it is wrong.",
            "- noh: `on_message`, one turn per message, bounded `block` mailboxes of the default "
            "capacity, nothing dropped. Go and Tokio: bounded channels, as large as the benchmark "
            "can fill where that is known, else 1024. CAF and Erlang: their own unbounded "
            "mailboxes. Tokio with unbounded channels is shown beside and not counted as a peer: a "
            "sender never waits there. It runs only where the benchmark itself bounds the queues.",
            "- CAF is the better of its two schedulers per row; work stealing with two workers "
            "does not finish fork-join-create and random-counters (each steal searches a queue "
            "under locks) and is not tried there. Tokio with one worker is the better of "
            "multi_thread and current_thread, Erlang in fork-join-create the better of hibernating "
            "and plainly waiting processes.", ""]
    out += ["Commands, with T workers and N from the table below:", "", "```"]
    out += [f"{c}" for c in dict.fromkeys(r.commands.values())]
    out += ["```", ""]
    rows = []
    for bench in r.benches:
        if bench in r.sizes:
            n, unit = r.sizes[bench].split("|")
            rows.append([bench] + n.split() + [unit.strip()])
    return out + table(["benchmark", "N for noh", "Go, Tokio", "CAF, Erlang", "one of N is"], rows,
                       "lrrrl")


def kept(path, first, last):
    try:
        with open(path) as f:
            text = f.read()
        return text[text.index(first) + len(first):text.rindex(last)].strip("\n")
    except (OSError, ValueError):
        return ""


def markdown(r, notes, network):
    out = ["# Benchmarks: noh beside CAF, Erlang, Go and Tokio", "",
           "Measured in one run by `make bench-peers`, which also writes this page; only the text "
           "between the notes markers is written by hand. The programs are in bench/peers/.", "",
           "![Throughput relative to the best peer](benchmarks.svg)", "",
           OPEN, notes, CLOSE, ""]
    if network:
        out += [NETWORK[0], network, NETWORK[1], ""]
    for t in r.threads:
        out += throughput_section(r, t)
    out += floors_section(r) + memory_section(r) + own_section(r) + method_section(r)
    return "\n".join(out).rstrip("\n") + "\n"


# ── benchmarks.json ────────────────────────────────────────────────────────────────────────────
def compact_json(r):
    rows = []
    for (variant, bench, threads), c in sorted(r.cells.items()):
        row = {"peer": peer_of(variant), "benchmark": bench, "threads": threads}
        if variant in VARIANTS:
            row["variant"] = VARIANTS[variant]
        if c.rates:
            row.update(median=round(c.median), min=round(min(c.rates)), max=round(max(c.rates)),
                       runs=len(c.rates))
            if c.bytes:
                row["bytes_per_actor"] = c.bytes_per_actor
        else:
            row["state"] = c.state
        rows.append(row)
    ratios = {b: {str(t): round(r.ratio(b, t), 2) for t in r.threads if r.ratio(b, t)}
              for b in r.benches}
    lines = ",\n".join("  " + json.dumps(x) for x in rows)
    return ('{"unit": "operations per second",\n "facts": ' + json.dumps(r.facts) +
            ',\n "ratios": ' + json.dumps(ratios) + ',\n "results": [\n' + lines + "\n ]}\n")


# ── benchmarks.svg: bars from 1 (the best peer) to the right or to the left, logarithmic ───────
COLORS = {"noh": "#e4572e", "caf": "#8a63d2", "erlang": "#c2428a", "go": "#2a9dbf",
          "tokio": "#9a8454"}
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #24292f }
.small { font-size: 10px } .bold { font-weight: 600 } .dim { fill: #656d76 }
.grid { stroke: #d0d7de } .one { stroke: #656d76 } .floor { stroke: #24292f; stroke-width: 1.5 }
.aim { stroke: #24292f; stroke-width: 1.5; stroke-dasharray: 2 2 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .dim { fill: #9198a1 } .grid { stroke: #3d444d } .one { stroke: #9198a1 }
.floor, .aim { stroke: #e6edf3 }
}
"""
LEFT, PANEL, GAP, TOP, NOH_BAR, BAR = 150, 376, 38, 78, 10, 5


def relative(r, peer, bench, threads):
    best = r.best_peer(bench, threads)
    _, cell = r.best_variant(peer, bench, threads)
    return cell.median / best[1] if best and cell and cell.rates else None


class Plot:
    def __init__(self, r):
        self.r, self.out = r, []
        self.shown = ["noh"] + [p for p in r.peers if p not in BESIDE]
        values = [v for b in r.benches for t in r.threads for p in self.shown
                  if (v := relative(r, p, b, t))] + [0.25, 4]
        values += [BENCHES[b][2] for b in r.benches]
        self.low = math.floor(math.log2(min(values)))
        self.high = math.ceil(math.log2(max(values) * 1.25))
        self.group = NOH_BAR + BAR * (len(self.shown) - 1) + 14

    def x(self, panel, value):
        share = (math.log2(value) - self.low) / (self.high - self.low)
        return LEFT + panel * (PANEL + GAP) + PANEL * share

    def text(self, x, y, text, cls="", anchor="start"):
        self.out.append(f'<text x="{x:.1f}" y="{y:.1f}" class="{cls}" '
                        f'text-anchor="{anchor}">{text}</text>')

    def line(self, x, y0, y1, cls):
        self.out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y0:.1f}" y2="{y1:.1f}" '
                        f'class="{cls}"/>')

    def legend(self):
        x = LEFT
        for peer in self.shown:
            self.out.append(f'<rect x="{x}" y="32" width="12" height="10" fill="{COLORS[peer]}"/>')
            self.text(x + 17, 41, NAMES[peer])
            x += 72
        self.line(x + 8, 31, 43, "floor")
        self.text(x + 15, 41, "floor for noh", "dim")
        self.line(x + 108, 31, 43, "aim")
        self.text(x + 115, 41, "aim for noh", "dim")

    def grid(self, panel, threads, bottom):
        self.text(self.x(panel, 2 ** self.low), TOP - 18, workers(threads), "bold")
        step = 2 if self.high - self.low > 7 else 1
        for e in range(self.low, self.high + 1):
            if e % step == 0:
                x = self.x(panel, 2.0 ** e)
                self.line(x, TOP, bottom, "one" if e == 0 else "grid")
                self.text(x, bottom + 14, f"{2 ** e}" if e >= 0 else f"1/{2 ** -e}", "small dim",
                          "middle")

    def bars(self, panel, threads, bench, top):
        one, y = self.x(panel, 1), top
        _, floor, aim = BENCHES[bench]
        for peer in self.shown:
            height = NOH_BAR if peer == "noh" else BAR
            value = relative(self.r, peer, bench, threads)
            if value:
                x = self.x(panel, value)
                a, b = min(x, one), max(x, one)
                if b - a < 3:
                    a, b = one - 1.5, one + 1.5
                self.out.append(f'<rect x="{a:.1f}" y="{y}" width="{b - a:.1f}" '
                                f'height="{height - 1}" fill="{COLORS[peer]}"/>')
                if peer == "noh":
                    end = max(b, self.x(panel, aim))
                    self.text(end + 5, y + 9, f"{times(value)}×", "small bold")
            y += height
        best = self.r.best_peer(bench, threads)
        if best:
            self.text(one + 6, top + 23, f"1 = {NAMES[best[0]]}, {mega(best[1])} M/s", "small dim")
        self.line(self.x(panel, floor), top - 2, top + NOH_BAR + 1, "floor")
        self.line(self.x(panel, aim), top - 2, top + NOH_BAR + 1, "aim")

    def svg(self):
        r = self.r
        width = LEFT + len(r.threads) * (PANEL + GAP)
        bottom = TOP + self.group * len(r.benches)
        self.text(LEFT, 18, "Throughput relative to the best peer (1), logarithmic", "bold")
        self.legend()
        for panel, threads in enumerate(r.threads):
            self.grid(panel, threads, bottom)
        for i, bench in enumerate(r.benches):
            top = TOP + i * self.group + 7
            self.text(LEFT - 10, top + 10, bench, "", "end")
            for panel, threads in enumerate(r.threads):
                self.bars(panel, threads, bench, top)
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {bottom + 24}" '
                f'width="{width}" height="{bottom + 24}" role="img" '
                'aria-label="Throughput of noh and its peers relative to the best peer">\n'
                f"<style>{STYLE}</style>\n" + "\n".join(self.out) + "\n</svg>\n")


def main():
    if len(sys.argv) < 3:
        sys.exit("usage: report.py FOLDER RAW...")
    folder, files = sys.argv[1], sys.argv[2:]
    r = Results(files)
    if not r.benches:
        sys.exit("report.py: no results in " + " ".join(files))
    page = os.path.join(folder, "benchmarks.md")
    texts = {page: markdown(r, kept(page, OPEN, CLOSE), kept(page, *NETWORK)),
             os.path.join(folder, "benchmarks.json"): compact_json(r),
             os.path.join(folder, "benchmarks.svg"): Plot(r).svg()}
    for path, text in texts.items():
        with open(path, "w") as f:
            f.write(text)


main()
