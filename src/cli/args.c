/* args.c - the command line: one table of commands, one of flags. Flags may stand anywhere. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "args.h"

static const struct command {
    const char *name;
    enum vg_command command;
    int min, max; /* operands */
} commands[] = {
    {"get", VG_CMD_GET, 1, 2}, {"watch", VG_CMD_WATCH, 1, 2}, {"events", VG_CMD_EVENTS, 0, 0},
    {"top", VG_CMD_TOP, 0, 0}, {"kinds", VG_CMD_KINDS, 0, 0}, {"help", VG_CMD_HELP, 0, 1},
};

#define OBJECTS (VG_CMD_GET | VG_CMD_WATCH)
#define EVERY (~0u)

static const struct flag {
    const char *name;
    char letter;
    unsigned commands; /* that know it */
    size_t text, is;   /* where it goes in struct vg_args; 0: not there */
    bool needs_server;
} flags[] = {
    {"namespace", 'n', EVERY, offsetof(struct vg_args, ns), 0, false},
    {"all-namespaces", 'A', OBJECTS | VG_CMD_EVENTS, 0, offsetof(struct vg_args, all_namespaces),
     false},
    {"selector", 'l', OBJECTS, offsetof(struct vg_args, labels), 0, false},
    {"field-selector", 0, OBJECTS, offsetof(struct vg_args, fields), 0, false},
    {"output", 'o', OBJECTS, offsetof(struct vg_args, output_name), 0, false},
    {"watch", 'w', VG_CMD_EVENTS | VG_CMD_GET, 0, offsetof(struct vg_args, follow), false},
    {"kubeconfig", 0, EVERY, offsetof(struct vg_args, place.kubeconfig), 0, false},
    {"context", 0, EVERY, offsetof(struct vg_args, place.context), 0, false},
    {"server", 's', EVERY, offsetof(struct vg_args, place.server), 0, false},
    {"token", 0, EVERY, offsetof(struct vg_args, place.token), 0, true},
    {"certificate-authority", 0, EVERY, offsetof(struct vg_args, place.ca), 0, true},
    {"client-certificate", 0, EVERY, offsetof(struct vg_args, place.cert), 0, true},
    {"client-key", 0, EVERY, offsetof(struct vg_args, place.key), 0, true},
    {"insecure-skip-tls-verify", 0, EVERY, 0, offsetof(struct vg_args, place.is_insecure), true},
};

struct parser {
    int argc, at; /* at: the next argument */
    char **argv;
    struct vg_args *args;
    const char *operands[3];
    int n_operands;
    unsigned seen; /* flags, by their place in the table */
    bool wants_help, wants_version, only_operands;
    char *why;
};

static bool wrong(struct parser *p, const char *fmt, ...) VG_PRINTF(2, 3);
static bool wrong(struct parser *p, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(p->why, VG_ARGS_WHY_SIZE, fmt, ap);
    va_end(ap);
    return false;
}

/* ---- flags ---- */

/* value NULL: take the next argument where one is needed. */
static bool set_flag(struct parser *p, const struct flag *f, const char *value)
{
    char *args = (char *)p->args;
    p->seen |= 1u << (f - flags);
    if (f->is) {
        if (value)
            return wrong(p, "--%s takes no value", f->name);
        *(bool *)(void *)(args + f->is) = true;
        return true;
    }
    if (!value && p->at < p->argc)
        value = p->argv[p->at++];
    if (!value || !*value)
        return wrong(p, "--%s needs a value", f->name);
    memcpy(args + f->text, &value, sizeof value);
    return true;
}

static bool read_long(struct parser *p, const char *text)
{
    const char *equals = strchr(text, '=');
    size_t n = equals ? (size_t)(equals - text) : strlen(text);
    if (strcmp(text, "help") == 0)
        return p->wants_help = true;
    if (strcmp(text, "version") == 0)
        return p->wants_version = true;
    for (size_t i = 0; i < VG_ARRAY_LEN(flags); i++)
        if (strlen(flags[i].name) == n && memcmp(flags[i].name, text, n) == 0)
            return set_flag(p, &flags[i], equals ? equals + 1 : NULL);
    return wrong(p, "there is no flag --%.*s", (int)VG_MIN(n, (size_t)64), text);
}

