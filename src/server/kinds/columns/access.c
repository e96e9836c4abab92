/* access.c - who a role is bound to; requests for certificates. */
#include "base/age.h"
#include "cell.h"

static void put_subjects(struct vg_cell *c, const char *kind)
{
    size_t n, shown = 0;
    const struct vg_json *items = vg_cell_items(c->v, "subjects", &n);
    bool has_namespace = strcmp(kind, "ServiceAccount") == 0;
    for (size_t i = 0; i < n; i++) {
        if (!vg_cell_is(&items[i], "kind", kind))
            continue;
        if (shown++)
            vg_cell_puts(c, ", ");
        if (has_namespace) {
            vg_cell_put(c, vg_cell_text(&items[i], "namespace"));
            vg_cell_puts(c, "/");
        }
        vg_cell_put(c, vg_cell_text(&items[i], "name"));
    }
}

void vg_cell_users(struct vg_cell *c)
{
    put_subjects(c, "User");
}

void vg_cell_groups(struct vg_cell *c)
{
    put_subjects(c, "Group");
}

void vg_cell_service_accounts(struct vg_cell *c)
{
    put_subjects(c, "ServiceAccount");
}

/* ---- requests for certificates ---- */

void vg_cell_request_duration(struct vg_cell *c)
{
    char text[VG_AGE_SIZE];
    if (!vg_cell_is_set(c->v, "spec.expirationSeconds")) {
        vg_cell_puts(c, "<none>");
        return;
    }
    vg_age_text(vg_cell_int(c->v, "spec.expirationSeconds"), text);
    vg_cell_puts(c, text);
}

void vg_cell_request_condition(struct vg_cell *c)
{
    vg_cell_puts(c, vg_cell_condition(c->v, "Denied")     ? "Denied"
                    : vg_cell_condition(c->v, "Approved") ? "Approved"
                                                          : "Pending");
    if (vg_cell_condition(c->v, "Failed"))
        vg_cell_puts(c, ",Failed");
    if (vg_cell_text(c->v, "status.certificate").n)
        vg_cell_puts(c, ",Issued");
}
