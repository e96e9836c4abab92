/* pki.c - see pki.h. Everything is judged as found and made anew if it does not do: there is no
 * record of what was made when. Only a file that does not exist makes a new key of the authority.
 * What cannot be read is left alone, and what is replaced stays beside it as NAME.old. */
#include "pki.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"

#define DAY_S ((int64_t)24 * 3600)
#define RENEW_DAYS 30
#define CA_DAYS 3650
#define CA_RENEW_DAYS 365
#define LEAF_DAYS 365
/* Clocks of clients may be behind. */
#define BACKDATE_S 3600
/* 64 names: interfaces of a large machine, with room. */
#define NAMES_MAX 64u
#define NAME_MAX_BYTES 256u

struct pair {
    X509 *cert;
    EVP_PKEY *key;
};

static void pair_done(struct pair *p)
{
    X509_free(p->cert);
    EVP_PKEY_free(p->key);
    *p = (struct pair){0};
}

static int fail_ssl(struct vg_status *reterr_status, const char *what)
{
    char text[256];
    ERR_error_string_n(ERR_get_error(), text, sizeof text);
    ERR_clear_error();
    return vg_fail(reterr_status, VIGIL_E_INTERNAL, "cannot %s: %s", what, text);
}

/* ---- files ---- */

/* 1: it is in `text`. 0: there is no such file. Negative: it cannot be read now, which says nothing
 * about what it holds: nothing may be made in its place. */
static int read_if_there(const struct vg_data_dir *d, const char *name, struct vg_buf *text,
                         struct vg_status *reterr_status)
{
    int r = vg_data_dir_read(d, name, text, reterr_status);
    return r == -ENOENT ? 0 : r < 0 ? r : 1;
}

/* *ret_cert stays NULL when there is none, or none that is whole. */
static int load_cert(const struct vg_data_dir *d, const char *name, X509 **ret_cert,
                     struct vg_status *reterr_status)
{
    VG_AUTO(buf) text = {0};
    int r = read_if_there(d, name, &text, reterr_status);
    BIO *bio = r > 0 ? BIO_new_mem_buf(text.p, (int)text.n) : NULL;
    if (bio)
        *ret_cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    BIO_free(bio);
    ERR_clear_error();
    return r < 0 ? r : 0;
}

/* The same; 1: there is a file. */
static int load_key(const struct vg_data_dir *d, const char *name, EVP_PKEY **ret_key,
                    struct vg_status *reterr_status)
{
    VG_AUTO(buf) text = {0};
    int r = read_if_there(d, name, &text, reterr_status);
    BIO *bio = r > 0 ? BIO_new_mem_buf(text.p, (int)text.n) : NULL;
    if (bio)
        *ret_key = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
    BIO_free(bio);
    ERR_clear_error();
    if (text.n)
        explicit_bzero(text.p, text.n);
    return r;
}

/* 1: there is a file for the key. */
static int load_pair(const struct vg_data_dir *d, const char *cert_name, const char *key_name,
                     struct pair *p, struct vg_status *reterr_status)
{
    int r = load_cert(d, cert_name, &p->cert, reterr_status);
    return r < 0 ? r : load_key(d, key_name, &p->key, reterr_status);
}

static int save_bio(const struct vg_data_dir *d, const char *name, BIO *bio,
                    enum vg_durability durability, struct vg_status *reterr_status)
{
    char *p;
    long n = BIO_get_mem_data(bio, &p);
    return n > 0 ? vg_data_dir_replace(d, name, vg_slice(p, (size_t)n), durability, reterr_status)
                 : fail_ssl(reterr_status, "encode a certificate");
}

/* The key first: a certificate without its key would be found wanting and made anew, a key without
 * its certificate too. */
static int save_pair(const struct vg_data_dir *d, const char *cert_name, const char *key_name,
                     const struct pair *p, enum vg_durability durability,
                     struct vg_status *reterr_status)
{
    BIO *bio = BIO_new(BIO_s_secmem());
    int r = bio && PEM_write_bio_PrivateKey(bio, p->key, NULL, NULL, 0, NULL, NULL)
                ? save_bio(d, key_name, bio, durability, reterr_status)
                : fail_ssl(reterr_status, "encode a key");
    BIO_free(bio);
    if (r < 0)
        return r;
    bio = BIO_new(BIO_s_mem());
    r = bio && PEM_write_bio_X509(bio, p->cert)
            ? save_bio(d, cert_name, bio, durability, reterr_status)
            : fail_ssl(reterr_status, "encode a certificate");
    BIO_free(bio);
    return r;
}

