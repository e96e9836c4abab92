/* stats.c - numbers of which others keep count, read at each scrape of /metrics: the store, the
 * cache, connections, the process. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "daemon_int.h"

/* ---- where the numbers are ---- */

static double storage_number(struct vg_daemon *d, size_t offset)
{
    struct vg_storage_stats s;
    vg_storage_stats(d->storage, &s);
    return (double)*(const uint64_t *)(const void *)((const char *)&s + offset);
}

static double cacher_number(struct vg_daemon *d, size_t offset)
{
    struct vg_cacher_stats s;
    vg_cacher_stats(d->cacher, &s);
    return (double)*(const uint64_t *)(const void *)((const char *)&s + offset);
}

static double http_number(struct vg_daemon *d, size_t offset)
{
    struct vg_http_stats s;
    vg_http_stats(d->shared, &s);
    return (double)*(const uint64_t *)(const void *)((const char *)&s + offset);
}

static double revision(struct vg_daemon *d, size_t offset)
{
    return (double)(offset ? vg_storage_compacted(d->storage) : vg_storage_revision(d->storage));
}

static double unreadable(struct vg_daemon *d, size_t offset)
{
    (void)offset;
    return (double)atomic_load_explicit(&d->unreadable.unreadable, memory_order_relaxed);
}

/* A field of /proc/self/statm, in bytes. */
static double memory(struct vg_daemon *d, size_t field)
{
    unsigned long pages[2] = {0};
    (void)d;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f) {
        if (fscanf(f, "%lu %lu", &pages[0], &pages[1]) != 2)
            pages[field] = 0;
        fclose(f);
    }
    return (double)pages[field] * (double)sysconf(_SC_PAGESIZE);
}

