/* config_read.c - the command line and the file. Defaults first, then the file that --config names,
 * then the command line, so that what stands nearest to the user wins. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "config_int.h"

#define FILE_MAX ((size_t)1 << 20)

/* ---- names ---- */

const struct vg_flag *vg_flag_find(struct vg_slice name)
{
    for (const struct vg_flag_group *g = vg_flag_groups; g->title; g++) {
        for (const struct vg_flag *f = g->flags; f->name; f++) {
            if (vg_slice_eq(name, vg_slice_str(f->name)))
                return f;
        }
    }
    return NULL;
}

/* 48: the longest name has 39. */
#define NAME_MAX_HERE 48

/* How many letters to add, drop or change to get from a to b. */
static size_t distance(struct vg_slice a, struct vg_slice b)
{
    size_t row[NAME_MAX_HERE + 1];
    if (a.n > NAME_MAX_HERE || b.n > NAME_MAX_HERE)
        return SIZE_MAX;
    for (size_t j = 0; j <= b.n; j++)
        row[j] = j;
    for (size_t i = 1; i <= a.n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.n; j++) {
            size_t change = diagonal + (a.p[i - 1] != b.p[j - 1]);
            size_t other = VG_MIN(row[j], row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = VG_MIN(change, other);
        }
    }
    return row[b.n];
}

static const char *nearest(struct vg_slice name)
{
    const char *best = NULL;
    /* Further away is a guess, not a slip: three letters, or one in three of a short name. */
    size_t best_distance = VG_MIN(name.n / 3, (size_t)3) + 1;
    for (const struct vg_flag_group *g = vg_flag_groups; g->title; g++) {
        for (const struct vg_flag *f = g->flags; f->name; f++) {
            size_t d = distance(name, vg_slice_str(f->name));
            if (d < best_distance) {
                best = f->name;
                best_distance = d;
            }
        }
    }
    return best;
}

int vg_flag_unknown(struct vg_slice name, struct vg_status *reterr_status)
{
    const char *other = nearest(name);
    if (other)
        return vg_fail(reterr_status, VIGIL_E_INVALID,
                       "there is no flag --%.*s; did you mean --%s?", VG_SLICE_ARG(name), other);
    return vg_fail(reterr_status, VIGIL_E_INVALID, "there is no flag --%.*s", VG_SLICE_ARG(name));
}

/* ---- the command line ---- */

/* One word of argv and perhaps the next; *i is moved on. */
static int read_word(int argc, char **argv, int *i, const struct vg_flag **ret_flag,
                     const char **ret_value, struct vg_status *reterr_status)
{
    const char *word = argv[*i];
    if (strcmp(word, "-h") == 0)
        word = "--help";
    if (word[0] != '-' || word[1] != '-' || !word[2])
        return vg_fail(reterr_status, VIGIL_E_INVALID,
                       "'%s' is no flag: vigild takes flags alone, as in --data-dir DIR", argv[*i]);
    const char *eq = strchr(word, '=');
    struct vg_slice name = vg_slice(word + 2, eq ? (size_t)(eq - word) - 2 : strlen(word) - 2);
    const struct vg_flag *f = vg_flag_find(name);
    if (!f)
        return vg_flag_unknown(name, reterr_status);
    *ret_flag = f;
    if (eq)
        *ret_value = eq + 1;
    else if (f->type == VG_FLAG_BOOL)
        *ret_value = "true";
    else if (*i + 1 < argc)
        *ret_value = argv[++*i];
    else
        return vg_fail(reterr_status, VIGIL_E_INVALID, "--%s needs a value: --%s %s", f->name,
                       f->name, f->arg);
    return 0;
}

static int read_line(int argc, char **argv, struct vg_config *c, struct vg_status *reterr_status)
{
    c->n_begun = 0;
    for (int i = 1; i < argc; i++) {
        const struct vg_flag *f = NULL;
        const char *value = NULL;
        int r = read_word(argc, argv, &i, &f, &value, reterr_status);
        if (r == 0)
            r = vg_flag_set(f, value, c, reterr_status);
        if (r < 0)
            return r;
    }
    return 0;
}