/* ---- making ---- */

struct recipe {
    const char *cn, *o;
    int days;
    const char *basic, *usage, *extended, *names; /* extensions, as OpenSSL writes them */
};

static int add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    if (!value)
        return 1;
    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
    X509_EXTENSION *e = X509V3_EXT_nconf_nid(NULL, &ctx, nid, value);
    int ok = e && X509_add_ext(cert, e, -1);
    X509_EXTENSION_free(e);
    return ok;
}

static int set_serial(X509 *cert)
{
    BIGNUM *bn = BN_new();
    int ok = bn && BN_rand(bn, 127, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) &&
             BN_to_ASN1_INTEGER(bn, X509_get_serialNumber(cert));
    BN_free(bn);
    return ok;
}

static int set_subject(X509 *cert, const struct recipe *recipe)
{
    X509_NAME *name = X509_get_subject_name(cert);
    if (recipe->o && !X509_NAME_add_entry_by_txt(name, "O", MBSTRING_UTF8,
                                                 (const unsigned char *)recipe->o, -1, -1, 0))
        return 0;
    return X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)recipe->cn,
                                      -1, -1, 0);
}

static int fill_cert(X509 *cert, EVP_PKEY *key, const struct pair *ca, const struct recipe *recipe,
                     int64_t now_s)
{
    X509 *issuer = ca ? ca->cert : cert;
    time_t now = (time_t)now_s;
    return X509_set_version(cert, X509_VERSION_3) && set_serial(cert) &&
           X509_time_adj_ex(X509_getm_notBefore(cert), 0, -BACKDATE_S, &now) &&
           X509_time_adj_ex(X509_getm_notAfter(cert), recipe->days, 0, &now) &&
           set_subject(cert, recipe) && X509_set_pubkey(cert, key) &&
           X509_set_issuer_name(cert, X509_get_subject_name(issuer)) &&
           add_extension(cert, issuer, NID_basic_constraints, recipe->basic) &&
           add_extension(cert, issuer, NID_key_usage, recipe->usage) &&
           add_extension(cert, issuer, NID_ext_key_usage, recipe->extended) &&
           add_extension(cert, issuer, NID_subject_key_identifier, "hash") &&
           add_extension(cert, issuer, NID_authority_key_identifier, ca ? "keyid" : NULL) &&
           add_extension(cert, issuer, NID_subject_alt_name, recipe->names) &&
           X509_sign(cert, ca ? ca->key : key, EVP_sha256());
}

/* A certificate in p->cert, for p->key or a new one. */
static int make(struct pair *p, const struct pair *ca, const struct recipe *recipe, int64_t now_s,
                struct vg_status *reterr_status)
{
    X509_free(p->cert);
    p->cert = X509_new();
    if (!p->key)
        p->key = EVP_EC_gen("P-256");
    if (!p->cert || !p->key || !fill_cert(p->cert, p->key, ca, recipe, now_s))
        return fail_ssl(reterr_status, "make a certificate");
    return 0;
}

/* ---- judging ---- */

static bool lasts(const X509 *cert, int64_t now_s, int days)
{
    time_t until = (time_t)(now_s + days * DAY_S), now = (time_t)now_s;
    return X509_cmp_time(X509_get0_notAfter(cert), &until) > 0 &&
           X509_cmp_time(X509_get0_notBefore(cert), &now) < 0;
}

static bool is_signed_by(const struct pair *p, const struct pair *ca)
{
    bool ok = X509_check_private_key(p->cert, p->key) == 1 && X509_verify(p->cert, ca->key) == 1;
    ERR_clear_error();
    return ok;
}

/* ---- names ---- */

struct names {
    char v[NAMES_MAX][NAME_MAX_BYTES];
    size_t n;
};

static bool is_address(const char *name)
{
    unsigned char bytes[16];
    return inet_pton(AF_INET, name, bytes) == 1 || inet_pton(AF_INET6, name, bytes) == 1;
}

static void add_name(struct names *names, const char *name)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.*";
    size_t n = strlen(name);
    if (n == 0 || n >= NAME_MAX_BYTES || names->n == NAMES_MAX)
        return;
    if (strspn(name, letters) != n && !is_address(name))
        return;
    for (size_t i = 0; i < names->n; i++) {
        if (strcmp(names->v[i], name) == 0)
            return;
    }
    memcpy(names->v[names->n++], name, n + 1);
}

