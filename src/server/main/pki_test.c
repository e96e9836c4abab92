/* Tests of pki.c, kubeconfig.c and data_dir.c on a real directory. */
#include "test_support.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "pki.h"

#define NOW ((int64_t)1767225600) /* 2026-01-01 */
#define DAY ((int64_t)86400)

static struct vg_data_dir open_dir(const char *parent)
{
    struct vg_data_dir d;
    struct vg_status status = {0};
    char path[512];
    snprintf(path, sizeof path, "%s/a/data", parent);
    if (vg_data_dir_open(path, &d, &status) < 0)
        fail_msg("%s", status.message);
    return d;
}

static bool ensure(const struct vg_data_dir *d, const char *bind, int64_t now_s)
{
    struct vg_status status = {0};
    bool changed = false;
    struct vg_pki_opts o = {.dir = d, .bind_address = bind, .now_s = now_s};
    if (vg_pki_ensure(&o, &changed, &status) < 0)
        fail_msg("%s", status.message);
    return changed;
}

static X509 *load(const struct vg_data_dir *d, const char *name)
{
    VG_AUTO(buf) text = {0};
    assert_int_equal(vg_data_dir_read(d, name, &text, NULL), 0);
    BIO *bio = BIO_new_mem_buf(text.p, (int)text.n);
    X509 *cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    BIO_free(bio);
    assert_non_null(cert);
    return cert;
}

static mode_t mode_of(const struct vg_data_dir *d, const char *name)
{
    struct stat st;
    assert_int_equal(fstatat(d->fd, name, &st, 0), 0);
    return st.st_mode & 0777;
}

static void only_the_owner_can_read(void **state)
{
    struct vg_data_dir d = open_dir(*state);
    static const char *const files[] = {"pki/ca.crt",        "pki/ca.key",    "pki/apiserver.crt",
                                        "pki/apiserver.key", "pki/admin.crt", "pki/admin.key",
                                        "pki/client-ca.crt", "vigild.lock"};
    assert_true(ensure(&d, "127.0.0.1", NOW));
    assert_int_equal(mode_of(&d, "."), 0700);
    assert_int_equal(mode_of(&d, "pki"), 0700);
    for (size_t i = 0; i < VG_ARRAY_LEN(files); i++)
        assert_int_equal(mode_of(&d, files[i]), 0600);
    vg_data_dir_close(&d);
}

static void certificates_say_who_and_for_what(void **state)
{
    struct vg_data_dir d = open_dir(*state);
    ensure(&d, "192.0.2.7", NOW);
    X509 *ca = load(&d, VG_PKI_CA), *server = load(&d, VG_PKI_SERVER_CERT),
         *admin = load(&d, VG_PKI_ADMIN_CERT);
    char text[256];
    assert_int_equal(X509_check_ip_asc(server, "192.0.2.7", 0), 1);
    assert_int_equal(X509_check_ip_asc(server, "127.0.0.1", 0), 1);
    assert_int_equal(X509_check_ip_asc(server, "::1", 0), 1);
    assert_int_equal(X509_check_host(server, "localhost", 0, 0, NULL), 1);
    assert_int_equal(X509_check_host(server, "kubernetes.default.svc", 0, 0, NULL), 1);
    assert_int_equal(X509_check_host(server, "example.com", 0, 0, NULL), 0);
    assert_int_equal(X509_get_extended_key_usage(server), XKU_SSL_SERVER);
    assert_int_equal(X509_get_extended_key_usage(admin), XKU_SSL_CLIENT);
    assert_true(X509_check_ca(ca) > 0);
    assert_int_equal(X509_check_ca(server), 0);
    assert_int_equal(X509_check_issued(ca, server), X509_V_OK);
    assert_int_equal(X509_check_issued(ca, admin), X509_V_OK);
    X509_NAME_oneline(X509_get_subject_name(admin), text, sizeof text);
    assert_string_equal(text, "/O=system:masters/CN=kubernetes-admin");
    X509_free(ca);
    X509_free(server);
    X509_free(admin);
    vg_data_dir_close(&d);
}

static bool is_same(const struct vg_data_dir *d, const char *name, const X509 *before)
{
    X509 *now = load(d, name);
    bool same = X509_cmp(now, before) == 0;
    X509_free(now);
    return same;
}

static void what_is_good_stays_and_the_rest_is_renewed(void **state)
{
    struct vg_data_dir d = open_dir(*state);
    ensure(&d, "127.0.0.1", NOW);
    X509 *ca = load(&d, VG_PKI_CA), *server = load(&d, VG_PKI_SERVER_CERT),
         *admin = load(&d, VG_PKI_ADMIN_CERT);
    assert_false(ensure(&d, "127.0.0.1", NOW + 300 * DAY));
    assert_true(is_same(&d, VG_PKI_SERVER_CERT, server));

    assert_true(ensure(&d, "127.0.0.1", NOW + 340 * DAY)); /* ends within 30 days */
    assert_false(is_same(&d, VG_PKI_SERVER_CERT, server));
    assert_false(is_same(&d, VG_PKI_ADMIN_CERT, admin));
    assert_true(is_same(&d, VG_PKI_CA, ca));

    assert_true(ensure(&d, "192.0.2.1", NOW + 340 * DAY)); /* another address */
    assert_false(ensure(&d, "192.0.2.1", NOW + 340 * DAY));

    /* The authority is renewed with its key: what it signed stays good. */
    assert_true(ensure(&d, "192.0.2.1", NOW + 3400 * DAY));
    X509 *fresh = load(&d, VG_PKI_CA);
    assert_int_not_equal(X509_cmp(fresh, ca), 0);
    assert_int_equal(X509_verify(server, X509_get0_pubkey(fresh)), 1);
    X509_free(fresh);
    X509_free(ca);
    X509_free(server);
    X509_free(admin);
    vg_data_dir_close(&d);
}

