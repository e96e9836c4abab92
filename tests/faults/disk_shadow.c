/* disk_shadow.c - see disk_shadow.h: keeping the shadow up to date. */
#include "disk_shadow_int.h"

#include <dirent.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void *vg_shadow_alloc(void *old, size_t size)
{
    void *p = realloc(old, size ? size : 1);
    if (!p) {
        fprintf(stderr, "disk shadow: out of memory\n");
        exit(2);
    }
    return p;
}

/* bytes */

void vg_shadow_bytes_done(struct shadow_bytes *b)
{
    for (size_t i = 0; i < b->n_pages; i++)
        free(b->pages[i]);
    free(b->pages);
    *b = (struct shadow_bytes){0};
}

static void zero_tail_of_page(struct shadow_bytes *b, uint64_t from)
{
    size_t page = (size_t)(from / SHADOW_PAGE), at = (size_t)(from % SHADOW_PAGE);
    if (at && page < b->n_pages && b->pages[page])
        memset(b->pages[page] + at, 0, SHADOW_PAGE - at);
}

void vg_shadow_bytes_resize(struct shadow_bytes *b, uint64_t size)
{
    size_t pages = (size_t)((size + SHADOW_PAGE - 1) / SHADOW_PAGE);
    for (size_t i = pages; i < b->n_pages; i++)
        free(b->pages[i]);
    if (size < b->size)
        zero_tail_of_page(b, size);
    if (pages != b->n_pages)
        b->pages = vg_shadow_alloc(b->pages, pages * sizeof *b->pages);
    for (size_t i = b->n_pages; i < pages; i++)
        b->pages[i] = NULL;
    b->n_pages = pages;
    b->size = size;
}

static char *page_for_writing(struct shadow_bytes *b, size_t page)
{
    if (!b->pages[page]) {
        b->pages[page] = vg_shadow_alloc(NULL, SHADOW_PAGE);
        memset(b->pages[page], 0, SHADOW_PAGE);
    }
    return b->pages[page];
}

void vg_shadow_bytes_write(struct shadow_bytes *b, uint64_t off, const char *p, size_t n)
{
    if (off + n > b->size)
        vg_shadow_bytes_resize(b, off + n);
    while (n) {
        size_t at = (size_t)(off % SHADOW_PAGE);
        size_t part = VG_MIN(n, (size_t)SHADOW_PAGE - at);
        memcpy(page_for_writing(b, (size_t)(off / SHADOW_PAGE)) + at, p, part);
        off += part;
        p += part;
        n -= part;
    }
}

void vg_shadow_bytes_apply(struct shadow_bytes *b, const struct shadow_change *c)
{
    if (c->bytes)
        vg_shadow_bytes_write(b, c->off, c->bytes, c->n);
    else
        vg_shadow_bytes_resize(b, c->off);
}

/* files */

static struct vg_shadow_file *add_file(struct vg_shadow *s, dev_t dev, ino_t ino)
{
    struct vg_shadow_file *f = vg_shadow_alloc(NULL, sizeof *f);
    *f = (struct vg_shadow_file){.next = s->files, .dev = dev, .ino = ino, .is_named = true};
    f->last = &f->first;
    s->files = f;
    return f;
}

/* The newest file with that inode is the one: older ones have lost their last name and holder. */
struct vg_shadow_file *vg_shadow_find(struct vg_shadow *s, dev_t dev, ino_t ino)
{
    for (struct vg_shadow_file *f = s->files; f; f = f->next)
        if (f->ino == ino && f->dev == dev)
            return f;
    return NULL;
}

static struct shadow_change *add_change(struct vg_shadow *s, struct vg_shadow_file *f)
{
    struct shadow_change *c = vg_shadow_alloc(NULL, sizeof *c);
    *c = (struct shadow_change){.seq = ++s->seq};
    *f->last = c;
    f->last = &c->next;
    return c;
}

void vg_shadow_write(struct vg_shadow *s, struct vg_shadow_file *f, uint64_t off, const void *p,
                     size_t n)
{
    if (n == 0)
        return;
    struct shadow_change *c = add_change(s, f);
    c->off = off;
    c->n = n;
    c->bytes = vg_shadow_alloc(NULL, n);
    memcpy(c->bytes, p, n);
    f->live_size = VG_MAX(f->live_size, off + n);
}

