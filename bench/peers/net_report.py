"""Writes the part "Over the network" of benchmarks.md from the JSON lines of net.py.

    net_report.write(FOLDER, [FILE, ...])

Later files win over earlier ones, row by row. Only the text between the network markers is written; the rest of
the page is kept. What noh should reach is the table BARS.
"""
import json
import os

OPEN, CLOSE = "<!-- network -->", "<!-- /network -->"


class Bar:
    """noh's value over the peer's (or under it: at_most) in one row of the results."""

    def __init__(self, text, row, noh, peer, need, metric="rate", at_most=False, **match):
        self.text, self.row, self.noh, self.peer, self.need = text, row, noh, peer, need
        self.metric, self.at_most, self.match = metric, at_most, match


BARS = []
for p, need, cpu in ((1, 1.05, 1.25), (16, 1.9, 1.9), (64, 3.0, 3.0)):
    BARS.append(Bar(f"INCR, none, 50 clients, pipeline {p}", "incr-none", "noh-none", "redis-off", need, pipeline=p))
    BARS.append(Bar(f"the same per server CPU second, pipeline {p}", "incr-none", "noh-none", "redis-off", cpu,
                    metric="per_cpu", pipeline=p))
for c, p, need in ((50, 1, 1.5), (50, 16, 2.5), (256, 1, 1.3), (256, 16, 2.5)):
    BARS.append(Bar(f"INCR, disk against always, {c} clients, pipeline {p}", "incr-disk", "noh-disk", "redis-always", need,
                    clients=c, pipeline=p))
BARS += [
    Bar("hot key, none, pipeline 16", "hot-key-none", "noh-none", "redis-off", 1.4),
    Bar("hot key, disk against always, pipeline 16", "hot-key-disk", "noh-disk", "redis-always", 2.5),
    Bar("reserve+commit, disk against Lua always, pipeline 1", "reserve", "noh-disk", "redis-always", 2.0, pipeline=1),
    Bar("reserve+commit, disk against Lua always, pipeline 16", "reserve", "noh-disk", "redis-always", 6.0, pipeline=16),
    Bar("reserve+commit, disk against PostgreSQL, pipeline 1", "reserve-postgres", "noh-disk", "postgresql", 8.0),
    Bar("pub/sub, 50 subscribers, pipeline 1", "pubsub", "noh-none", "redis-off", 1.05, pipeline=1),
    Bar("pub/sub, 50 subscribers, pipeline 16", "pubsub", "noh-none", "redis-off", 1.3, pipeline=16),
    Bar("lone client, none, throughput", "lone-none", "noh-none", "redis-off", 2.0),
    Bar("lone client, disk against always, p50", "lone-disk", "noh-disk", "redis-always", 1.0, metric="p50", at_most=True),
    Bar("restart to first answer, clean, against Redis with RDB", "restart", "noh-disk", "redis-rdb", 1 / 15,
        metric="seconds", at_most=True, kind="clean"),
    Bar("restart, clean, against PostgreSQL", "restart", "noh-disk", "postgresql", 1.0, metric="seconds", at_most=True,
        kind="clean"),
    Bar("restart after a crash, against PostgreSQL", "restart", "noh-disk", "postgresql", 1.0, metric="seconds",
        at_most=True, kind="crash"),
]


class Results:
    def __init__(self, files):
        self.facts, self.lines = {}, {}
        for name in files:
            with open(name) as f:
                for line in f:
                    x = json.loads(line)
                    if "facts" in x:
                        self.facts = x["facts"]
                        continue
                    key = tuple(str(x.get(k)) for k in ("row", "peer", "of", "clients", "pipeline", "kind", "holds"))
                    self.lines[key] = x
        self.all = list(self.lines.values())

    def find(self, row, peer, **match):
        for x in self.all:
            if x["row"] == row and x["peer"] == peer and all(x.get(k) == v for k, v in match.items()):
                return x
        return None


# ── numbers for people ─────────────────────────────────────────────────────────────────────────
def rate(v):
    return f"{v / 1e6:.2f} M" if v >= 1e6 else f"{v / 1e3:.1f} k" if v >= 1e3 else f"{v:.0f}"