/* -n NS, -nNS, -n=NS, and letters without a value together: -Aw. */
static bool read_short(struct parser *p, const char *text)
{
    const struct flag *f = flags, *end = flags + VG_ARRAY_LEN(flags);
    if (*text == 'h')
        return p->wants_help = true;
    while (f < end && f->letter != *text)
        f++;
    if (f == end)
        return wrong(p, "there is no flag -%c", *text);
    if (f->is)
        return set_flag(p, f, NULL) && (!text[1] || read_short(p, text + 1));
    return set_flag(p, f, text[1] ? text + 1 + (text[1] == '=') : NULL);
}

static bool read_argument(struct parser *p, const char *text)
{
    if (!p->only_operands && strcmp(text, "--") == 0)
        return p->only_operands = true;
    if (!p->only_operands && text[0] == '-' && text[1] == '-')
        return read_long(p, text + 2);
    if (!p->only_operands && text[0] == '-' && text[1])
        return read_short(p, text + 1);
    if (p->n_operands == (int)VG_ARRAY_LEN(p->operands))
        return wrong(p, "\"%.64s\" is one argument too many", text);
    p->operands[p->n_operands++] = text;
    return true;
}

/* ---- what they mean together ---- */

static bool check_flags(struct parser *p)
{
    for (size_t i = 0; i < VG_ARRAY_LEN(flags); i++) {
        if (!(p->seen & 1u << i))
            continue;
        if (!(flags[i].commands & p->args->command))
            return wrong(p, "%s has no flag --%s", p->args->command_name, flags[i].name);
        if (flags[i].needs_server && !p->args->place.server)
            return wrong(p, "--%s goes with --server; a kubeconfig has its own", flags[i].name);
    }
    if (p->args->place.server && (p->args->place.kubeconfig || p->args->place.context))
        return wrong(p, "--server stands in place of a kubeconfig: leave out one of them");
    if (p->args->ns && p->args->all_namespaces)
        return wrong(p, "-n names one namespace and -A means all: leave out one of them");
    if (!p->args->place.cert != !p->args->place.key)
        return wrong(p, "--client-certificate and --client-key go together");
    return true;
}

static bool check_output(struct parser *p)
{
    static const char *const names[] = {[VG_OUT_TABLE] = "table",
                                        [VG_OUT_WIDE] = "wide",
                                        [VG_OUT_NAME] = "name",
                                        [VG_OUT_JSON] = "json",
                                        [VG_OUT_YAML] = "yaml"};
    if (!p->args->output_name)
        return true;
    for (size_t i = 0; i < VG_ARRAY_LEN(names); i++)
        if (strcmp(p->args->output_name, names[i]) == 0) {
            p->args->output = (enum vg_output)i;
            return true;
        }
    return wrong(p, "-o is table, wide, name, json or yaml, not \"%.64s\"", p->args->output_name);
}

static bool find_command(struct parser *p)
{
    if (p->n_operands == 0)
        return wrong(p, "a command is missing: get, watch, events, top or kinds");
    for (size_t i = 0; i < VG_ARRAY_LEN(commands); i++) {
        const struct command *c = &commands[i];
        if (strcmp(c->name, p->operands[0]) != 0)
            continue;
        p->args->command = c->command;
        p->args->command_name = c->name;
        if (p->n_operands - 1 < c->min)
            return wrong(p, "%s what? Name a kind: vigil %s pods", c->name, c->name);
        if (p->n_operands - 1 > c->max)
            return wrong(p, "\"%.64s\" is one argument too many for %s", p->operands[c->max + 1],
                         c->name);
        p->args->kind = p->operands[1];
        p->args->name = p->operands[2];
        return true;
    }
    return wrong(p, "there is no command \"%.64s\"; vigil --help shows those there are",
                 p->operands[0]);
}

bool vg_args_parse(int argc, char **argv, struct vg_args *ret, char ret_why[VG_ARGS_WHY_SIZE])
{
    struct parser p = {.argc = argc, .at = 1, .argv = argv, .args = ret, .why = ret_why};
    *ret = (struct vg_args){0};
    while (p.at < argc)
        if (!read_argument(&p, argv[p.at++]))
            return false;
    if (p.wants_help || p.wants_version) {
        ret->command = p.wants_help ? VG_CMD_HELP : VG_CMD_VERSION;
        ret->kind = p.operands[0];
        return true;
    }
    if (!find_command(&p) || !check_flags(&p) || !check_output(&p))
        return false;
    if (ret->command == VG_CMD_GET && ret->follow)
        ret->command = VG_CMD_WATCH;
    if (ret->name && ret->all_namespaces)
        return wrong(&p, "a name is looked for in one namespace: use -n in place of -A");
    if (ret->name && !*ret->name)
        return wrong(&p, "a name cannot be empty");
    return true;
}
