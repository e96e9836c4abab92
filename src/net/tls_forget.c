/* tls_forget.c - what OpenSSL would keep of a client's certificate as long as the connection lives:
 * the decoded leaf in its session and everything that came with it, 5 KB each. Nothing reads them
 * once the handshake is over: sessions are not resumed and not renegotiated, and who the client is
 * has been noted. OpenSSL has no call that takes the leaf out of a session, and a session must stay
 * (records look at it), so the leaf is made a blank one in place.
 *   F1 what is changed came over this connection and is its alone: a session's own leaf and the
 *      certificates sent with it. Those of the client CA's file are shared and only let go of.
 *   F2 no pointer of the session dangles or becomes NULL, whether there is memory or not. */
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "tls_ctx.h"

#define DER_SEQUENCE 0x30
#define DER_BITS_NONE 0x03, 0x01, 0x00
#define DER_ALGORITHM DER_SEQUENCE, 4, 0x06, 2, 0x2a, 3 /* 1.2.3: nobody's */
#define DER_1970 0x17, 13, '7', '0', '0', '1', '0', '1', '0', '0', '0', '0', '0', '0', 'Z'

/* The least that decodes as a certificate: nobody's, by nobody, expired, with no key. */
/* clang-format off */
static const unsigned char blank[] = {
    DER_SEQUENCE, 67, /* the certificate */
        DER_SEQUENCE, 56, /* what would be signed */
            0x02, 1, 0, /* serial number */
            DER_ALGORITHM,
            DER_SEQUENCE, 0, /* issuer */
            DER_SEQUENCE, 30, DER_1970, DER_1970, /* validity */
            DER_SEQUENCE, 0, /* subject */
            DER_SEQUENCE, 9, DER_ALGORITHM, DER_BITS_NONE, /* key */
        DER_ALGORITHM, DER_BITS_NONE, /* signature */
};
/* clang-format on */

/* A decoder that fails lets go of what it was given: that is a reference of our own, and the
 * session's certificate is alive whatever it holds by then. */
static void make_blank(X509 *cert)
{
    const unsigned char *p = blank;
    X509 *own = cert;
    if (X509_up_ref(cert) == 1 && d2i_X509(&own, &p, sizeof blank))
        X509_free(own);
}

static void let_go(STACK_OF(X509) * certs)
{
    X509 *cert;
    while ((cert = sk_X509_pop(certs)) != NULL)
        X509_free(cert);
}

void vg_tls_forget_client(SSL *ssl)
{
    X509 *leaf = SSL_get0_peer_certificate(ssl);
    if (!leaf)
        return;
    let_go(SSL_get0_verified_chain(ssl));
    let_go(SSL_get_peer_cert_chain(ssl));
    make_blank(leaf);
    ERR_clear_error();
}
