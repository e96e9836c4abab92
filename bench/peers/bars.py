#!/usr/bin/env python3
"""bars.py - the bars that vigild is held to. They go into the file with the results, so that whoever reads the figures
can read them against what was promised. Where the machine decides, a bar is a ratio to a floor or to kube-apiserver
measured in the same round. What is said of a bar that is missed is made from figures of the same file.

    bars.py RUN.json    puts the bars into a file of results that is there already"""

import json
import statistics
import sys

OURS, KUBE, FLOOR = "vigild on lmdb", "kube-apiserver on etcd", "SSL_write() loop"
H1 = "media=json http=1.1 gzip=false"


class Figures:
    """Medians over the rounds of a file's runs; None: not measured."""

    def __init__(self, runs):
        self.runs = runs

    def of(self, peer, scenario, where, metric):
        wanted = dict(pair.split("=") for pair in where.split())
        found = [r["metrics"][metric] for run in self.runs if run["peer"] == peer for r in run["results"]
                 if r["scenario"] == scenario and metric in (r.get("metrics") or {}) and matches(r["params"], wanted)]
        return statistics.median(found) if found else None


def matches(params, wanted):
    """As vigil bench report has it: a parameter that a result lacks does not matter."""
    return all(k not in params or text_of(params[k]) == v for k, v in wanted.items())


def text_of(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


def digits(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def amount(metric, value):
    if "bytes" in metric:
        return f"{digits(value / 1e6)} MB" if value >= 1e6 else f"{digits(value / 1e3)} KB"
    return f"{digits(value)} {'µs' if '_us' in metric else 'ms'}"


# ---- whys: of a bar's row and the figures, a sentence or None ----


def both(row, figures):
    """Both sides of a ratio."""
    ours, theirs = (figures.of(row[k], row["scenario"], row["where"], row["metric"]) for k in ("peer", "against"))
    if ours is None or theirs is None:
        return None
    return f"{amount(row['metric'], ours)} against {amount(row['metric'], theirs)}"


def both_and_floor(row, figures):
    text, floor = both(row, figures), figures.of(FLOOR, row["scenario"], row["where"], row["metric"])
    return f"{text}, and {amount(row['metric'], floor)} of the bare loop" if text and floor else text


def all_is_read(row, figures):
    ms = figures.of(row["peer"], row["scenario"], row["where"], row["metric"])
    size = figures.of(row["peer"], "list", f"{row['where']} selector=all {H1}", "bytes_per_list")
    return f"they are {size / 1e6:.0f} MB of JSON, all read: {size / ms / 1e6:.2g} GB/s" if ms and size else None


def before_and_each(row, figures):
    before, each = (figures.of(row["peer"], row["scenario"], row["where"], row["metric"] + end)
                    for end in ("_before", "_per_object"))
    return f"{amount('bytes', before)} before the first, {each:,.0f} bytes for each" if before and each else None


def with_certificate(row, figures):
    shown = figures.of(row["peer"], row["scenario"], row["where"].replace("=token", "=certificate"), row["metric"])
    return f"with a client's certificate {amount(row['metric'], shown)}" if shown else None


def bar(what, scenario, where, metric, at_most, against=None, why=None):
    row = {"what": what, "scenario": scenario, "where": where, "metric": metric, "peer": OURS, "at_most": at_most}
    if against:
        row["against"] = against
    return row, why or (both if against else None)


BARS = [
    bar("exec to ready, empty store", "start", "objects=0", "ready_ms", 50),
    bar("the same, of kube-apiserver's", "start", "objects=0", "ready_ms", 50 / 2300, KUBE),
    bar("exec to ready, 100,000 pods", "start", "objects=100000", "ready_ms", 400, why=all_is_read),
    bar("idle memory", "start", "objects=0", "server_anon_bytes", 12e6),
    bar("memory with 10,000 pods", "fill", "objects=10000", "server_anon_bytes", 70e6, why=before_and_each),
    bar("the same, of kube-apiserver's", "fill", "objects=10000", "server_anon_bytes", 70 / 683, KUBE),
    bar("LIST of 10,000 over TLS, of the floor", "list", "objects=10000 selector=all " + H1, "server_cpu_ms_per_list",
        1.5, FLOOR),
    bar("the same with gzip, of kube-apiserver's", "list", "objects=10000 selector=all media=json http=1.1 gzip=true",
        "server_cpu_ms_per_list", 130 / 387, KUBE),
    bar("LIST by node, of kube-apiserver's", "list", "objects=10000 selector=node " + H1, "server_cpu_ms_per_list",
        0.3 / 4, KUBE),
    bar("fan-out to 1,000 over TLS, of the floor", "fanout", "watchers=1000 selector=all " + H1,
        "server_cpu_us_per_event", 1.5, FLOOR),
    bar("an update with 1,000 node watchers, of kube-apiserver's", "fanout", "watchers=1000 selector=node " + H1,
        "server_cpu_us_per_update", 150 / 2500, KUBE),
    bar("memory of an idle watcher, TLS, token", "idle", "http=1.1 login=token", "server_anon_bytes_per_watcher", 20e3,
        why=with_certificate),
    bar("memory of an idle watcher, HTTP/2 stream", "idle", "http=2", "server_anon_bytes_per_watcher", 1e3),
    bar("acknowledged to received, 1,000 watchers, p50, of kube-apiserver's", "latency", "watchers=1000",
        "after_ack_p50_ms", 3 / 20, KUBE, both_and_floor),
    bar("the same, p99", "latency", "watchers=1000", "after_ack_p99_ms", 8 / 44, KUBE, both_and_floor),
    bar("watches ended under load", "churn", "", "ended", 0),
    bar("watches that list anew after a restart", "relist", "", "relists", 0),
]


def rows(runs):
    """The bars as they go into a file with these runs."""
    figures, all_rows = Figures(runs), []
    for row, why in BARS:
        text = why(row, figures) if why else None
        all_rows.append({**row, "why": text} if text else row)
    return all_rows


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1]) as f:
        found = json.load(f)
    found["bars"] = rows(found["runs"])
    with open(sys.argv[1], "w") as f:
        json.dump(found, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main()
