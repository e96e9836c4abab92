/* cli.c - what the commands share: requests, kinds, namespaces, and words for what went wrong. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>

#include "cli.h"

/* ---- requests ---- */

struct fetch {
    bool is_done;
    struct vigil_error err; /* code 0: fine */
    struct vg_buf *body;
};

static void fetched(void *arg, const struct vigil_error *err, struct vigil_text body)
{
    struct fetch *f = arg;
    f->is_done = true;
    if (err && err->code < 0)
        f->err = *err;
    else if (vg_buf_append(f->body, body.p, body.n) < 0)
        f->err = (struct vigil_error){.code = VIGIL_E_MEMORY, .message = "out of memory"};
}

int vg_cli_fetch(struct vg_cli *cli, const char *path, const char *accept, struct vg_buf *ret,
                 struct vigil_error *err)
{
    struct fetch f = {.body = ret};
    struct vigil_request *request;
    struct vigil_request_opts opts = VIGIL_INIT(struct vigil_request_opts);
    opts.method = "GET";
    opts.path = path;
    opts.accept = accept ? accept : "application/json, */*;q=0.5";
    opts.done = fetched;
    opts.arg = &f;
    int r = vigil_request(cli->client, &opts, &request, err);
    if (r < 0)
        return r;
    bool is_interrupted = false;
    while (!f.is_done) {
        bool now = vg_terminal_turn(&cli->terminal, cli->client, -1) & VG_SAW_INTERRUPT;
        if (now && !is_interrupted && !f.is_done)
            vigil_request_cancel(request);
        is_interrupted |= now;
    }
    *err = f.err;
    return f.err.code;
}

static int put_escaped(struct vg_buf *out, const char *text)
{
    int r = 0;
    for (; *text && r == 0; text++) {
        unsigned char c = (unsigned char)*text;
        if ((c < 0x80 && isalnum(c)) || strchr("-._~", c))
            r = vg_buf_append_byte(out, (char)c);
        else
            r = vg_buf_printf(out, "%%%02X", c);
    }
    return r;
}

static int put_part(struct vg_buf *out, const char *part)
{
    int r = vg_buf_append_byte(out, '/');
    return r < 0 ? r : put_escaped(out, part);
}

int vg_cli_path(struct vg_buf *out, const struct vigil_resource *r, const char *ns,
                const char *name)
{
    const char *const parts[] = {*r->group ? "apis" : "api",
                                 *r->group ? r->group : NULL,
                                 r->version,
                                 ns ? "namespaces" : NULL,
                                 ns,
                                 r->plural,
                                 name};
    for (size_t i = 0; i < VG_ARRAY_LEN(parts); i++)
        if (parts[i] && put_part(out, parts[i]) < 0)
            return VIGIL_E_MEMORY;
    return 0;
}

int vg_cli_path_query(struct vg_buf *out, const char *name, const char *value)
{
    if (!value)
        return 0;
    char sign = memchr(out->p, '?', out->n) ? '&' : '?';
    int r = vg_buf_printf(out, "%c%s=", sign, name);
    return r < 0 ? r : put_escaped(out, value);
}

/* ---- what the arguments mean ---- */

/* KIND/NAME is taken apart; the kind's text must outlive the run, so it is put into the arena. */
static const char *split_name(struct vg_cli *cli)
{
    struct vg_args *a = &cli->args;
    const char *slash = strchr(a->kind, '/');
    if (!slash || a->name)
        return a->kind;
    size_t n = (size_t)(slash - a->kind);
    char *kind = vg_arena_copy(&cli->kinds.arena, a->kind, n + 1);
    if (!kind)
        return NULL;
    kind[n] = 0;
    a->name = slash[1] ? slash + 1 : NULL;
    return a->kind = kind;
}

int vg_cli_kind(struct vg_cli *cli, const struct vg_kind **ret)
{
    struct vigil_error err;
    const char *name = split_name(cli);
    if (!name)
        return vg_cli_no_memory();
    if (vg_kinds_find(cli, name, ret, &err) < 0)
        return vg_cli_complain(cli, &err);
    return VG_EXIT_OK;
}

const char *vg_cli_namespace(const struct vg_cli *cli, const struct vg_kind *kind)
{
    if (!kind->r.namespaced || cli->args.all_namespaces)
        return NULL;
    return cli->args.ns ? cli->args.ns : vigil_config_namespace(cli->config);
}