void vg_shadow_resize(struct vg_shadow *s, struct vg_shadow_file *f, uint64_t size)
{
    add_change(s, f)->off = size;
    f->live_size = size;
}

uint64_t vg_shadow_size(const struct vg_shadow_file *f)
{
    return f->live_size;
}

uint64_t vg_shadow_mark(const struct vg_shadow *s)
{
    return s->seq;
}

static void free_change(struct shadow_change *c)
{
    free(c->bytes);
    free(c);
}

/* Takes the oldest change out of the list; NULL when none is left up to the mark. */
static struct shadow_change *pop_change(struct vg_shadow_file *f, uint64_t mark)
{
    struct shadow_change *c = f->first;
    if (!c || c->seq > mark)
        return NULL;
    f->first = c->next;
    if (!f->first)
        f->last = &f->first;
    return c;
}

void vg_shadow_sync(struct vg_shadow_file *f, uint64_t mark)
{
    struct shadow_change *c;
    while ((c = pop_change(f, mark))) {
        vg_shadow_bytes_apply(&f->durable, c);
        free_change(c);
    }
}

void vg_shadow_sync_failed(struct vg_shadow_file *f, uint64_t mark, struct vg_rng *rng)
{
    struct shadow_change *c;
    while ((c = pop_change(f, mark))) {
        vg_shadow_bytes_apply_maybe(&f->durable, c, rng);
        free_change(c);
    }
}

/* A page in the cache has one content: an older write that still waits for its sync would bring the
 * newer bytes with it. */
static void put_on_top(struct shadow_change *old, const struct shadow_change *top)
{
    uint64_t from = VG_MAX(old->off, top->off);
    uint64_t to = VG_MIN(old->off + old->n, top->off + top->n);
    if (old->bytes && from < to)
        memcpy(old->bytes + (from - old->off), top->bytes + (from - top->off), (size_t)(to - from));
}

void vg_shadow_sync_newest(struct vg_shadow_file *f, struct vg_rng *failed)
{
    struct shadow_change **at = &f->first;
    while (*at && (*at)->next)
        at = &(*at)->next;
    struct shadow_change *newest = *at;
    if (!newest)
        return;
    *at = NULL;
    f->last = at;
    for (struct shadow_change *c = f->first; c; c = c->next)
        put_on_top(c, newest);
    if (failed)
        vg_shadow_bytes_apply_maybe(&f->durable, newest, failed);
    else
        vg_shadow_bytes_apply(&f->durable, newest);
    free_change(newest);
}

/* names */

static struct shadow_name *find_name(const struct shadow_names *names, const char *name)
{
    for (size_t i = 0; i < names->n; i++)
        if (strcmp(names->at[i].name, name) == 0)
            return &names->at[i];
    return NULL;
}

static void copy_name(char *to, const char *name)
{
    if (!name)
        name = "";
    size_t n = strlen(name);
    if (n >= SHADOW_NAME_MAX) {
        fprintf(stderr, "disk shadow: name too long: %s\n", name);
        exit(2);
    }
    memcpy(to, name, n + 1);
}

static void remove_name(struct shadow_names *names, const char *name)
{
    struct shadow_name *at = *name ? find_name(names, name) : NULL;
    if (at)
        *at = names->at[--names->n];
}

static void set_name(struct shadow_names *names, const char *name, struct vg_shadow_file *f)
{
    struct shadow_name *at = find_name(names, name);
    if (!at) {
        names->at = vg_shadow_alloc(names->at, (names->n + 1) * sizeof *names->at);
        at = &names->at[names->n++];
        copy_name(at->name, name);
    }
    at->file = f;
}

void vg_shadow_names_apply(struct shadow_names *names, const struct shadow_name_change *c)
{
    remove_name(names, c->gone);
    if (*c->name)
        set_name(names, c->name, c->file);
}

static void update_is_named(struct vg_shadow *s)
{
    for (struct vg_shadow_file *f = s->files; f; f = f->next)
        f->is_named = false;
    for (size_t i = 0; i < s->live.n; i++)
        s->live.at[i].file->is_named = true;
}