static double cpu_seconds(struct vg_daemon *d, size_t offset)
{
    struct rusage u;
    (void)d;
    (void)offset;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static double open_descriptors(struct vg_daemon *d, size_t offset)
{
    double n = -3; /* ".", "..", and the one that reads them */
    (void)d;
    (void)offset;
    DIR *dir = opendir("/proc/self/fd");
    if (!dir)
        return 0;
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static double max_descriptors(struct vg_daemon *d, size_t offset)
{
    struct rlimit l = {0};
    (void)d;
    (void)offset;
    getrlimit(RLIMIT_NOFILE, &l);
    return (double)l.rlim_cur;
}

static double start_time(struct vg_daemon *d, size_t offset)
{
    (void)offset;
    return (double)d->start_wall_ms / 1000;
}

/* ---- the rows ---- */

#define STORAGE(field) storage_number, offsetof(struct vg_storage_stats, field)
#define CACHER(field) cacher_number, offsetof(struct vg_cacher_stats, field)
#define HTTP(field) http_number, offsetof(struct vg_http_stats, field)

static const struct row {
    struct vg_metric_desc desc;
    double (*read)(struct vg_daemon *d, size_t offset);
    size_t offset;
} rows[] = {
#define COUNTER(metric, text, ...)                                                                 \
    {                                                                                              \
        {.name = metric, .help = text, .type = VG_METRIC_COUNTER}, __VA_ARGS__                     \
    }
#define GAUGE(metric, text, ...)                                                                   \
    {                                                                                              \
        {.name = metric, .help = text, .type = VG_METRIC_GAUGE}, __VA_ARGS__                       \
    }
    GAUGE("vigil_storage_revision", "Newest revision of the store.", revision, 0),
    GAUGE("vigil_storage_compacted_revision", "History before this is gone.", revision, 1),
    COUNTER("vigil_storage_transactions_total", "Transactions.", STORAGE(txns)),
    COUNTER("vigil_storage_conflicts_total", "Transactions that lost a race.", STORAGE(conflicts)),
    COUNTER("vigil_storage_expired_total", "Keys whose time was over.", STORAGE(expired)),
    COUNTER("vigil_storage_commits_total", "Groups made durable.", STORAGE(commits)),
    COUNTER("vigil_storage_syncs_total", "Syncs of the write-ahead log.", STORAGE(syncs)),
    COUNTER("vigil_storage_wal_bytes_total", "Bytes written to the log.", STORAGE(wal_bytes)),
    COUNTER("vigil_storage_checkpoints_total", "Checkpoints.", STORAGE(checkpoints)),
    COUNTER("vigil_storage_checkpoint_failures_total", "Checkpoints that failed.",
            STORAGE(checkpoint_failures)),
    COUNTER("vigil_storage_compaction_failures_total", "Compactions that failed.",
            STORAGE(compaction_failures)),
    COUNTER("vigil_storage_damaged_records_total",
            "Records of the store that did not read back, each once; the log has their keys.",
            STORAGE(damaged_records)),
    COUNTER("vigil_storage_scrub_passes_total",
            "Times the whole base was read again from the disk.", STORAGE(scrub_passes)),
    COUNTER("vigil_storage_scrub_bytes_total", "Bytes read for that.", STORAGE(scrub_bytes)),
    COUNTER("vigil_storage_scrub_damages_total", "Damage that it found; the log says what.",
            STORAGE(scrub_damages)),
    GAUGE("vigil_storage_full", "1 while the disk is full: only deletions are taken.",
          STORAGE(full)),
    GAUGE("vigil_storage_reserve_bytes", "Held on the disk for when it is full.",
          STORAGE(reserve_bytes)),
    GAUGE("vigil_storage_disk_bytes", "Size of the files.", STORAGE(disk_bytes)),
    GAUGE("vigil_storage_pending", "Requests that the commit thread has not taken.",
          STORAGE(pending)),
    GAUGE("vigil_storage_overlay_bytes", "In memory, not yet in the base.", STORAGE(overlay_bytes)),
    COUNTER("vigil_storage_progress_requests_total", "Times etcd was asked how far its watch is.",
            STORAGE(progress_requests)),
    COUNTER("vigil_storage_barriers_total", "Barriers written, for etcd that does not tell it.",
            STORAGE(barriers)),
    COUNTER("vigil_storage_watch_restarts_total", "Times the watch of etcd broke off.",
            STORAGE(watch_restarts)),
    COUNTER("vigil_storage_past_watches_total", "Watches of etcd begun in the past, for replays.",
            STORAGE(past_watches)),
    COUNTER("vigil_storage_unknown_outcomes_total", "Writes of which it is not known.",
            STORAGE(unknown_outcomes)),
    COUNTER("vigil_storage_resolved_outcomes_total", "Writes whose answer was lost, and found.",
            STORAGE(resolved_outcomes)),
    COUNTER("vigil_storage_unreadable_objects_total",
            "Objects in etcd that could not be read, each time; the log has their keys.",
            unreadable, 0),
    GAUGE("vigil_cache_revision", "Newest revision in the cache.", CACHER(rev)),
    COUNTER("vigil_cache_events_received_total", "Events from the store.", CACHER(events_received)),
    COUNTER("vigil_cache_events_dispatched_total", "Events to live watchers.",
            CACHER(events_dispatched)),
    COUNTER("vigil_cache_events_replayed_total", "Events to watchers that lag.",
            CACHER(events_replayed)),
    COUNTER("vigil_cache_events_from_storage_total", "Replayed events read from the store.",
            CACHER(events_from_storage)),
    COUNTER("vigil_cache_init_events_total", "Initial events of watches.", CACHER(init_events)),
    COUNTER("vigil_cache_bookmarks_total", "Bookmarks sent.", CACHER(bookmarks)),
    COUNTER("vigil_cache_relists_total", "Times the cache was filled anew.", CACHER(relists)),
    COUNTER("vigil_cache_forms_made_total", "Events encoded in another form.", CACHER(bodies_made)),
    COUNTER("vigil_cache_forms_shared_total", "Events sent in a form that was made before.",
            CACHER(bodies_shared)),
    COUNTER("vigil_cache_digest_checks_total", "Comparisons with the store.",
            CACHER(digest_checks)),
    COUNTER("vigil_cache_digest_failures_total", "Comparisons that differed.",
            CACHER(digest_failures)),
    GAUGE("vigil_cache_pinned_bytes", "Bytes that slow clients pin.", CACHER(pinned_bytes)),
    COUNTER("vigil_http_connections_accepted_total", "Connections.", HTTP(accepted)),
    COUNTER("vigil_http_connections_refused_total", "Connections over a limit.", HTTP(refused)),
    GAUGE("vigil_http_connections", "Connections open.", HTTP(open)),
    GAUGE("vigil_http_tls_connections", "Of these, with TLS.", HTTP(open_tls)),
    GAUGE("vigil_http_http2_connections", "Of these, HTTP/2.", HTTP(open_h2)),
    COUNTER("vigil_http_handshakes_failed_total", "TLS handshakes that failed.",
            HTTP(handshakes_failed)),
    COUNTER("vigil_http_requests_total", "Requests.", HTTP(requests)),
    COUNTER("vigil_http_malformed_total", "Requests that are no HTTP.", HTTP(malformed)),
    COUNTER("vigil_http_timeouts_total", "Connections and requests that were too slow.",
            HTTP(timeouts)),
    COUNTER("vigil_http_floods_total", "HTTP/2 connections ended for flooding.", HTTP(floods)),
    COUNTER("vigil_http_received_bytes_total", "Bytes received.", HTTP(bytes_in)),
    COUNTER("vigil_http_sent_bytes_total", "Bytes sent.", HTTP(bytes_out)),
    COUNTER("process_cpu_seconds_total", "User and system CPU time.", cpu_seconds, 0),
    GAUGE("process_virtual_memory_bytes", "Address space.", memory, 0),
    GAUGE("process_resident_memory_bytes", "Resident memory, mapped files included.", memory, 1),
    GAUGE("process_open_fds", "Open file descriptors.", open_descriptors, 0),
    GAUGE("process_max_fds", "Limit of file descriptors.", max_descriptors, 0),
    GAUGE("process_start_time_seconds", "When the process started, since 1970.", start_time, 0),
#undef COUNTER
#undef GAUGE
};

struct vg_stat_row {
    struct vg_daemon *daemon;
    const struct row *row;
};

static void collect_row(void *arg, struct vg_metric_writer *writer)
{
    const struct vg_stat_row *r = arg;
    vg_metric_emit(writer, NULL, r->row->read(r->daemon, r->row->offset));
}

static const struct vg_metric_desc ends_desc = {
    .name = "vigil_watch_ends_total",
    .help = "Watches that ended, by reason.",
    .type = VG_METRIC_COUNTER,
    .labels = {"reason"},
};

static void collect_ends(void *arg, struct vg_metric_writer *writer)
{
    struct vg_daemon *d = arg;
    struct vg_cacher_stats s;
    vg_cacher_stats(d->cacher, &s);
    for (int i = 0; i < VG_END_REASONS; i++) {
        struct vg_slice reason = vg_slice_str(vg_watch_end_name((enum vg_watch_end)i));
        vg_metric_emit(writer, &reason, (double)s.ended[i]);
    }
}

int vg_daemon_add_metrics(struct vg_daemon *d)
{
    struct vg_metric *metric;
    d->stat_rows = vg_calloc(VG_ARRAY_LEN(rows), sizeof *d->stat_rows);
    if (!d->stat_rows)
        return -ENOMEM;
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        d->stat_rows[i] = (struct vg_stat_row){d, &rows[i]};
        int r = vg_metrics_add_callback(d->metrics, &rows[i].desc, collect_row, &d->stat_rows[i],
                                        &metric);
        if (r < 0)
            return r;
    }
    return vg_metrics_add_callback(d->metrics, &ends_desc, collect_ends, d, &metric);
}
