/* sqlite.c - SQLite in WAL mode with synchronous=FULL, used as kine uses it for k3s: one table that
 * is a log, a row per change, the previous value kept in the row. A write is one transaction: find
 * the newest row of the key, compare its revision, insert. Statements are prepared once.
 * In SQLite's favour: kine talks to it through Go, HTTP/2 and protobuf and since 2024 keeps one
 * more index than is kept here. */
#include <pthread.h>
#include <stdlib.h>

#include "contest.h"

#if BENCH_HAVE_SQLITE
#include <sqlite3.h>

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS kine (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT,"
    " created INTEGER, deleted INTEGER, create_revision INTEGER, prev_revision INTEGER,"
    " lease INTEGER, value BLOB, old_value BLOB);"
    "CREATE INDEX IF NOT EXISTS by_name ON kine (name);"
    "CREATE INDEX IF NOT EXISTS by_name_id ON kine (name, id);"
    "CREATE INDEX IF NOT EXISTS by_id_deleted ON kine (id, deleted);"
    "CREATE INDEX IF NOT EXISTS by_prev ON kine (prev_revision);"
    "CREATE UNIQUE INDEX IF NOT EXISTS by_name_prev ON kine (name, prev_revision);";
static const char settings[] = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;";

enum { S_BEGIN, S_GET, S_PUT, S_COMMIT, S_COUNT };
static const char *const statements[S_COUNT] = {
    "BEGIN IMMEDIATE",
    "SELECT id, create_revision, value FROM kine WHERE name = ?1 ORDER BY id DESC LIMIT 1",
    ("INSERT INTO kine (name, created, deleted, create_revision, prev_revision, lease, value,"
     " old_value) VALUES (?1, ?2, 0, ?3, ?4, 0, ?5, ?6)"),
    "COMMIT",
};

struct conn {
    sqlite3 *db;
    sqlite3_stmt *st[S_COUNT];
    uint64_t deadline_ns; /* nobody waits for the lock beyond it */
};

struct sqlite_row {
    char *path;
    struct workload *load;
};

static void must(const struct conn *c, int got, int want)
{
    if (got != want)
        bench_die("SQLite: %s", c->db ? sqlite3_errmsg(c->db) : sqlite3_errstr(got));
}

/* Sleeps as SQLite's own busy handler does, but gives up when the slice is over: among many writers
 * some wait for seconds. */
static int on_busy(void *arg, int times)
{
    static const uint8_t ms[] = {1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50, 100};
    const struct conn *c = arg;
    size_t i = VG_MIN((size_t)times, VG_ARRAY_LEN(ms) - 1);
    if (c->deadline_ns && bench_now_ns() > c->deadline_ns)
        return 0;
    sqlite3_sleep(ms[i]);
    return 1;
}

static void conn_open(struct conn *c, const char *path)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    must(c, sqlite3_open_v2(path, &c->db, flags, NULL), SQLITE_OK);
    sqlite3_busy_handler(c->db, on_busy, c);
    must(c, sqlite3_exec(c->db, settings, NULL, NULL, NULL), SQLITE_OK);
    must(c, sqlite3_exec(c->db, schema, NULL, NULL, NULL), SQLITE_OK);
    for (int i = 0; i < S_COUNT; i++)
        must(c, sqlite3_prepare_v2(c->db, statements[i], -1, &c->st[i], NULL), SQLITE_OK);
}

static void conn_close(struct conn *c)
{
    c->deadline_ns = 0;
    for (int i = 0; i < S_COUNT; i++)
        sqlite3_finalize(c->st[i]);
    sqlite3_close(c->db);
    *c = (struct conn){0};
}

static void step(struct conn *c, int which)
{
    must(c, sqlite3_step(c->st[which]), SQLITE_DONE);
    sqlite3_reset(c->st[which]);
}

/* S_GET stands on the key's newest row, if there is one, and stays there until S_PUT has run: the
 * old value is bound in place. */