static int set_defaults(struct vg_config *c)
{
    c->n_begun = 0;
    for (const struct vg_flag_group *g = vg_flag_groups; g->title; g++) {
        for (const struct vg_flag *f = g->flags; f->name; f++) {
            int r = f->value ? vg_flag_set(f, f->value, c, NULL) : 0;
            if (VG_NEVER(r < 0))
                return r;
        }
    }
    return 0;
}

/* ---- the file ---- */

static struct vg_slice trim(struct vg_slice s)
{
    while (s.n && strchr(" \t\r", s.p[0]))
        s = vg_slice(s.p + 1, s.n - 1);
    while (s.n && strchr(" \t\r", s.p[s.n - 1]))
        s.n--;
    return s;
}

/* A value: in quotes, or up to a comment. */
static struct vg_slice trim_value(struct vg_slice s)
{
    s = trim(s);
    if (s.n >= 2 && (s.p[0] == '"' || s.p[0] == '\'')) {
        const char *end = memchr(s.p + 1, s.p[0], s.n - 1);
        if (end)
            return vg_slice(s.p + 1, (size_t)(end - s.p) - 1);
    }
    for (size_t i = 1; i < s.n; i++) {
        if (s.p[i] == '#' && (s.p[i - 1] == ' ' || s.p[i - 1] == '\t'))
            return trim(vg_slice(s.p, i));
    }
    return s;
}

/* "name: value" or "name = value"; the two dashes before a name may be written. */
static int read_setting(struct vg_slice line, struct vg_config *c, struct vg_status *reterr_status)
{
    size_t n = 0;
    while (n < line.n && line.p[n] != ':' && line.p[n] != '=')
        n++;
    struct vg_slice name = trim(vg_slice(line.p, n));
    if (vg_slice_has_prefix(name, VG_SLICE_LIT("--")))
        name = vg_slice(name.p + 2, name.n - 2);
    const struct vg_flag *f = vg_flag_find(name);
    if (!f)
        return vg_flag_unknown(name, reterr_status);
    if (f->offset == offsetof(struct vg_config, config_file))
        return vg_fail(reterr_status, VIGIL_E_INVALID, "a file cannot name another with config");
    if (n == line.n && f->type != VG_FLAG_BOOL)
        return vg_fail(reterr_status, VIGIL_E_INVALID, "%s needs a value: %s: %s", f->name, f->name,
                       f->arg);
    struct vg_slice value =
        n == line.n ? VG_SLICE_LIT("true") : trim_value(vg_slice(line.p + n + 1, line.n - n - 1));
    char *text = vg_arena_alloc(&c->arena, value.n + 1, 1);
    if (!text)
        return -ENOMEM;
    memcpy(text, value.p, value.n);
    text[value.n] = 0;
    return vg_flag_set(f, text, c, reterr_status);
}

static int read_settings(struct vg_slice text, const char *path, struct vg_config *c,
                         struct vg_status *reterr_status)
{
    c->n_begun = 0;
    for (size_t number = 1; text.n; number++) {
        const char *end = memchr(text.p, '\n', text.n);
        size_t n = end ? (size_t)(end - text.p) : text.n;
        struct vg_slice line = trim(vg_slice(text.p, n));
        text = end ? vg_slice(end + 1, text.n - n - 1) : (struct vg_slice){0};
        if (line.n == 0 || line.p[0] == '#' || vg_slice_eq(line, VG_SLICE_LIT("---")))
            continue;
        struct vg_status status = {0};
        int r = read_setting(line, c, &status);
        if (r < 0)
            return vg_fail(reterr_status, r, "%s:%zu: %s", path, number,
                           status.message[0] ? status.message : vg_err_text(r));
    }
    return 0;
}

static int read_file(const char *path, struct vg_config *c, struct vg_status *reterr_status)
{
    VG_AUTO(buf) text = {.max = FILE_MAX};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int r = fd < 0 ? -errno : 0;
    for (ssize_t n = 1; r == 0 && n > 0;) {
        r = vg_buf_reserve(&text, 4096);
        n = r < 0 ? 0 : read(fd, text.p + text.n, text.cap - text.n);
        if (n < 0)
            r = -errno;
        else
            text.n += (size_t)n;
    }
    if (fd >= 0)
        close(fd);
    if (r < 0)
        return vg_fail(reterr_status, r, "cannot read the configuration file %s: %s", path,
                       vg_err_text(r));
    return read_settings(vg_buf_slice(&text), path, c, reterr_status);
}

