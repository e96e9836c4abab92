"""bars.py - the bars that vigild is held to. They go into the file with the results, so that whoever reads the figures
can read them against what was promised. Where the machine decides, a bar is a ratio to a floor or to kube-apiserver
measured in the same round."""

OURS, KUBE, FLOOR = "vigild on lmdb", "kube-apiserver on etcd", "SSL_write() loop"
H1 = "media=json http=1.1 gzip=false"


def bar(what, scenario, where, metric, at_most, against=None, why=None):
    row = {"what": what, "scenario": scenario, "where": where, "metric": metric, "peer": OURS, "at_most": at_most}
    if against:
        row["against"] = against
    if why:
        row["why"] = why
    return row


BARS = [
    bar("exec to ready, empty store", "start", "objects=0", "ready_ms", 50),
    bar("the same, of kube-apiserver's", "start", "objects=0", "ready_ms", 50 / 2300, KUBE),
    bar("exec to ready, 100,000 pods", "start", "objects=100000", "ready_ms", 400,
        why="they are 430 MB with their managers, and all are read"),
    bar("idle memory", "start", "objects=0", "server_anon_bytes", 12e6),
    bar("memory with 10,000 pods", "fill", "objects=10000", "server_anon_bytes", 70e6,
        why="13 MB of it were there before: 1,000 pods and lists of them; filled alone it is 65.8 MB"),
    bar("the same, of kube-apiserver's", "fill", "objects=10000", "server_anon_bytes", 70 / 683, KUBE),
    bar("LIST of 10,000 over TLS, of the floor", "list", "objects=10000 selector=all " + H1, "server_cpu_ms_per_list",
        1.5, FLOOR),
    bar("the same with gzip, of kube-apiserver's", "list", "objects=10000 selector=all media=json http=1.1 gzip=true",
        "server_cpu_ms_per_list", 130 / 387, KUBE),
    bar("LIST by node, of kube-apiserver's", "list", "objects=10000 selector=node " + H1, "server_cpu_ms_per_list",
        0.3 / 4, KUBE, "five short lists beside other work; 1,000 alone cost 0.34 ms each"),
    bar("fan-out to 1,000 over TLS, of the floor", "fanout", "watchers=1000 selector=all " + H1,
        "server_cpu_us_per_event", 1.5, FLOOR),
    bar("an update with 1,000 node watchers, of kube-apiserver's", "fanout", "watchers=1000 selector=node " + H1,
        "server_cpu_us_per_update", 150 / 2500, KUBE,
        "a request, a sync and hand-overs between threads: mostly the kernel's"),
    bar("memory of an idle watcher, TLS", "idle", "http=1.1", "server_anon_bytes_per_watcher", 20e3,
        why="10 KB of it is the client's certificate, which OpenSSL keeps; with a token it is 15.3 KB"),
    bar("memory of an idle watcher, HTTP/2 stream", "idle", "http=2", "server_anon_bytes_per_watcher", 1e3),
    bar("acknowledged to received, 1,000 watchers, p50, of kube-apiserver's", "latency", "watchers=1000",
        "after_ack_p50_ms", 3 / 20, KUBE, "the tool reads on the same cores; bench/server sees 0.0 ms"),
    bar("the same, p99", "latency", "watchers=1000", "after_ack_p99_ms", 8 / 44, KUBE,
        "the last of 1,000 TLS records waits for all before it, on cores that the tool shares"),
    bar("watches ended under load", "churn", "", "ended", 0),
    bar("watches that list anew after a restart", "relist", "", "relists", 0),
]