static void bind_put(struct conn *c, const struct wl_op *op, bool found)
{
    sqlite3_stmt *get = c->st[S_GET], *put = c->st[S_PUT];
    int blob = (int)(op->header.n + op->value.n);
    sqlite3_bind_text(put, 1, op->key, WL_KEY_LEN, SQLITE_STATIC);
    sqlite3_bind_int(put, 2, !found);
    sqlite3_bind_int64(put, 3, found ? sqlite3_column_int64(get, 1) : 0);
    sqlite3_bind_int64(put, 4, (sqlite3_int64)op->expect);
    sqlite3_bind_blob(put, 5, op->header.p, blob, SQLITE_STATIC);
    if (found)
        sqlite3_bind_blob(put, 6, sqlite3_column_blob(get, 2), sqlite3_column_bytes(get, 2),
                          SQLITE_STATIC);
    else
        sqlite3_bind_null(put, 6);
}

/* Inside a transaction: compare and insert. The new revision. */
static uint64_t conn_put(struct conn *c, const struct wl_op *op)
{
    sqlite3_stmt *get = c->st[S_GET];
    sqlite3_bind_text(get, 1, op->key, WL_KEY_LEN, SQLITE_STATIC);
    int r = sqlite3_step(get);
    bool found = r == SQLITE_ROW;
    if (!found)
        must(c, r, SQLITE_DONE);
    if ((uint64_t)(found ? sqlite3_column_int64(get, 0) : 0) != op->expect)
        bench_die("SQLite: %s is not at the revision that was acknowledged", op->key);
    bind_put(c, op, found);
    step(c, S_PUT);
    sqlite3_reset(get);
    return (uint64_t)sqlite3_last_insert_rowid(c->db);
}

/* As a transaction of its own. 0: the time was over before the lock was free. */
static uint64_t conn_write(struct conn *c, const struct wl_op *op)
{
    int begun = sqlite3_step(c->st[S_BEGIN]);
    sqlite3_reset(c->st[S_BEGIN]);
    if (begun == SQLITE_BUSY)
        return 0;
    must(c, begun, SQLITE_DONE);
    uint64_t rev = conn_put(c, op);
    step(c, S_COMMIT);
    return rev;
}

/* One thread and one connection, for one writer (OWN) or for all in turn (QUEUE). */
struct worker {
    struct conn conn;
    pthread_t thread;
    pthread_barrier_t *start;
    struct wl_writer *writers;
    uint32_t n_writers;
    uint64_t ns, writes, end_ns;
    struct vg_hist latency;
};

static void *work(void *arg)
{
    struct worker *w = arg;
    uint64_t *sent = bench_alloc(w->n_writers, sizeof *sent);
    pthread_barrier_wait(w->start);
    uint64_t begin = bench_now_ns(), now = begin;
    w->conn.deadline_ns = begin + w->ns;
    for (uint32_t i = 0; i < w->n_writers; i++)
        sent[i] = begin;
    uint32_t at = 0;
    while (now - begin < w->ns && !bench_interrupted()) {
        struct wl_op op;
        wl_next(&w->writers[at], &op);
        uint64_t rev = conn_write(&w->conn, &op);
        now = bench_now_ns();
        if (rev == 0)
            break;
        wl_done(&w->writers[at], &op, rev);
        vg_hist_add(&w->latency, now - sent[at]);
        sent[at] = now;
        w->writes++;
        at = at + 1 < w->n_writers ? at + 1 : 0;
    }
    w->end_ns = now;
    free(sent);
    return NULL;
}