/* ---- all of it ---- */

static int check_etcd(struct vg_config *c, struct vg_status *reterr_status)
{
    if (VG_NEVER(!c->storage)) /* it has a default */
        return VIGIL_E_INTERNAL;
    if (c->etcd_servers && strcmp(c->storage, "mem") == 0)
        return vg_fail(reterr_status, VIGIL_E_INVALID,
                       "--storage mem and --etcd-servers do not go together: leave one out");
    if (c->etcd_servers)
        c->storage = "etcd";
    else if (strcmp(c->storage, "etcd") == 0)
        return vg_fail(reterr_status, VIGIL_E_INVALID,
                       "--storage etcd needs --etcd-servers: say where it is");
    if (!c->etcd_cert_file != !c->etcd_key_file)
        return vg_fail(reterr_status, VIGIL_E_INVALID,
                       "--etcd-certfile and --etcd-keyfile go together: give both or neither");
    if (!c->etcd_username != !c->etcd_password_file)
        return vg_fail(
            reterr_status, VIGIL_E_INVALID,
            "--etcd-username and --etcd-password-file go together: give both or neither");
    if (!c->storage_media_type ||
        (strcmp(c->storage_media_type, "application/json") != 0 &&
         strcmp(c->storage_media_type, "application/vnd.kubernetes.protobuf") != 0))
        return vg_fail(reterr_status, VIGIL_E_INVALID,
                       "--storage-media-type is application/json or "
                       "application/vnd.kubernetes.protobuf");
    size_t n = c->etcd_prefix ? strlen(c->etcd_prefix) : 0;
    if (n < 2 || n > 200 || c->etcd_prefix[0] != '/' || c->etcd_prefix[n - 1] == '/')
        return vg_fail(reterr_status, VIGIL_E_INVALID,
                       "--etcd-prefix begins with a slash and does not end with one: /registry");
    return 0;
}

static int check(struct vg_config *c, struct vg_status *reterr_status)
{
    int r = check_etcd(c, reterr_status);
    if (r < 0)
        return r;
    if (!c->tls_cert_file != !c->tls_key_file)
        return vg_fail(reterr_status, VIGIL_E_INVALID,
                       "--tls-cert-file and --tls-private-key-file go together: give both or "
                       "neither");
    if (c->account_token_max_s &&
        (c->account_token_max_s < 3600 || c->account_token_max_s > UINT64_C(1) << 32))
        return vg_fail(reterr_status, VIGIL_E_INVALID,
                       "--service-account-max-token-expiration is 0, or from 1h to 2^32 seconds");
    if (!c->data_dir)
        return vg_fail(reterr_status, VIGIL_E_INVALID, "--data-dir is empty");
    if (!c->bind_address)
        return vg_fail(reterr_status, VIGIL_E_INVALID, "--bind-address is empty");
    if (c->insecure_port && c->insecure_port == c->secure_port)
        return vg_fail(reterr_status, VIGIL_E_INVALID,
                       "--insecure-port and --secure-port are the same");
    return 0;
}

int vg_config_read(int argc, char **argv, struct vg_config *ret_config,
                   struct vg_status *reterr_status)
{
    struct vg_config c = {0};
    /* Twice: the first time finds --config, the second lets the line win over the file. */
    int r = set_defaults(&c);
    if (r == 0)
        r = read_line(argc, argv, &c, reterr_status);
    if (r == 0 && c.config_file && !c.is_help && !c.is_version) {
        r = set_defaults(&c);
        if (r == 0)
            r = read_file(c.config_file, &c, reterr_status);
        if (r == 0)
            r = read_line(argc, argv, &c, reterr_status);
    }
    if (r == 0 && !c.is_help && !c.is_version)
        r = check(&c, reterr_status);
    if (r < 0) {
        vg_config_done(&c);
        return r;
    }
    *ret_config = c;
    return 0;
}

void vg_config_done(struct vg_config *c)
{
    vg_arena_done(&c->arena);
}