static void damage_is_mended(void **state)
{
    struct vg_data_dir d = open_dir(*state);
    static const char *const files[] = {VG_PKI_SERVER_CERT, VG_PKI_SERVER_KEY, VG_PKI_ADMIN_KEY,
                                        VG_PKI_CA};
    ensure(&d, "127.0.0.1", NOW);
    for (size_t i = 0; i < VG_ARRAY_LEN(files); i++) {
        assert_int_equal(vg_data_dir_write(&d, files[i], VG_SLICE_LIT("rubbish"), VG_LAZY, NULL),
                         0);
        assert_true(ensure(&d, "127.0.0.1", NOW));
        assert_false(ensure(&d, "127.0.0.1", NOW));
    }
    vg_data_dir_close(&d);
}

static void hold(const struct vg_data_dir *d, const char *name, struct vg_buf *ret)
{
    vg_buf_done(ret);
    assert_int_equal(vg_data_dir_read(d, name, ret, NULL), 0);
}

static void expect_held(const struct vg_data_dir *d, const char *name, const struct vg_buf *want)
{
    VG_AUTO(buf) now = {0};
    hold(d, name, &now);
    assert_true(vg_slice_eq(vg_buf_slice(&now), vg_buf_slice(want)));
}

/* A new key would void every certificate that the authority has signed. */
static void a_damaged_key_of_the_authority_is_refused(void **state)
{
    struct vg_data_dir d = open_dir(*state);
    VG_AUTO(buf) cert = {0};
    VG_AUTO(buf) rubbish = {0};
    struct vg_status status = {0};
    struct vg_pki_opts o = {.dir = &d, .bind_address = "127.0.0.1", .now_s = NOW};
    bool changed;
    ensure(&d, "127.0.0.1", NOW);
    hold(&d, VG_PKI_CA, &cert);
    assert_int_equal(vg_buf_append_slice(&rubbish, VG_SLICE_LIT("rubbish")), 0);
    assert_int_equal(vg_data_dir_write(&d, VG_PKI_CA_KEY, vg_buf_slice(&rubbish), VG_LAZY, NULL),
                     0);
    assert_int_equal(vg_pki_ensure(&o, &changed, &status), VIGIL_E_INVALID);
    assert_non_null(strstr(status.message, "put it back from a copy"));
    expect_held(&d, VG_PKI_CA_KEY, &rubbish);
    expect_held(&d, VG_PKI_CA, &cert);
    vg_data_dir_close(&d);
}

/* One open that fails, of each file: a loop of links stands for EMFILE and its kin. */
static void what_cannot_be_read_is_left_alone(void **state)
{
    struct vg_data_dir d = open_dir(*state);
    static const char *const files[] = {VG_PKI_CA,         VG_PKI_CA_KEY,     VG_PKI_SERVER_CERT,
                                        VG_PKI_SERVER_KEY, VG_PKI_ADMIN_CERT, VG_PKI_ADMIN_KEY,
                                        VG_PKI_CLIENT_CA};
    struct vg_buf before[VG_ARRAY_LEN(files)] = {0};
    struct vg_pki_opts o = {.dir = &d, .bind_address = "127.0.0.1", .now_s = NOW};
    ensure(&d, "127.0.0.1", NOW);
    for (size_t i = 0; i < VG_ARRAY_LEN(files); i++)
        hold(&d, files[i], &before[i]);
    for (size_t i = 0; i < VG_ARRAY_LEN(files); i++) {
        struct vg_status status = {0};
        bool changed;
        assert_int_equal(renameat(d.fd, files[i], d.fd, "pki/away"), 0);
        assert_int_equal(symlinkat(strrchr(files[i], '/') + 1, d.fd, files[i]), 0);
        assert_int_equal(vg_pki_ensure(&o, &changed, &status), -ELOOP);
        assert_int_equal(renameat(d.fd, "pki/away", d.fd, files[i]), 0);
        for (size_t k = 0; k < VG_ARRAY_LEN(files); k++)
            expect_held(&d, files[k], &before[k]);
        assert_false(ensure(&d, "127.0.0.1", NOW));
    }
    for (size_t i = 0; i < VG_ARRAY_LEN(files); i++)
        vg_buf_done(&before[i]);
    vg_data_dir_close(&d);
}