/* Returns when the last worker ended. */
static uint64_t run_workers(struct worker *workers, uint32_t n, struct bench_usage *ret_begin)
{
    pthread_barrier_t start;
    pthread_attr_t attr;
    uint64_t end_ns = 0;
    pthread_barrier_init(&start, NULL, n + 1);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 512 * 1024);
    for (uint32_t i = 0; i < n; i++) {
        workers[i].start = &start;
        if (pthread_create(&workers[i].thread, &attr, work, &workers[i]) != 0)
            bench_die("cannot start %u threads", n);
    }
    bench_usage_now(ret_begin);
    pthread_barrier_wait(&start);
    for (uint32_t i = 0; i < n; i++) {
        pthread_join(workers[i].thread, NULL);
        end_ns = VG_MAX(end_ns, workers[i].end_ns);
    }
    pthread_attr_destroy(&attr);
    pthread_barrier_destroy(&start);
    return end_ns;
}

static void gather(struct worker *workers, uint32_t n, const struct workload *load,
                   struct bench_slice *slice)
{
    for (uint32_t i = 0; i < n; i++) {
        slice->writes += workers[i].writes;
        vg_hist_merge(&slice->latency, &workers[i].latency);
    }
    slice->commits = slice->syncs = slice->total_writes = slice->writes;
    slice->user_bytes = (double)(slice->writes * workload_bytes(load));
}

bool sqlite_is_there(void)
{
    return true;
}

struct sqlite_row *sqlite_row_new(const char *dir, uint32_t writers, size_t value_len)
{
    struct sqlite_row *row = bench_alloc(1, sizeof *row);
    row->path = bench_path(dir, "kine.db");
    row->load = workload_new(writers, value_len, false);
    return row;
}

/* All in one transaction, since this is not measured. */
void sqlite_row_fill(struct sqlite_row *row)
{
    struct conn c = {0};
    conn_open(&c, row->path);
    step(&c, S_BEGIN);
    for (uint64_t i = workload_fill(row->load); i > 0; i--) {
        struct wl_writer *w = &row->load->writers[i % row->load->n_writers];
        struct wl_op op;
        wl_next(w, &op);
        wl_done(w, &op, conn_put(&c, &op));
    }
    step(&c, S_COMMIT);
    conn_close(&c);
}

void sqlite_row_slice(struct sqlite_row *row, const struct bench_plan *plan, enum sqlite_way way,
                      struct bench_slice *ret_slice)
{
    uint32_t n = way == SQLITE_WAY_OWN ? row->load->n_writers : 1;
    struct worker *workers = bench_alloc(n, sizeof *workers);
    for (uint32_t i = 0; i < n; i++) {
        workers[i].writers = &row->load->writers[i];
        workers[i].n_writers = row->load->n_writers / n;
        workers[i].ns = plan->ns;
        conn_open(&workers[i].conn, row->path);
    }
    struct bench_usage begin, end;
    uint64_t written = bench_written();
    uint64_t end_ns = run_workers(workers, n, &begin);
    bench_usage_now(&end);
    gather(workers, n, row->load, ret_slice);
    ret_slice->secs = (double)(end_ns - begin.wall_ns) / 1e9;
    ret_slice->cpu_s = ret_slice->engine_s = (double)(end.cpu_ns - begin.cpu_ns) / 1e9;
    for (uint32_t i = 0; i < n; i++)
        conn_close(&workers[i].conn);
    ret_slice->close_s = (double)(bench_now_ns() - end.wall_ns) / 1e9;
    ret_slice->written = bench_written() - written;
    free(workers);
}

void sqlite_row_free(struct sqlite_row *row)
{
    if (!row)
        return;
    workload_free(row->load);
    free(row->path);
    free(row);
}

#else

bool sqlite_is_there(void)
{
    return false;
}

struct sqlite_row *sqlite_row_new(const char *dir, uint32_t writers, size_t value_len)
{
    (void)dir;
    (void)writers;
    (void)value_len;
    return NULL;
}

void sqlite_row_fill(struct sqlite_row *row)
{
    (void)row;
}

void sqlite_row_slice(struct sqlite_row *row, const struct bench_plan *plan, enum sqlite_way way,
                      struct bench_slice *ret_slice)
{
    (void)row;
    (void)plan;
    (void)way;
    (void)ret_slice;
}

void sqlite_row_free(struct sqlite_row *row)
{
    (void)row;
}

#endif
