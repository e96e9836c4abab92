/* tokens.c - see tokens.h. Rows are sorted by digest; all texts are in one arena. */
#include "tokens.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/sha.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"

#define COLUMNS_MAX 4u

struct vg_tokens {
    _Atomic uint32_t refs;
    struct vg_arena arena;
    struct vg_token *rows;
    size_t n, room;
};

/* ---- reading CSV ---- */

struct reader {
    const char *p, *end;
    size_t line;
    struct vg_arena *arena;
};

/* A field in quotes, in which "" is one quote. p is behind the opening one. */
static int read_quoted(struct reader *r, struct vg_slice *ret)
{
    char *out = vg_arena_alloc(r->arena, (size_t)(r->end - r->p) + 1, 1);
    size_t n = 0;
    if (!out)
        return -ENOMEM;
    for (; r->p < r->end; r->p++) {
        if (*r->p == '"') {
            if (r->p + 1 == r->end || r->p[1] != '"')
                break;
            r->p++;
        }
        if (*r->p == '\n')
            r->line++;
        out[n++] = *r->p;
    }
    if (r->p == r->end)
        return VIGIL_E_INVALID;
    r->p++;
    *ret = vg_slice(out, n);
    return r->p == r->end || *r->p == ',' || *r->p == '\n' || *r->p == '\r' ? 0 : VIGIL_E_INVALID;
}

static struct vg_slice read_bare(struct reader *r)
{
    const char *start = r->p;
    while (r->p < r->end && *r->p != ',' && *r->p != '\n')
        r->p++;
    size_t n = (size_t)(r->p - start);
    if (n && start[n - 1] == '\r' && (r->p == r->end || *r->p == '\n'))
        n--;
    return vg_slice(start, n);
}

/* One row. The number of its columns (those beyond COLUMNS_MAX are dropped), or negative. */
static int read_row(struct reader *r, struct vg_slice columns[COLUMNS_MAX])
{
    for (unsigned n = 0;; r->p++) {
        struct vg_slice field;
        while (r->p < r->end && *r->p == ' ')
            r->p++;
        if (r->p < r->end && *r->p == '"') {
            r->p++;
            int err = read_quoted(r, &field);
            if (err < 0)
                return err;
        } else {
            field = read_bare(r);
        }
        if (n < COLUMNS_MAX)
            columns[n++] = field;
        if (r->p < r->end && *r->p == '\r')
            r->p++;
        if (r->p == r->end || *r->p == '\n') {
            r->p += r->p < r->end;
            return (int)n;
        }
    }
}

/* ---- rows ---- */

static int split_groups(struct vg_arena *a, struct vg_slice text, struct vg_token *row)
{
    size_t n = 1, at = 0;
    if (text.n == 0)
        return 0;
    for (size_t i = 0; i < text.n; i++)
        n += text.p[i] == ',';
    struct vg_slice *groups = vg_arena_array(a, struct vg_slice, n);
    if (!groups)
        return -ENOMEM;
    row->groups = groups;
    for (size_t i = 0; i <= text.n; i++) {
        if (i == text.n || text.p[i] == ',') {
            groups[row->n_groups++] = vg_slice(text.p + at, i - at);
            at = i + 1;
        }
    }
    return 0;
}

static int add_row(struct vg_tokens *t, const struct vg_slice *columns, int n)
{
    if (t->n == t->room) {
        size_t room = t->room ? 2 * t->room : 16;
        void *rows = vg_reallocarray(t->rows, room, sizeof *t->rows);
        if (!rows)
            return -ENOMEM;
        t->rows = rows;
        t->room = room;
    }
    struct vg_token *row = &t->rows[t->n];
    *row = (struct vg_token){.name = columns[1], .uid = columns[2]};
    SHA256((const unsigned char *)columns[0].p, columns[0].n, row->digest);
    int r = n > 3 ? split_groups(&t->arena, columns[3], row) : 0;
    t->n += r == 0;
    return r;
}

static int compare_rows(const void *a, const void *b)
{
    return memcmp(((const struct vg_token *)a)->digest, ((const struct vg_token *)b)->digest,
                  sizeof((const struct vg_token *)a)->digest);
}

static int check_row(const char *name, size_t line, const struct vg_slice *columns, int n,
                     const struct vg_tokens *t, struct vg_status *reterr_status)
{
    if (n < 3)
        return vg_fail(reterr_status, VIGIL_E_INVALID,
                       "%s:%zu: a row needs at least 3 columns (token, user name, user uid), "
                       "found %d",
                       name, line, n);
    if (columns[0].n == 0 || columns[1].n == 0)
        return vg_fail(reterr_status, VIGIL_E_INVALID, "%s:%zu: the %s is empty", name, line,
                       columns[0].n ? "user name" : "token");
    if (t->n == VG_TOKENS_MAX)
        return vg_fail(reterr_status, VIGIL_E_INVALID, "%s:%zu: more than %u tokens", name, line,
                       VG_TOKENS_MAX);
    return 0;
}