def micro(v):
    return f"{v / 1e6:.2f} s" if v >= 1e6 else f"{v / 1e3:.2f} ms" if v >= 1e3 else f"{v:.0f} µs"


def shown(metric, v):
    return f"{v:.3f} s" if metric == "seconds" else micro(v) if metric.startswith("p5") or metric.startswith("p9") else rate(v)


def table(head, rows, align):
    marks = {"l": ":--", "r": "--:"}
    return (["| " + " | ".join(head) + " |", "|" + "|".join(marks[a] for a in align) + "|"] +
            ["| " + " | ".join(r) + " |" for r in rows] + [""])


def verdict(ok):
    return "yes" if ok else "**no**"


# ── the bars ───────────────────────────────────────────────────────────────────────────────────
def ratio_rows(r):
    rows = []
    for b in BARS:
        a, p = r.find(b.row, b.noh, **b.match), r.find(b.row, b.peer, **b.match)
        if not a or not p or not p.get(b.metric):
            rows.append([b.text, "-", "-", "-", limit(b), "not measured"])
            continue
        ratio = a[b.metric] / p[b.metric]
        ok = ratio <= b.need if b.at_most else ratio >= b.need
        rows.append([b.text, shown(b.metric, a[b.metric]), shown(b.metric, p[b.metric]), f"{ratio:.2f}", limit(b),
                     verdict(ok)])
    return rows


def limit(b):
    need = f"{b.need:.2f}".rstrip("0").rstrip(".") if b.need >= 0.1 else f"1/{1 / b.need:.0f}"
    return ("at most " if b.at_most else "") + need


def holds_row(r):
    few, many = (r.find("holds", "noh-disk", holds=h) for h in ("few", "many"))
    text = "reservation on a SKU with 100,000 open holds, cost over one with 10"
    if not few or not many:
        return [text, "-", "-", "-", "at most 1.5", "not measured"]
    cost = few["rate"] / many["rate"]
    return [text, rate(many["rate"]), rate(few["rate"]), f"{cost:.2f}", "at most 1.5", verdict(cost <= 1.5)]


def memory_rows(r):
    plain, tight = r.find("memory", "noh-disk"), r.find("memory", "noh-200MB")
    redis = r.find("memory", "redis-off")
    rows = []
    if plain:
        rows.append(["RssAnon per counter, 12-character keys", f"{plain['bytes_per_key']:.0f} B",
                     f"{redis['bytes_per_key']:.0f} B" if redis else "-", "-", "at most 170 B",
                     verdict(plain["bytes_per_key"] <= 170)])
    if tight:
        most = max(tight["rss_anon"], tight["rss_anon_after"], tight.get("rss_anon_loaded", 0))
        ok = most <= 200e6 and tight["present"] == 1
        rows.append(["RssAnon with --memory 200MB, all keys served", f"{most / 1e6:.0f} MB, {tight['present']:.1%}", "-", "-",
                     "at most 200 MB, 100 %", verdict(ok)])
    return rows


def latency_rows(r):
    rows = []
    for x in r.all:
        if x["row"] != "p99" or not x["peer"].startswith("noh"):
            continue
        other = next((y for y in r.all if y["row"] == "p99" and y["peer"].startswith("redis") and
                      all(y.get(k) == x.get(k) for k in ("of", "clients", "pipeline"))), None)
        if other and other["p99"]:
            ratio = x["p99"] / other["p99"]
            rows.append([f"{x['of']}, {x['clients']} clients, pipeline {x['pipeline']}", rate(x["intended"]), micro(x["p50"]),
                         micro(x["p99"]), micro(other["p50"]), micro(other["p99"]), f"{ratio:.2f}", verdict(ratio <= 1.1)])
    return rows


