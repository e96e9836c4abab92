/* test_support.c - see test_support.h. */
#include "test_support.h"

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

static void die(const char *what)
{
    fprintf(stderr, "test support: %s: %s\n", what, strerrordesc_np(errno));
    exit(2);
}

/* seeds and switches */

static pthread_once_t seed_once = PTHREAD_ONCE_INIT;
static uint64_t seed;

static void choose_seed(void)
{
    const char *text = getenv("VG_SEED");
    if (text && *text)
        seed = strtoull(text, NULL, 0);
    else if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
        die("getrandom");
    printf("seed=%" PRIu64 "\n", seed);
    fflush(stdout);
}

uint64_t vg_test_seed(void)
{
    pthread_once(&seed_once, choose_seed);
    return seed;
}

bool vg_test_is_long(void)
{
    const char *text = getenv("VG_LONG");
    return text && *text && strcmp(text, "0") != 0;
}

/* vectors */

static void read_file(FILE *f, struct vg_buf *ret)
{
    char piece[16384];
    size_t n;
    while ((n = fread(piece, 1, sizeof piece, f)) > 0)
        if (vg_buf_append(ret, piece, n) < 0)
            die("reading a vector");
    if (ferror(f))
        die("reading a vector");
}

void vg_test_vector_dir(const char *name, char *ret_path, size_t n)
{
    const char *dir = getenv("VG_VECTORS");
    if (!dir || !*dir)
        dir = VG_VECTORS_DIR;
    if (snprintf(ret_path, n, "%s/%s", dir, name) >= (int)n || access(ret_path, R_OK) < 0)
        die(ret_path);
}

void vg_test_vector(const char *name, struct vg_buf *ret)
{
    char path[4096];
    vg_test_vector_dir(name, path, sizeof path);
    FILE *f = fopen(path, "rb");
    if (!f)
        die(path);
    read_file(f, ret);
    fclose(f);
}

/* directories */

struct tmpdir {
    struct tmpdir *next;
    pid_t maker; /* a forked child must not remove what its parent uses */
    char path[];
};

static pthread_mutex_t tmpdirs_mu = PTHREAD_MUTEX_INITIALIZER;
static struct tmpdir *tmpdirs;

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

void vg_test_remove_tree(const char *path)
{
    if (nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS) < 0 && errno != ENOENT)
        fprintf(stderr, "test support: cannot remove %s: %s\n", path, strerrordesc_np(errno));
}

static void remove_tmpdirs(void)
{
    while (tmpdirs) {
        struct tmpdir *d = tmpdirs;
        tmpdirs = d->next;
        if (d->maker == getpid())
            vg_test_remove_tree(d->path);
        free(d);
    }
}

static struct tmpdir *new_tmpdir(void)
{
    const char *under = getenv("TMPDIR");
    const char *root = under && *under ? under : "/tmp";
    size_t size = strlen(root) + sizeof "/vigil-test-XXXXXX";
    struct tmpdir *d = malloc(sizeof *d + size);
    if (!d)
        die("malloc");
    snprintf(d->path, size, "%s/vigil-test-XXXXXX", root);
    if (!mkdtemp(d->path))
        die("mkdtemp");
    d->maker = getpid();
    return d;
}

const char *vg_test_tmpdir(void)
{
    static bool registered;
    struct tmpdir *d = new_tmpdir();
    pthread_mutex_lock(&tmpdirs_mu);
    if (!registered)
        registered = atexit(remove_tmpdirs) == 0;
    d->next = tmpdirs;
    tmpdirs = d;
    pthread_mutex_unlock(&tmpdirs_mu);
    return d->path;
}

void vg_test_tmpdir_remove(const char *path)
{
    vg_test_remove_tree(path);
    pthread_mutex_lock(&tmpdirs_mu);
    for (struct tmpdir **at = &tmpdirs; *at; at = &(*at)->next) {
        struct tmpdir *d = *at;
        if (d->path != path)
            continue;
        *at = d->next;
        free(d);
        break;
    }
    pthread_mutex_unlock(&tmpdirs_mu);
}

