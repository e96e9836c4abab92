/* tls_testing.h - for tests: certificates made on the spot, and a TLS client that is driven by
 * hand.
 */
#ifndef VG_NET_TLS_TESTING_H
#define VG_NET_TLS_TESTING_H

#include "test_support.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>

/* Who signs and who is signed. */
struct tls_test_pair {
    X509 *cert;
    EVP_PKEY *key;
};

struct tls_test_cert {
    const char *cn;        /* NULL: none */
    const char *groups[4]; /* O; ends with NULL */
    const char *usage;     /* extendedKeyUsage; NULL: none */
    const char *san;       /* subjectAltName; NULL: none */
    bool is_ca;
    long not_after_s; /* from now; 0: a day */
};

static inline void tls_test_extend(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    assert_non_null(e);
    X509_add_ext(cert, e, -1);
    X509_EXTENSION_free(e);
}

static inline void tls_test_name(X509_NAME *name, const char *field, const char *text)
{
    if (text)
        X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8, (const unsigned char *)text, -1, -1,
                                   0);
}

/* signer NULL: by itself. */
static inline struct tls_test_pair tls_test_make(const struct tls_test_cert *want,
                                                 const struct tls_test_pair *signer)
{
    static long serial = 1;
    struct tls_test_pair p = {X509_new(), EVP_EC_gen("P-256")};
    const struct tls_test_pair *by = signer ? signer : &p;
    X509_set_version(p.cert, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(p.cert), serial++);
    long end = want->not_after_s ? want->not_after_s : 86400;
    X509_gmtime_adj(X509_getm_notBefore(p.cert), -86400);
    X509_gmtime_adj(X509_getm_notAfter(p.cert), end);
    X509_set_pubkey(p.cert, p.key);
    X509_NAME *name = X509_get_subject_name(p.cert);
    for (size_t i = 0; want->groups[i]; i++)
        tls_test_name(name, "O", want->groups[i]);
    tls_test_name(name, "CN", want->cn);
    X509_set_issuer_name(p.cert, X509_get_subject_name(by->cert));
    tls_test_extend(p.cert, by->cert, NID_basic_constraints,
                    want->is_ca ? "critical,CA:TRUE" : "critical,CA:FALSE");
    if (want->usage)
        tls_test_extend(p.cert, by->cert, NID_ext_key_usage, want->usage);
    if (want->san)
        tls_test_extend(p.cert, by->cert, NID_subject_alt_name, want->san);
    assert_true(X509_sign(p.cert, by->key, EVP_sha256()) > 0);
    return p;
}

static inline void tls_test_free(struct tls_test_pair *p)
{
    X509_free(p->cert);
    EVP_PKEY_free(p->key);
}

/* As PEM to <dir>/<name>.crt and .key. */
static inline void tls_test_save(const struct tls_test_pair *p, const char *dir, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.crt", dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(PEM_write_X509(f, p->cert), 1);
    fclose(f);
    snprintf(path, sizeof path, "%s/%s.key", dir, name);
    f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(PEM_write_PrivateKey(f, p->key, NULL, NULL, 0, NULL, NULL), 1);
    fclose(f);
}

/* A client on a connected socket that believes `ca`, shows `own` (NULL: nothing) and offers `alpn`
 * in wire format (NULL: nothing). */
static inline SSL *tls_test_client(int fd, const struct tls_test_pair *ca,
                                   const struct tls_test_pair *own, const char *alpn)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), ca->cert);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    if (own) {
        assert_int_equal(SSL_CTX_use_certificate(ctx, own->cert), 1);
        assert_int_equal(SSL_CTX_use_PrivateKey(ctx, own->key), 1);
    }
    if (alpn)
        SSL_CTX_set_alpn_protos(ctx, (const unsigned char *)alpn, (unsigned)strlen(alpn));
    SSL *ssl = SSL_new(ctx);
    SSL_CTX_free(ctx);
    SSL_set_fd(ssl, fd);
    SSL_set_connect_state(ssl);
    return ssl;
}

#endif