bool vg_cli_informer_opts(const struct vg_cli *cli, const struct vg_kind *kind,
                          char name_selector[VG_CLI_SELECTOR_SIZE], struct vigil_informer_opts *ret)
{
    const struct vg_args *a = &cli->args;
    *ret = (struct vigil_informer_opts){.size = sizeof *ret,
                                        .resource = &kind->r,
                                        .ns = vg_cli_namespace(cli, kind),
                                        .label_selector = a->labels,
                                        .field_selector = a->fields};
    if (!a->name)
        return true;
    int n = snprintf(name_selector, VG_CLI_SELECTOR_SIZE, "metadata.name=%s%s%s", a->name,
                     a->fields ? "," : "", a->fields ? a->fields : "");
    ret->field_selector = name_selector;
    return n > 0 && n < (int)VG_CLI_SELECTOR_SIZE;
}

bool vg_cli_is_changed(const struct vigil_object *before, const struct vigil_object *o)
{
    struct vg_slice version = vg_cli_slice(vigil_object_resource_version(o));
    if (before == o)
        return false;
    return !version.n ||
           !vg_slice_eq(version, vg_cli_slice(vigil_object_resource_version(before))) ||
           !vg_slice_eq(vg_cli_slice(vigil_object_uid(o)), vg_cli_slice(vigil_object_uid(before)));
}

/* ---- words ---- */

static const char *advice(const struct vg_cli *cli, int code)
{
    switch (code) {
    case VIGIL_E_NETWORK:
    case VIGIL_E_TIMEOUT:
        return "--server URL, --kubeconfig FILE or --context NAME choose another server.";
    case VIGIL_E_UNAUTHORIZED:
        return cli->args.place.server
                   ? "Say who you are with --token, or --client-certificate and --client-key."
                   : "Check the user of this context in the kubeconfig, or choose another with "
                     "--context.";
    case VIGIL_E_FORBIDDEN:
        return "Ask for the right to do this, or choose another user with --context.";
    case VIGIL_E_NOT_FOUND:
        if (!cli->client)
            return "--kubeconfig FILE names a kubeconfig, --server URL does without.";
        return cli->args.name ? "Without a name all are listed; -n chooses another namespace."
                              : NULL;
    case VIGIL_E_BUSY:
        return "The server has too much to do: try again in a while.";
    default:
        return cli->client ? NULL
                           : "--kubeconfig FILE names a kubeconfig, --server URL does without.";
    }
}

/* Reasons are the server's words; only what looks like one is repeated. */
static bool is_word(const char *reason)
{
    size_t n = strspn(reason, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
    return n && !reason[n];
}

int vg_cli_complain(const struct vg_cli *cli, const struct vigil_error *err)
{
    VG_AUTO(buf) text = {0};
    unsigned width;
    const char *next = advice(cli, err->code);
    const char *message = err->message[0] ? err->message : vigil_code_text(err->code);
    if (err->code == VIGIL_E_CANCELED)
        return VG_EXIT_INTERRUPTED;
    if (vg_table_safe(&text, vg_slice_str(message), &width) < 0)
        return vg_cli_no_memory();
    if (err->http >= 400 && is_word(err->reason))
        fprintf(stderr, "Error from server (%s): ", err->reason);
    else
        fprintf(stderr, err->http >= 400 ? "Error from server: " : "vigil: ");
    fprintf(stderr, "%.*s\n", VG_SLICE_ARG(vg_buf_slice(&text)));
    if (next)
        fprintf(stderr, "%s\n", next);
    return VG_EXIT_FAILED;
}

int vg_cli_no_memory(void)
{
    fputs("vigil: out of memory\n", stderr);
    return VG_EXIT_FAILED;
}

int vg_cli_cannot_print(int err)
{
    if (err == -ENOMEM || err == VIGIL_E_MEMORY)
        return vg_cli_no_memory();
    fprintf(stderr, "vigil: an object cannot be written in this form: %s\n", vigil_code_text(err));
    return VG_EXIT_FAILED;
}

void vg_cli_say_lost(void *arg, const struct vigil_error *err)
{
    VG_AUTO(buf) text = {0};
    unsigned width;
    (void)arg;
    if (vg_table_safe(&text, vg_slice_str(err->message), &width) < 0)
        vg_buf_clear(&text);
    fprintf(stderr, "vigil: the connection is lost, trying again: %.*s\n",
            VG_SLICE_ARG(vg_buf_slice(&text)));
}

void vg_cli_say_back(void *arg)
{
    (void)arg;
    fputs("vigil: connected again\n", stderr);
}

int vg_cli_flush(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return VG_EXIT_OK;
    if (errno != EPIPE)
        fprintf(stderr, "vigil: cannot write: %s\n", strerror(errno));
    return VG_EXIT_FAILED;
}