static void what_is_replaced_stays_beside_it(void **state)
{
    struct vg_data_dir d = open_dir(*state);
    VG_AUTO(buf) cert = {0};
    ensure(&d, "127.0.0.1", NOW);
    hold(&d, VG_PKI_SERVER_CERT, &cert);
    assert_true(ensure(&d, "192.0.2.1", NOW)); /* another address */
    expect_held(&d, VG_PKI_SERVER_CERT ".old", &cert);
    assert_int_equal(mode_of(&d, VG_PKI_SERVER_KEY ".old"), 0600);
    vg_data_dir_close(&d);
}

/* Else nobody would notice that its clients are strangers. */
static void a_bundle_without_certificates_is_refused(void **state)
{
    struct vg_data_dir d = open_dir(*state);
    struct vg_status status = {0};
    bool changed;
    ensure(&d, "127.0.0.1", NOW);
    static const char *const names[] = {VG_PKI_CA, "pki/ca.key", "pki/damaged.crt"};
    static const int expected[] = {0, VIGIL_E_INVALID, VIGIL_E_INVALID};
    VG_AUTO(buf) text = {0};
    assert_int_equal(vg_data_dir_read(&d, VG_PKI_CA, &text, NULL), 0);
    assert_int_equal(vg_data_dir_read(&d, VG_PKI_CA, &text, NULL), 0);
    text.p[text.n - 100] = '!'; /* the second one */
    assert_int_equal(vg_data_dir_write(&d, names[2], vg_buf_slice(&text), VG_LAZY, NULL), 0);
    for (size_t i = 0; i < VG_ARRAY_LEN(names); i++) {
        char *path = vg_data_dir_path(&d, names[i]);
        struct vg_pki_opts o = {
            .dir = &d, .bind_address = "127.0.0.1", .client_ca_file = path, .now_s = NOW};
        assert_int_equal(vg_pki_ensure(&o, &changed, &status), expected[i]);
        vg_free(path);
    }
    vg_data_dir_close(&d);
}

static void the_kubeconfig_has_all_it_needs(void **state)
{
    struct vg_data_dir d = open_dir(*state);
    VG_AUTO(buf) text = {0};
    ensure(&d, "127.0.0.1", NOW);
    assert_int_equal(vg_kubeconfig_write(&d, "https://127.0.0.1:7", VG_PKI_CA, NULL), 0);
    assert_int_equal(mode_of(&d, "admin.kubeconfig"), 0600);
    assert_int_equal(vg_data_dir_read(&d, "admin.kubeconfig", &text, NULL), 0);
    assert_int_equal(vg_buf_append_byte(&text, 0), 0);
    assert_non_null(strstr(text.p, "    server: https://127.0.0.1:7\n"));
    assert_non_null(strstr(text.p, "    certificate-authority-data: LS0tLS1"));
    assert_non_null(strstr(text.p, "    client-certificate-data: LS0tLS1"));
    assert_non_null(strstr(text.p, "    client-key-data: LS0tLS1"));
    vg_data_dir_close(&d);
}

static void a_directory_belongs_to_one_process(void **state)
{
    struct vg_data_dir d = open_dir(*state), other;
    struct vg_status status = {0};
    char text[64];
    assert_int_equal(vg_data_dir_open(d.path, &other, &status), VIGIL_E_STORE_LOCKED);
    snprintf(text, sizeof text, "another vigild, process %ld", (long)getpid());
    assert_non_null(strstr(status.message, text));
    vg_data_dir_close(&d);
    d = open_dir(*state);
    vg_data_dir_close(&d);
}

static void a_directory_open_to_others_is_closed_or_refused(void **state)
{
    struct vg_data_dir d;
    struct vg_status status = {0};
    char path[512], file[600];
    snprintf(path, sizeof path, "%s/open", (const char *)*state);
    assert_int_equal(mkdir(path, 0755), 0);
    assert_int_equal(chmod(path, 0755), 0);
    assert_int_equal(vg_data_dir_open(path, &d, &status), 0);
    assert_int_equal(mode_of(&d, "."), 0700);
    vg_data_dir_close(&d);
    assert_int_equal(chmod(path, 0755), 0);
    snprintf(file, sizeof file, "%s/other", path);
    int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(vg_data_dir_open(path, &d, &status), -EPERM);
    assert_non_null(strstr(status.message, "chmod 700"));
}

int main(void)
{
#define TEST(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, vg_test_tmpdir_setup, vg_test_tmpdir_teardown)
    const struct CMUnitTest tests[] = {
        TEST(only_the_owner_can_read),
        TEST(certificates_say_who_and_for_what),
        TEST(what_is_good_stays_and_the_rest_is_renewed),
        TEST(damage_is_mended),
        TEST(what_is_replaced_stays_beside_it),
        TEST(what_cannot_be_read_is_left_alone),
        TEST(a_damaged_key_of_the_authority_is_refused),
        TEST(a_bundle_without_certificates_is_refused),
        TEST(the_kubeconfig_has_all_it_needs),
        TEST(a_directory_belongs_to_one_process),
        TEST(a_directory_open_to_others_is_closed_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