# ── the section ────────────────────────────────────────────────────────────────────────────────
def everything(r):
    rows = []
    for x in r.all:
        if "p50" not in x and x["row"] != "reserve-postgres" or x["row"] == "p99":
            continue
        latency = [micro(x["p50"]), micro(x["p99"])] if "p50" in x else ["-", "-"]
        cpu = [f"{x['server_cpu']:.2f}", rate(x["per_cpu"])] if x.get("per_cpu") else ["-", "-"]
        name = x["row"] + (f", {x['count']} holds" if "count" in x else "")
        rows.append([name, str(x.get("clients", "")), str(x.get("pipeline", "")), x["peer"],
                     f"{rate(x['rate'])} ({rate(x['least'])}-{rate(x['most'])})", *latency, *cpu])
    return table(["row", "clients", "pipeline", "server", "operations/s (least-most)", "p50", "p99", "server cores",
                  "per server CPU s"], rows, "lrrlrrrrr") if rows else []


def others(r):
    rows = [[x["peer"], x["kind"], f"{x['seconds']:.3f} s ({x['least']:.3f}-{x['most']:.3f})"]
            for x in r.all if x["row"] == "restart"]
    out = table(["server", "stopped by", "start to first answer"], rows, "llr") if rows else []
    rows = [[x["peer"], f"{x['bytes_per_key']:.0f}", f"{x.get('rss_anon_loaded', x['rss_anon']) / 1e6:.0f} MB",
             f"{x['rss_anon'] / 1e6:.0f} MB", f"{x['rss_anon_after'] / 1e6:.0f} MB", f"{x['present']:.1%}"] for x in r.all if x["row"] == "memory"]
    return out + (table(["server", "bytes of RssAnon per key, at rest", "as the load ends", "at rest", "after reads", "keys there"], rows,
                        "lrrrrr")
                  if rows else [])


def method(r):
    f = r.facts
    foreign = sorted(x["other"] for x in r.all if "other" in x)
    out = ["How: `bench/peers/net.sh`; client `noh bench load` (PostgreSQL: pgbench), one thread, TCP on 127.0.0.1, client and "
           "server on the same cores; one operation is one command, in pub/sub one delivered message. "
           f"{f.get('keys', 0):,} keys of 12 characters, uniform; {f.get('skus', 0):,} SKUs; {f.get('big', 0):,} keys for restart "
           f"and memory. Medians of {f.get('reps')} interleaved runs of {f.get('seconds')} s ({f.get('latency_reps')} for "
           "p99). Redis: `off` no persistence, `rdb` saved before the stop, `everysec` and `always` the append-only file; "
           "reserve and commit are scripts by EVALSHA (bench/load_inventory.c). p99: open loop at 70 % of what Redis did at "
           "most in the same run, latency from the intended start.", "",
           f"{f.get('cpu')}, {f.get('cores')} cores, {f.get('memory')}, {f.get('kernel')}; {f.get('date')}. " +
           "; ".join(f.get("versions", {}).values()) + "."]
    if foreign:
        out[-1] += (f" Other processes used {foreign[len(foreign) // 2]:.0%} of the machine in the median, "
                    f"{foreign[-1]:.0%} at worst.")
    if f.get("quick"):
        out += ["", "**A quick run: the numbers mean nothing.**"]
    return out + [""]


def section(r):
    out = [OPEN, "## Over the network: noh beside Redis and PostgreSQL", ""]
    rows = ratio_rows(r) + [holds_row(r)] + memory_rows(r)
    out += table(["workload", "noh", "peer", "noh/peer", "bar", "met"], rows, "lrrrrl")
    rows = latency_rows(r)
    if rows:
        out += ["p99 at the same offered load; the bar is at most 1.1 times Redis's.", ""]
        out += table(["workload", "intended/s", "noh p50", "noh p99", "Redis p50", "Redis p99", "p99 ratio", "met"], rows,
                     "lrrrrrrl")
    out += everything(r) + others(r) + method(r)
    return "\n".join(out).rstrip("\n") + "\n" + CLOSE


def write(folder, files):
    r = Results(files)
    path = os.path.join(folder, "benchmarks.md")
    try:
        with open(path) as f:
            page = f.read()
    except OSError:
        page = ""
    new = section(r)
    if OPEN in page and CLOSE in page:
        page = page[:page.index(OPEN)] + new + page[page.index(CLOSE) + len(CLOSE):]
    else:
        page = page.rstrip("\n") + ("\n\n" if page else "") + new + "\n"
    os.makedirs(folder, exist_ok=True)
    with open(path, "w") as f:
        f.write(page)
    print(f"  WROTE {path}", flush=True)