int vg_test_tmpdir_setup(void **state)
{
    *(const char **)state = vg_test_tmpdir();
    return 0;
}

int vg_test_tmpdir_teardown(void **state)
{
    vg_test_tmpdir_remove(*state);
    *state = NULL;
    return 0;
}

/* failing allocations */

static uint64_t fail_n;    /* which allocation the running body fails */
static uint64_t fail_made; /* how many it made before the switch went off */
static bool fail_is_off = true;

bool vg_test_alloc_failed(void)
{
    if (!fail_is_off)
        fail_made = vg_alloc_fail_at(0, 0);
    fail_is_off = true;
    return fail_made >= fail_n;
}

bool vg_test_fail_step(uint64_t *n, int all_threads)
{
    if (*n > 0 && !vg_test_alloc_failed())
        return false;
    fail_n = ++*n;
    fail_is_off = false;
    vg_alloc_fail_at(*n, all_threads);
    return true;
}

/* threads */

struct runner {
    pthread_t thread;
    pthread_barrier_t *start;
    vg_test_thread_fn *fn;
    void *arg;
    unsigned index;
};

static void *run_thread(void *arg)
{
    struct runner *r = arg;
    pthread_barrier_wait(r->start);
    r->fn(r->index, r->arg);
    return NULL;
}

void vg_test_threads(unsigned count, vg_test_thread_fn *fn, void *arg)
{
    pthread_barrier_t start;
    struct runner *runners = calloc(count, sizeof *runners);
    if (!runners || pthread_barrier_init(&start, NULL, count) != 0)
        die("threads");
    for (unsigned i = 0; i < count; i++) {
        runners[i] = (struct runner){.start = &start, .fn = fn, .arg = arg, .index = i};
        if (pthread_create(&runners[i].thread, NULL, run_thread, &runners[i]) != 0)
            die("pthread_create");
    }
    for (unsigned i = 0; i < count; i++)
        pthread_join(runners[i].thread, NULL);
    pthread_barrier_destroy(&start);
    free(runners);
}

/* death */

static void run_child(void (*fn)(void *arg), void *arg, int stderr_fd)
{
    dup2(stderr_fd, STDERR_FILENO);
    signal(SIGABRT, SIG_DFL); /* cmocka and sanitizers have their own ideas */
    fn(arg);
    _exit(0);
}

static size_t read_all(int fd, char *out, size_t size)
{
    size_t used = 0;
    ssize_t n;
    while (used < size && (n = read(fd, out + used, size - used)) > 0)
        used += (size_t)n;
    return used;
}

void vg_test_dies(void (*fn)(void *arg), void *arg, const char *text)
{
    char said[4096];
    int fds[2], status = 0;
    fflush(NULL);
    if (pipe(fds) < 0)
        die("pipe");
    pid_t child = fork();
    if (child < 0)
        die("fork");
    if (child == 0)
        run_child(fn, arg, fds[1]);
    close(fds[1]);
    said[read_all(fds[0], said, sizeof said - 1)] = '\0';
    close(fds[0]);
    waitpid(child, &status, 0);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT || !strstr(said, text))
        fail_msg("expected abort with '%s'; status %d, stderr '%s'", text, status, said);
}

/* bytes */

void vg_assert_slice_equal_(struct vg_slice got, struct vg_slice want, const char *file, int line)
{
    if (vg_slice_eq(got, want))
        return;
    /* cmocka's print_error cuts at 1 KiB. */
    fprintf(stderr, "got  (%zu bytes): %.*s\nwant (%zu bytes): %.*s\n", got.n, VG_SLICE_ARG(got),
            want.n, VG_SLICE_ARG(want));
    _fail(file, line);
}