/* All rows of a text that lies in the arena; of the tokens nothing is left there. */
static int parse_rows(const char *name, char *text, size_t size, struct vg_tokens *t,
                      struct vg_status *reterr_status)
{
    struct reader r = {text, text + size, 1, &t->arena};
    for (; r.p < r.end; r.line++) {
        struct vg_slice columns[COLUMNS_MAX];
        size_t line = r.line;
        int n = read_row(&r, columns);
        if (n == -ENOMEM)
            return n;
        if (n < 0)
            return vg_fail(reterr_status, n, "%s:%zu: malformed quotes", name, line);
        if ((n == 1 && columns[0].n == 0) || (columns[0].n && columns[0].p[0] == '#'))
            continue;
        int err = check_row(name, line, columns, n, t, reterr_status);
        if (err == 0)
            err = add_row(t, columns, n);
        explicit_bzero((char *)(uintptr_t)columns[0].p, columns[0].n);
        if (err < 0)
            return err;
    }
    if (t->n)
        qsort(t->rows, t->n, sizeof *t->rows, compare_rows);
    for (size_t i = 1; i < t->n; i++) {
        if (compare_rows(&t->rows[i - 1], &t->rows[i]) == 0)
            return vg_fail(reterr_status, VIGIL_E_INVALID,
                           "%s: one token stands in two rows (users %.*s and %.*s)", name,
                           VG_SLICE_ARG(t->rows[i - 1].name), VG_SLICE_ARG(t->rows[i].name));
    }
    return 0;
}

int vg_tokens_parse(const char *name, struct vg_slice text, struct vg_tokens **ret_tokens,
                    struct vg_status *reterr_status)
{
    struct vg_tokens *t = vg_new(struct vg_tokens);
    if (!t)
        return -ENOMEM;
    atomic_init(&t->refs, 1);
    vg_arena_init(&t->arena, 0, 0);
    char *copy = vg_arena_copy(&t->arena, text.p, text.n);
    int r = text.n && !copy ? -ENOMEM : parse_rows(name, copy, text.n, t, reterr_status);
    if (r < 0) {
        vg_tokens_unref(t);
        return r;
    }
    *ret_tokens = t;
    return 0;
}

static int read_all(int fd, struct vg_buf *out)
{
    for (;;) {
        int r = vg_buf_reserve(out, 4096);
        if (r < 0)
            return r;
        ssize_t n = read(fd, out->p + out->n, out->cap - out->n);
        if (n <= 0)
            return n == 0 ? 0 : -errno;
        out->n += (size_t)n;
    }
}

int vg_tokens_load(const char *path, struct vg_tokens **ret_tokens, struct vg_status *reterr_status)
{
    VG_AUTO(buf) text = {.max = VG_TOKENS_BYTES_MAX};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int r = fd < 0 ? -errno : read_all(fd, &text);
    if (fd >= 0)
        close(fd);
    if (r == 0)
        r = vg_tokens_parse(path, vg_buf_slice(&text), ret_tokens, reterr_status);
    else
        vg_fail(reterr_status, r, "cannot read the token file %s: %s", path, vg_err_text(r));
    if (text.p)
        explicit_bzero(text.p, text.cap);
    return r;
}

struct vg_tokens *vg_tokens_ref(struct vg_tokens *t)
{
    if (t)
        atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    return t;
}

struct vg_tokens *vg_tokens_unref(struct vg_tokens *t)
{
    if (t && atomic_fetch_sub_explicit(&t->refs, 1, memory_order_release) == 1) {
        atomic_thread_fence(memory_order_acquire);
        vg_arena_done(&t->arena);
        vg_free(t->rows);
        vg_free(t);
    }
    return NULL;
}

size_t vg_tokens_count(const struct vg_tokens *t)
{
    return t ? t->n : 0;
}

const struct vg_token *vg_tokens_find(const struct vg_tokens *t, struct vg_slice token)
{
    struct vg_token wanted = {.n_groups = 0};
    if (!t || t->n == 0)
        return NULL;
    SHA256((const unsigned char *)token.p, token.n, wanted.digest);
    return bsearch(&wanted, t->rows, t->n, sizeof *t->rows, compare_rows);
}
