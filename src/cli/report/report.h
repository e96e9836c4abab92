/* report.h - the results of `vigil bench`, or of bench/peers, as things to read: a plain table, one
 * page of HTML, charts, and the pages in docs/. All are made from the JSON text alone, so that the
 * same text gives the same bytes. The text is input like any other: sizes are capped, texts are
 * escaped, what is missing is left out. Thread: one owner. */
#ifndef VG_CLI_REPORT_REPORT_H
#define VG_CLI_REPORT_REPORT_H

#include "base/buf.h"
#include "base/err.h"
#include "json/json.h"

/* Servers measured in one file: ours, rivals, floors; more would need more colours. */
#define VG_REPORT_PEERS_MAX 12u
#define VG_REPORT_ROUNDS_MAX 64u
/* Each is one scenario with its parameters, of one peer in one round. */
#define VG_REPORT_RESULTS_MAX 16384u
/* What a report grows to at most; real ones stay below 1 MiB. */
#define VG_REPORT_BYTES_MAX ((size_t)64 << 20)

struct vg_report_peer {
    struct vg_slice name, version;
    bool is_floor; /* a bare loop: what cannot be undercut */
};

struct vg_report_result {
    unsigned peer, round; /* both from 0 */
    struct vg_slice scenario, error;
    const struct vg_json *params, *metrics; /* objects or NULL */
    bool was_limited;                       /* by the tool, not by the server */
    struct vg_slice text;                   /* scenario and parameters: "list objects=1000" */
    uint64_t hash;                          /* of text */
    size_t row;                             /* the first result with the same text */
};

struct vg_report {
    struct vg_arena arena;
    const struct vg_json *root;
    struct vg_report_peer peers[VG_REPORT_PEERS_MAX];
    unsigned peers_n, rounds_n;
    struct vg_report_result *results; /* in the arena */
    size_t results_n;
};

/* Read a file's text, which must outlive the report. 0; VIGIL_E_INVALID and others with a message:
 * it is not such a file; -ENOMEM. vg_report_done also after failure. */
VG_CHECK int vg_report_read(struct vg_report *r, struct vg_slice text,
                            struct vg_status *reterr_status);
void vg_report_done(struct vg_report *r);
static inline void vg_report_cleanup(struct vg_report *r)
{
    vg_report_done(r);
}

/* All append to out. 0, -ENOMEM, VIGIL_E_TOO_LARGE. */
VG_CHECK int vg_report_table(const struct vg_report *r, struct vg_buf *out);
VG_CHECK int vg_report_html(const struct vg_report *r, struct vg_buf *out);
/* A page whose charts are files in the folder `charts` beside it. notes: Markdown to put in, as it
 * is; may be empty. */
VG_CHECK int vg_report_markdown(const struct vg_report *r, const char *charts,
                                struct vg_slice notes, struct vg_buf *out);
/* A Markdown table of the few figures that matter most. */
VG_CHECK int vg_report_summary(const struct vg_report *r, struct vg_buf *out);
/* The i-th chart as a file of its own: 1; 0: nothing to show, out is untouched; or an error.
 * ret_name is its file's name without ending; NULL: there is no i-th chart. */
VG_CHECK int vg_report_chart(const struct vg_report *r, size_t i, struct vg_buf *out,
                             const char **ret_name);

/* `vigil bench report ...`: argv[0] is "report". An exit status. */
int vg_report_main(int argc, char **argv);

#endif
