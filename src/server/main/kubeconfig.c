/* kubeconfig.c - <data-dir>/admin.kubeconfig: how an administrator connects, with everything in it,
 * so that the one file can be carried elsewhere. */
#include <errno.h>
#include <openssl/evp.h>

#include "pki.h"

/* Append "  key: <base64>" of a file's content. */
static int append_data(struct vg_buf *out, const char *key, struct vg_slice content)
{
    int r = vg_buf_printf(out, "    %s: ", key);
    size_t size = 4 * ((content.n + 2) / 3);
    if (r == 0)
        r = vg_buf_reserve(out, size + 1);
    if (r < 0)
        return r;
    EVP_EncodeBlock((unsigned char *)out->p + out->n, (const unsigned char *)content.p,
                    (int)content.n);
    out->n += size;
    return vg_buf_append_byte(out, '\n');
}

static int append_file(struct vg_buf *out, const char *key, const struct vg_data_dir *dir,
                       const char *name, struct vg_status *reterr_status)
{
    VG_AUTO(buf) content = {0};
    int r = vg_data_dir_read(dir, name, &content, reterr_status);
    return r < 0 ? r : append_data(out, key, vg_buf_slice(&content));
}

static int compose(const struct vg_data_dir *dir, const char *server_url, const char *ca_file,
                   struct vg_buf *out, struct vg_status *reterr_status)
{
    int r = vg_buf_printf(out,
                          "apiVersion: v1\nkind: Config\nclusters:\n- name: vigil\n"
                          "  cluster:\n    server: %s\n",
                          server_url);
    if (r == 0)
        r = append_file(out, "certificate-authority-data", dir, ca_file, reterr_status);
    if (r == 0)
        r = vg_buf_printf(out, "contexts:\n- name: vigil\n  context:\n    cluster: vigil\n"
                               "    user: kubernetes-admin\ncurrent-context: vigil\nusers:\n"
                               "- name: kubernetes-admin\n  user:\n");
    if (r == 0)
        r = append_file(out, "client-certificate-data", dir, VG_PKI_ADMIN_CERT, reterr_status);
    if (r == 0)
        r = append_file(out, "client-key-data", dir, VG_PKI_ADMIN_KEY, reterr_status);
    return r;
}

int vg_kubeconfig_write(const struct vg_data_dir *dir, const char *server_url, const char *ca_file,
                        struct vg_status *reterr_status)
{
    VG_AUTO(buf) wanted = {0};
    int r = compose(dir, server_url, ca_file, &wanted, reterr_status);
    if (r < 0)
        return r;
    return vg_data_dir_replace(dir, "admin.kubeconfig", vg_buf_slice(&wanted), VG_LAZY,
                               reterr_status);
}