/* A server on every interface is reached by each of their addresses. */
static void add_interfaces(struct names *names)
{
    struct ifaddrs *list, *i;
    if (getifaddrs(&list) < 0)
        return;
    for (i = list; i; i = i->ifa_next) {
        char text[NI_MAXHOST];
        if (!i->ifa_addr ||
            (i->ifa_addr->sa_family != AF_INET && i->ifa_addr->sa_family != AF_INET6))
            continue;
        socklen_t size = i->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
                                                           : sizeof(struct sockaddr_in6);
        if (getnameinfo(i->ifa_addr, size, text, sizeof text, NULL, 0, NI_NUMERICHOST) == 0 &&
            !strchr(text, '%'))
            add_name(names, text);
    }
    freeifaddrs(list);
}

static void add_list(struct names *names, const char *list)
{
    while (list && *list) {
        char name[NAME_MAX_BYTES];
        size_t n = strcspn(list, ",");
        if (n < sizeof name) {
            memcpy(name, list, n);
            name[n] = 0;
            add_name(names, name);
        }
        list += n + (list[n] == ',');
    }
}

static void collect_names(const struct vg_pki_opts *o, struct names *names)
{
    static const char *const fixed[] = {"localhost",
                                        "127.0.0.1",
                                        "::1",
                                        "kubernetes",
                                        "kubernetes.default",
                                        "kubernetes.default.svc",
                                        "kubernetes.default.svc.cluster.local"};
    char host[NAME_MAX_BYTES] = "";
    names->n = 0;
    for (size_t i = 0; i < VG_ARRAY_LEN(fixed); i++)
        add_name(names, fixed[i]);
    if (gethostname(host, sizeof host - 1) == 0)
        add_name(names, host);
    if (strcmp(o->bind_address, "0.0.0.0") == 0 || strcmp(o->bind_address, "::") == 0)
        add_interfaces(names);
    else
        add_name(names, o->bind_address);
    if (o->advertised && *o->advertised)
        add_name(names, o->advertised);
    add_list(names, o->extra_names);
}

static bool covers(X509 *cert, const struct names *names)
{
    for (size_t i = 0; i < names->n; i++) {
        const char *name = names->v[i];
        int ok = is_address(name)
                     ? X509_check_ip_asc(cert, name, 0)
                     : X509_check_host(cert, name, 0, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, NULL);
        if (ok != 1)
            return false;
    }
    return true;
}

static int write_names(const struct names *names, struct vg_buf *out)
{
    int r = 0;
    for (size_t i = 0; i < names->n && r == 0; i++)
        r = vg_buf_printf(out, "%s%s:%s", i ? "," : "", is_address(names->v[i]) ? "IP" : "DNS",
                          names->v[i]);
    return r < 0 ? r : vg_buf_append_byte(out, 0);
}

/* ---- the three certificates ---- */

static int ensure_ca(const struct vg_pki_opts *o, struct pair *ca, bool *changed,
                     struct vg_status *reterr_status)
{
    static const struct recipe recipe = {.cn = "vigil-ca",
                                         .days = CA_DAYS,
                                         .basic = "critical,CA:TRUE",
                                         .usage = "critical,digitalSignature,keyCertSign,cRLSign"};
    int r = load_pair(o->dir, VG_PKI_CA, VG_PKI_CA_KEY, ca, reterr_status);
    if (r < 0)
        return r;
    if (r > 0 && !ca->key)
        return vg_fail(reterr_status, VIGIL_E_INVALID,
                       VG_PKI_CA_KEY
                       " does not hold a private key in PEM: put it back from a copy. "
                       "Or move it away and start again; then a new authority is made, "
                       "and every certificate of the old one is void");
    if (ca->cert && ca->key && is_signed_by(ca, ca) && lasts(ca->cert, o->now_s, CA_RENEW_DAYS))
        return 0;
    *changed = true;
    r = make(ca, NULL, &recipe, o->now_s, reterr_status);
    return r < 0 ? r : save_pair(o->dir, VG_PKI_CA, VG_PKI_CA_KEY, ca, VG_DURABLE, reterr_status);
}

