/* tls_identity.c - the user that a client certificate names. */
#include <errno.h>
#include <openssl/asn1.h>
#include <openssl/x509.h>
#include <time.h>

#include "base/alloc.h"
#include "tls_ctx.h"

/* 512 groups of 64 KiB in all: no certificate that anybody made has more. */
#define GROUPS_MAX 512
#define NAMES_MAX (64u * 1024u)

/* The text of one entry; freed by OPENSSL_free. NULL: not a text, or one that C would cut. */
static char *entry_text(const X509_NAME_ENTRY *entry, size_t *ret_n)
{
    unsigned char *text = NULL;
    int n = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(entry));
    if (n >= 0 && !memchr(text, 0, (size_t)n)) {
        *ret_n = (size_t)n;
        return (char *)text;
    }
    OPENSSL_free(text);
    return NULL;
}

/* Calls for every CN and O; -1 stops. */
static int walk(const X509 *cert, int (*each)(void *arg, bool is_cn, struct vg_slice text),
                void *arg)
{
    const X509_NAME *subject = X509_get_subject_name(cert);
    for (int i = 0; i < X509_NAME_entry_count(subject); i++) {
        const X509_NAME_ENTRY *entry = X509_NAME_get_entry(subject, i);
        int nid = OBJ_obj2nid(X509_NAME_ENTRY_get_object(entry));
        if (nid != NID_commonName && nid != NID_organizationName)
            continue;
        size_t n = 0;
        char *text = entry_text(entry, &n);
        int r = text ? each(arg, nid == NID_commonName, vg_slice(text, n)) : -1;
        OPENSSL_free(text);
        if (r < 0)
            return VIGIL_E_INVALID;
    }
    return 0;
}

struct filling {
    struct vg_tls_identity *id; /* NULL: counting */
    struct vg_slice *groups;
    char *text;
    size_t n_groups, n_text;
};

static int add(void *arg, bool is_cn, struct vg_slice text)
{
    struct filling *f = arg;
    if (f->id) {
        struct vg_slice *to = is_cn ? &f->id->name : &f->groups[f->n_groups];
        if (text.n)
            memcpy(f->text + f->n_text, text.p, text.n);
        *to = vg_slice(f->text + f->n_text, text.n);
    }
    f->n_groups += !is_cn;
    f->n_text += text.n;
    return f->n_groups <= GROUPS_MAX && f->n_text <= NAMES_MAX ? 0 : -1;
}

static int64_t not_after(const X509 *cert)
{
    struct tm tm = {0};
    return ASN1_TIME_to_tm(X509_get0_notAfter(cert), &tm) == 1 ? (int64_t)timegm(&tm) : 0;
}

int vg_tls_identity_new(const X509 *cert, struct vg_tls_identity **ret)
{
    struct filling f = {0};
    int r = walk(cert, add, &f);
    if (r < 0)
        return r;
    struct vg_tls_identity *id =
        vg_malloc(sizeof *id + f.n_groups * sizeof(struct vg_slice) + f.n_text);
    if (!id)
        return -ENOMEM;
    struct vg_slice *groups = (struct vg_slice *)(id + 1);
    *id = (struct vg_tls_identity){
        .groups = groups, .n_groups = f.n_groups, .not_after_s = not_after(cert)};
    f = (struct filling){.id = id, .groups = groups, .text = (char *)(groups + f.n_groups)};
    r = walk(cert, add, &f);
    if (r < 0)
        vg_free(id);
    else
        *ret = id; /* without a CN its name is empty: it is a certificate, but nobody's */
    return r;
}