static void change_name(struct vg_shadow *s, const char *gone, const char *name,
                        struct vg_shadow_file *f)
{
    s->changes = vg_shadow_alloc(s->changes, (s->n_changes + 1) * sizeof *s->changes);
    struct shadow_name_change *c = &s->changes[s->n_changes++];
    copy_name(c->gone, gone);
    copy_name(c->name, name);
    c->file = f;
    vg_shadow_names_apply(&s->live, c);
    update_is_named(s);
}

struct vg_shadow_file *vg_shadow_created(struct vg_shadow *s, const char *name, dev_t dev,
                                         ino_t ino)
{
    struct shadow_name *known = find_name(&s->live, name);
    if (known && known->file->ino == ino && known->file->dev == dev)
        return known->file;
    struct vg_shadow_file *f = vg_shadow_find(s, dev, ino);
    if (!f || !f->is_named)
        f = add_file(s, dev, ino);
    change_name(s, NULL, name, f);
    return f;
}

void vg_shadow_renamed(struct vg_shadow *s, const char *from, const char *to,
                       struct vg_shadow_file *f)
{
    struct shadow_name *known = from ? find_name(&s->live, from) : NULL;
    if (known)
        f = known->file;
    if (f)
        change_name(s, from, to, f);
}

void vg_shadow_unlinked(struct vg_shadow *s, const char *name)
{
    if (find_name(&s->live, name))
        change_name(s, name, NULL, NULL);
}

void vg_shadow_sync_names(struct vg_shadow *s)
{
    for (size_t i = 0; i < s->n_changes; i++)
        vg_shadow_names_apply(&s->durable, &s->changes[i]);
    s->n_changes = 0;
}

/* the directory */

static void load_bytes(struct shadow_bytes *b, int fd)
{
    char page[SHADOW_PAGE];
    ssize_t n;
    while ((n = pread(fd, page, sizeof page, (off_t)b->size)) > 0)
        vg_shadow_bytes_write(b, b->size, page, (size_t)n);
}

static void load_file(struct vg_shadow *s, int dir_fd, const char *name)
{
    struct stat st;
    int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        struct vg_shadow_file *f = add_file(s, st.st_dev, st.st_ino);
        load_bytes(&f->durable, fd);
        f->live_size = f->durable.size;
        set_name(&s->live, name, f);
        set_name(&s->durable, name, f);
    }
    if (fd >= 0)
        close(fd);
}

static void load_dir(struct vg_shadow *s)
{
    DIR *dir = opendir(s->dir);
    struct dirent *e;
    while (dir && (e = readdir(dir)))
        load_file(s, dirfd(dir), e->d_name);
    if (dir)
        closedir(dir);
}

static void learn_parent(struct vg_shadow *s)
{
    struct stat st;
    char *copy = strdup(s->dir);
    if (copy && stat(dirname(copy), &st) == 0) {
        s->parent_dev = st.st_dev;
        s->parent_ino = st.st_ino;
    }
    free(copy);
}

void vg_shadow_made_dir(struct vg_shadow *s)
{
    struct stat st;
    s->is_there = stat(s->dir, &st) == 0;
    if (s->is_there) {
        s->dev = st.st_dev;
        s->ino = st.st_ino;
    }
}

struct vg_shadow *vg_shadow_new(const char *dir)
{
    struct vg_shadow *s = vg_shadow_alloc(NULL, sizeof *s);
    *s = (struct vg_shadow){.dir = strdup(dir)};
    learn_parent(s);
    vg_shadow_made_dir(s);
    s->is_durable = s->is_there;
    if (s->is_there)
        load_dir(s);
    return s;
}

void vg_shadow_sync_parent(struct vg_shadow *s)
{
    s->is_durable = s->is_there;
}

bool vg_shadow_has_dir(const struct vg_shadow *s, dev_t dev, ino_t ino)
{
    return s->is_there && s->ino == ino && s->dev == dev;
}

bool vg_shadow_has_parent(const struct vg_shadow *s, dev_t dev, ino_t ino)
{
    return s->parent_ino == ino && s->parent_dev == dev;
}

void vg_shadow_free(struct vg_shadow *s)
{
    if (!s)
        return;
    while (s->files) {
        struct vg_shadow_file *f = s->files;
        s->files = f->next;
        vg_shadow_sync(f, UINT64_MAX);
        vg_shadow_bytes_done(&f->durable);
        free(f);
    }
    free(s->live.at);
    free(s->durable.at);
    free(s->changes);
    free(s->dir);
    free(s);
}