static int ensure_server(const struct vg_pki_opts *o, const struct pair *ca, bool *changed,
                         struct vg_status *reterr_status)
{
    struct names names;
    VG_AUTO(buf) text = {0};
    struct pair p = {0};
    int r = load_pair(o->dir, VG_PKI_SERVER_CERT, VG_PKI_SERVER_KEY, &p, reterr_status);
    collect_names(o, &names);
    bool is_good = p.cert && p.key && is_signed_by(&p, ca) && lasts(p.cert, o->now_s, RENEW_DAYS) &&
                   covers(p.cert, &names);
    r = r < 0 ? r : 0;
    if (r == 0 && !is_good) {
        r = write_names(&names, &text);
        struct recipe recipe = {.cn = "kube-apiserver",
                                .days = LEAF_DAYS,
                                .basic = "critical,CA:FALSE",
                                .usage = "critical,digitalSignature",
                                .extended = "serverAuth",
                                .names = text.p};
        pair_done(&p);
        *changed = true;
        if (r == 0)
            r = make(&p, ca, &recipe, o->now_s, reterr_status);
        if (r == 0)
            r = save_pair(o->dir, VG_PKI_SERVER_CERT, VG_PKI_SERVER_KEY, &p, VG_LAZY,
                          reterr_status);
    }
    pair_done(&p);
    return r;
}

static int ensure_admin(const struct vg_pki_opts *o, const struct pair *ca, bool *changed,
                        struct vg_status *reterr_status)
{
    static const struct recipe recipe = {.cn = "kubernetes-admin",
                                         .o = "system:masters",
                                         .days = LEAF_DAYS,
                                         .basic = "critical,CA:FALSE",
                                         .usage = "critical,digitalSignature",
                                         .extended = "clientAuth"};
    struct pair p = {0};
    int r = load_pair(o->dir, VG_PKI_ADMIN_CERT, VG_PKI_ADMIN_KEY, &p, reterr_status);
    bool is_good = p.cert && p.key && is_signed_by(&p, ca) && lasts(p.cert, o->now_s, RENEW_DAYS);
    r = r < 0 ? r : 0;
    if (r == 0 && !is_good) {
        pair_done(&p);
        *changed = true;
        r = make(&p, ca, &recipe, o->now_s, reterr_status);
        if (r == 0)
            r = save_pair(o->dir, VG_PKI_ADMIN_CERT, VG_PKI_ADMIN_KEY, &p, VG_LAZY, reterr_status);
    }
    pair_done(&p);
    return r;
}

/* Certificates in PEM, one at least, and none that is damaged. */
static bool is_bundle(struct vg_slice text)
{
    BIO *bio = BIO_new_mem_buf(text.p, (int)text.n);
    X509 *cert;
    size_t n = 0;
    ERR_clear_error();
    while (bio && (cert = PEM_read_bio_X509(bio, NULL, NULL, NULL))) {
        X509_free(cert);
        n++;
    }
    bool is_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    ERR_clear_error();
    BIO_free(bio);
    return n > 0 && is_end;
}

/* To what `to` holds already. */
static int add_client_ca(const char *path, struct vg_buf *to, struct vg_status *reterr_status)
{
    size_t before = to->n;
    int r = vg_read_file(path, to, reterr_status);
    if (r < 0)
        return vg_fail(reterr_status, r, "--client-ca-file: cannot read %s: %s", path,
                       vg_err_text(r));
    if (is_bundle(vg_slice(to->p + before, to->n - before)))
        return 0;
    return vg_fail(reterr_status, VIGIL_E_INVALID,
                   "--client-ca-file: %s does not hold certificates in PEM", path);
}

/* Our own authority always counts: who can read its key can read the store too. */
static int ensure_client_ca(const struct vg_pki_opts *o, struct vg_status *reterr_status)
{
    VG_AUTO(buf) wanted = {0};
    int r = vg_data_dir_read(o->dir, VG_PKI_CA, &wanted, reterr_status);
    if (r == 0 && o->client_ca_file)
        r = add_client_ca(o->client_ca_file, &wanted, reterr_status);
    if (r < 0)
        return r;
    return vg_data_dir_replace(o->dir, VG_PKI_CLIENT_CA, vg_buf_slice(&wanted), VG_LAZY,
                               reterr_status);
}

int vg_pki_ensure(const struct vg_pki_opts *o, bool *ret_changed, struct vg_status *reterr_status)
{
    struct pair ca = {0};
    bool changed = false;
    int r = vg_data_dir_make(o->dir, "pki", reterr_status);
    if (r == 0)
        r = ensure_ca(o, &ca, &changed, reterr_status);
    if (r == 0 && !o->no_server)
        r = ensure_server(o, &ca, &changed, reterr_status);
    if (r == 0)
        r = ensure_admin(o, &ca, &changed, reterr_status);
    if (r == 0)
        r = ensure_client_ca(o, reterr_status);
    pair_done(&ca);
    if (r == 0)
        *ret_changed = changed;
    return r;
}
