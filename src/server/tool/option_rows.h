/* option_rows.h - a program's options as a table: reading them, "this command does not take that
 * option", and their part of the help all come from it. Thread: main. */
#ifndef VG_TOOL_OPTION_ROWS_H
#define VG_TOOL_OPTION_ROWS_H

#include <stdio.h>

#include "base/err.h"

/* What a field is, and what may be said. */
enum vg_option_type {
    VG_OPTION_FLAG,        /* bool */
    VG_OPTION_TEXT,        /* const char *; not empty */
    VG_OPTION_OUTPUT,      /* bool; text or json: true */
    VG_OPTION_NUMBER,      /* uint64_t; at least 1 */
    VG_OPTION_NUMBER_OR_0, /* uint64_t */
    VG_OPTION_DURATION     /* uint64_t, milliseconds */
};

struct vg_option_row {
    const char *name;
    const char *arg; /* NULL: takes none */
    enum vg_option_type type;
    size_t offset;     /* of the field in what is filled */
    unsigned commands; /* that take it, a bit each */
    const char *help;  /* lines */
};
struct vg_option_table {
    const struct vg_option_row *rows;
    size_t n;   /* up to 32 */
    int column; /* of the help's texts */
};

/* All options into *fields; -h sets *ret_is_help. argv is reordered, and optind is where the rest
 * begins. *ret_given has a bit for each row that was named. VIGIL_E_INVALID with a sentence. */
VG_CHECK int vg_option_table_read(const struct vg_option_table *t, int argc, char **argv,
                                  void *fields, bool *ret_is_help, unsigned *ret_given,
                                  struct vg_status *reterr_status);
/* Does the command take all that was given? */
VG_CHECK int vg_option_table_fits(const struct vg_option_table *t, unsigned given, unsigned command,
                                  const char *command_name, struct vg_status *reterr_status);
/* A line of help: the left side, then the text, whose further lines are indented likewise. */
void vg_option_table_entry(const struct vg_option_table *t, FILE *to, const char *left,
                           const char *text);
void vg_option_table_help(const struct vg_option_table *t, FILE *to);

#endif
