/* option_rows.c - see option_rows.h. */
#include "option_rows.h"

#include <getopt.h>
#include <string.h>

#include "options.h"

#define ROWS_MAX 32u
#define FIRST_VALUE 256 /* of long options, above every character */

/* ---- help ---- */

void vg_option_table_entry(const struct vg_option_table *t, FILE *to, const char *left,
                           const char *text)
{
    int used = fprintf(to, "  %s", left);
    for (const char *line = text; line; used = 0) {
        const char *end = strchr(line, '\n');
        int n = end ? (int)(end - line) : (int)strlen(line);
        fprintf(to, "%*s%.*s\n", VG_MAX(t->column - used, 1), "", n, line);
        line = end ? end + 1 : NULL;
    }
}

void vg_option_table_help(const struct vg_option_table *t, FILE *to)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct vg_option_row *row = &t->rows[i];
        char left[64];
        snprintf(left, sizeof left, "--%s%s%s", row->name, row->arg ? " " : "",
                 row->arg ? row->arg : "");
        vg_option_table_entry(t, to, left, row->help);
    }
}

/* ---- reading ---- */

static int read_number(const struct vg_option_row *row, const char *text, uint64_t min,
                       uint64_t *ret, struct vg_status *reterr_status)
{
    int r = vg_parse_rev(text, min, ret, reterr_status);
    if (r < 0 && reterr_status)
        vg_fail(reterr_status, r, "--%s: %s", row->name, reterr_status->message);
    return r;
}

static int read_output(const char *text, bool *ret_is_json, struct vg_status *reterr_status)
{
    bool is_json = strcmp(text, "json") == 0;
    if (!is_json && strcmp(text, "text") != 0)
        return vg_fail(reterr_status, VIGIL_E_INVALID, "--output is text or json, not '%s'", text);
    *ret_is_json = is_json;
    return 0;
}

static int read_option(const struct vg_option_row *row, const char *text, void *field,
                       struct vg_status *reterr_status)
{
    switch (row->type) {
    case VG_OPTION_FLAG:
        *(bool *)field = true;
        return 0;
    case VG_OPTION_TEXT:
        *(const char **)field = text;
        return *text ? 0 : vg_fail(reterr_status, VIGIL_E_INVALID, "--%s is empty", row->name);
    case VG_OPTION_OUTPUT:
        return read_output(text, field, reterr_status);
    case VG_OPTION_NUMBER:
        return read_number(row, text, 1, field, reterr_status);
    case VG_OPTION_NUMBER_OR_0:
        return read_number(row, text, 0, field, reterr_status);
    case VG_OPTION_DURATION:
        return vg_parse_duration(text, field, reterr_status);
    }
    return VIGIL_E_INTERNAL;
}

static void fill_long_options(const struct vg_option_table *t, struct option longs[ROWS_MAX + 1])
{
    for (size_t i = 0; i < t->n; i++)
        longs[i] = (struct option){
            .name = t->rows[i].name,
            .has_arg = t->rows[i].arg ? required_argument : no_argument,
            .val = FIRST_VALUE + (int)i,
        };
    longs[t->n] = (struct option){0};
}

int vg_option_table_read(const struct vg_option_table *t, int argc, char **argv, void *fields,
                         bool *ret_is_help, unsigned *ret_given, struct vg_status *reterr_status)
{
    struct option longs[ROWS_MAX + 1];
    int value;
    assert(t->n <= ROWS_MAX);
    fill_long_options(t, longs);
    *ret_given = 0;
    opterr = 0;
    while ((value = getopt_long(argc, argv, ":h", longs, NULL)) != -1) {
        if (value == ':')
            return vg_fail(reterr_status, VIGIL_E_INVALID, "%s needs a value", argv[optind - 1]);
        if (value == '?')
            return vg_fail(reterr_status, VIGIL_E_INVALID,
                           "there is no option '%s', or it takes no value", argv[optind - 1]);
        if (value == 'h') {
            *ret_is_help = true;
            continue;
        }
        const struct vg_option_row *row = &t->rows[value - FIRST_VALUE];
        *ret_given |= 1u << (value - FIRST_VALUE);
        int r = read_option(row, optarg, (char *)fields + row->offset, reterr_status);
        if (r < 0)
            return r;
    }
    return 0;
}

int vg_option_table_fits(const struct vg_option_table *t, unsigned given, unsigned command,
                         const char *command_name, struct vg_status *reterr_status)
{
    for (size_t i = 0; i < t->n; i++) {
        if ((given & (1u << i)) && !(t->rows[i].commands & command))
            return vg_fail(reterr_status, VIGIL_E_INVALID, "%s does not take --%s", command_name,
                           t->rows[i].name);
    }
    return 0;
}
