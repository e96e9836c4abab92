/* Tests of jwt.c, key.c and issuer.c: what is signed is read and found good, and nothing else is.
 */
#include "test_support.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdio.h>

#include "base/base64.h"
#include "issuer.h"
#include "json/json.h"

static const struct vg_slice audiences[] = {{"https://a", 9}, {"b", 1}};
static const struct vg_jwt_claims claims = {
    .issuer = {"https://issuer", 14},
    .subject = {"system:serviceaccount:ns:sa", 27},
    .id = {"83b676e9-e469-418d-adaf-cf732d3c8647", 36},
    .audiences = audiences,
    .n_audiences = 2,
    .expires_s = 1794818959,
    .issued_s = 1794815359,
    .starts_s = 1794815359,
    .warn_after_s = 1794815366,
    .ns = {"ns", 2},
    .account = {{"sa", 2}, {"u1", 2}},
    .pod = {{"p", 1}, {"u2", 2}},
    .node = {{"n", 1}, {"", 0}},
};

static void add_pem(struct vg_jwt_keys *keys, EVP_PKEY *key, bool is_public)
{
    BIO *bio = BIO_new(BIO_s_mem());
    char *p;
    if (is_public)
        assert_int_equal(PEM_write_bio_PUBKEY(bio, key), 1);
    else
        assert_int_equal(PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL), 1);
    size_t n = (size_t)BIO_get_mem_data(bio, &p);
    assert_int_equal(vg_jwt_keys_add(keys, "test", vg_slice(p, n), NULL), 0);
    BIO_free(bio);
}

static EVP_PKEY *make(const char *type)
{
    EVP_PKEY *key = *type == 'R' ? EVP_RSA_gen(2048) : EVP_EC_gen(type);
    assert_non_null(key);
    return key;
}

static struct vg_slice sign(const struct vg_jwt_keys *keys, struct vg_arena *a)
{
    struct vg_slice token;
    assert_int_equal(vg_jwt_sign(keys->v[0], a, &claims, &token), 0);
    return token;
}

static enum vg_jwt_verdict judge(const struct vg_jwt_keys *keys, struct vg_arena *a,
                                 struct vg_slice token)
{
    struct vg_jwt t;
    int r = vg_jwt_read(a, token, &t);
    return r < 0 ? VG_JWT_FORGED : vg_jwt_verify(keys, &t);
}

static void same_ref(const struct vg_jwt_ref *a, const struct vg_jwt_ref *b)
{
    vg_assert_slice_equal(a->name, b->name);
    vg_assert_slice_equal(a->uid, b->uid);
}

static void what_is_claimed_is_read(void **state)
{
    (void)state;
    static const char *const types[] = {"RSA", "P-256", "P-384", "P-521"};
    static const char *const names[] = {"RS256", "ES256", "ES384", "ES512"};
    for (size_t i = 0; i < VG_ARRAY_LEN(types); i++) {
        VG_AUTO(arena) a = {0};
        VG_AUTO(jwt_keys) keys = {.n = 0};
        VG_AUTO(jwt_keys) public = {.n = 0};
        EVP_PKEY *key = make(types[i]);
        struct vg_jwt t;
        add_pem(&keys, key, false);
        add_pem(&public, key, true);
        EVP_PKEY_free(key);
        assert_string_equal(vg_jwt_key_algorithm(keys.v[0]), names[i]);
        assert_string_equal(vg_jwt_key_id(keys.v[0]), vg_jwt_key_id(public.v[0]));
        assert_true(vg_jwt_key_can_sign(keys.v[0]) && !vg_jwt_key_can_sign(public.v[0]));
        struct vg_slice token = sign(&keys, &a);
        assert_int_equal(vg_jwt_read(&a, token, &t), 0);
        assert_int_equal(vg_jwt_verify(&public, &t), VG_JWT_GOOD);
        vg_assert_slice_equal(t.claims.issuer, claims.issuer);
        vg_assert_slice_equal(t.claims.subject, claims.subject);
        vg_assert_slice_equal(t.claims.id, claims.id);
        vg_assert_slice_equal(t.claims.ns, claims.ns);
        assert_int_equal(t.claims.n_audiences, 2);
        vg_assert_slice_equal(t.claims.audiences[1], audiences[1]);
        assert_int_equal(t.claims.expires_s, claims.expires_s);
        assert_int_equal(t.claims.warn_after_s, claims.warn_after_s);
        same_ref(&t.claims.account, &claims.account);
        same_ref(&t.claims.pod, &claims.pod);
        same_ref(&t.claims.node, &claims.node);
        assert_int_equal(t.claims.secret.name.n, 0);
    }
}

/* Written as kube-apiserver writes them. */
static void claims_are_sorted(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    struct vg_slice text;
    char json[1024];
    size_t n;
    assert_int_equal(vg_jwt_write(&a, "ES256", "k", &claims, &text), 0);
    const char *dot = memchr(text.p, '.', text.n);
    assert_true(
        vg_base64_url_decode(vg_slice(dot + 1, text.n - (size_t)(dot + 1 - text.p)), json, &n));
    vg_assert_slice_equal(
        vg_slice(json, n),
        VG_SLICE_LIT("{\"aud\":[\"https://a\",\"b\"],\"exp\":1794818959,\"iat\":1794815359,"
                     "\"iss\":\"https://issuer\",\"jti\":\"83b676e9-e469-418d-adaf-cf732d3c8647\","
                     "\"kubernetes.io\":{\"namespace\":\"ns\",\"node\":{\"name\":\"n\"},"
                     "\"pod\":{\"name\":\"p\",\"uid\":\"u2\"},"
                     "\"serviceaccount\":{\"name\":\"sa\",\"uid\":\"u1\"},"
                     "\"warnafter\":1794815366},\"nbf\":1794815359,"
                     "\"sub\":\"system:serviceaccount:ns:sa\"}"));
}

/* Any one character that is another one makes it worthless. The last of a part may have bits that
 * count for nothing. */
static void what_was_changed_is_not_good(void **state)
{
    (void)state;
    VG_AUTO(jwt_keys) keys = {.n = 0};
    EVP_PKEY *key = make("P-256");
    add_pem(&keys, key, false);
    EVP_PKEY_free(key);
    VG_AUTO(arena) first = {0};
    struct vg_slice token = sign(&keys, &first);
    for (size_t i = 0; i < token.n; i++) {
        VG_AUTO(arena) a = {0};
        char *copy = vg_arena_copy(&a, token.p, token.n);
        bool is_last = i + 1 == token.n;
        copy[i] = copy[i] == 'A' ? 'B' : 'A';
        if (!is_last)
            assert_int_not_equal(judge(&keys, &a, vg_slice(copy, token.n)), VG_JWT_GOOD);
        if (i)
            assert_int_not_equal(judge(&keys, &a, vg_slice(token.p, i)), VG_JWT_GOOD);
    }
}

static struct vg_slice with_header(struct vg_arena *a, struct vg_slice token, const char *header)
{
    char text[256];
    struct vg_slice ret;
    const char *dot = memchr(token.p, '.', token.n);
    size_t n = vg_base64_url_encode(vg_slice_str(header), text);
    assert_int_equal(vg_arena_printf(a, &ret, "%.*s%.*s", (int)n, text,
                                     (int)(token.n - (size_t)(dot - token.p)), dot),
                     0);
    return ret;
}

static void another_algorithm_is_refused(void **state)
{
    (void)state;
    static const char *const headers[] = {
        "{\"alg\":\"none\"}",
        "{\"alg\":\"HS256\"}",
        "{\"alg\":\"RS256\"}",
        "{\"alg\":\"\"}",
        "{\"alg\":\"ES384\"}",
        "{\"alg\":\"ES256\",\"crit\":[\"x\"]}",
        "{}",
        "[]",
        "{\"alg\":\"ES256\",\"kid\":\"other\"}",
    };
    VG_AUTO(arena) a = {0};
    VG_AUTO(jwt_keys) keys = {.n = 0};
    EVP_PKEY *key = make("P-256");
    add_pem(&keys, key, false);
    EVP_PKEY_free(key);
    struct vg_slice token = sign(&keys, &a);
    for (size_t i = 0; i < VG_ARRAY_LEN(headers); i++)
        assert_int_not_equal(judge(&keys, &a, with_header(&a, token, headers[i])), VG_JWT_GOOD);
}

static void keys_are_found_by_their_names(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    VG_AUTO(jwt_keys) old = {.n = 0};
    VG_AUTO(jwt_keys) both = {.n = 0};
    EVP_PKEY *one = make("P-256"), *two = make("P-384");
    struct vg_jwt t;
    add_pem(&old, one, false);
    add_pem(&both, two, false);
    struct vg_slice token = sign(&old, &a);
    assert_int_equal(vg_jwt_read(&a, token, &t), 0);
    assert_int_equal(vg_jwt_verify(&both, &t), VG_JWT_NO_KEY);
    add_pem(&both, one, true);
    assert_int_equal(both.n, 2);
    assert_int_equal(vg_jwt_verify(&both, &t), VG_JWT_GOOD);
    add_pem(&both, one, false); /* the private half takes its place */
    assert_int_equal(both.n, 2);
    assert_true(vg_jwt_key_can_sign(both.v[1]));
    EVP_PKEY_free(one);
    EVP_PKEY_free(two);
}

static void what_is_no_token_is_refused(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    static const char *const texts[] = {"",
                                        ".",
                                        "..",
                                        "a.b.c",
                                        "e30.e30",
                                        "e30.e30.",
                                        "e30.e30.YQ.YQ",
                                        "W10.e30.YQ",
                                        "e30.W10.YQ",
                                        "e30.eyJhdWQiOjF9.YQ"};
    struct vg_jwt t;
    for (size_t i = 0; i < VG_ARRAY_LEN(texts); i++)
        assert_int_equal(vg_jwt_read(&a, vg_slice_str(texts[i]), &t), VIGIL_E_INVALID);
    char *large = vg_arena_alloc(&a, VG_JWT_MAX + 1, 1);
    memset(large, 'a', VG_JWT_MAX + 1);
    assert_int_equal(vg_jwt_read(&a, vg_slice(large, VG_JWT_MAX + 1), &t), VIGIL_E_INVALID);
    assert_int_equal(vg_jwt_read(&a, VG_SLICE_LIT("e30.e30.YQ"), &t), 0);
}

static void bad_key_files_are_told(void **state)
{
    (void)state;
    VG_AUTO(jwt_keys) keys = {.n = 0};
    struct vg_status why = {0};
    assert_int_equal(vg_jwt_keys_add(&keys, "f", VG_SLICE_LIT("x"), &why), VIGIL_E_INVALID);
    assert_non_null(strstr(why.message, "f: there is no key in it"));
    EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    BIO *bio = BIO_new(BIO_s_mem());
    char *p;
    assert_int_equal(PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL), 1);
    size_t n = (size_t)BIO_get_mem_data(bio, &p);
    assert_int_equal(vg_jwt_keys_add(&keys, "f", vg_slice(p, n), &why), VIGIL_E_INVALID);
    assert_non_null(strstr(why.message, "signs no tokens"));
    BIO_free(bio);
    EVP_PKEY_free(key);
}

static void an_issuer_has_documents(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    VG_AUTO(buf) pem = {0};
    struct vg_jwt_keys keys = {.n = 0};
    struct vg_issuer *issuer = NULL;
    struct vg_json *set;
    assert_int_equal(vg_jwt_key_make(&pem), 0);
    assert_int_equal(vg_jwt_keys_add(&keys, "made", vg_buf_slice(&pem), NULL), 0);
    EVP_PKEY *rsa = make("RSA");
    add_pem(&keys, rsa, true);
    EVP_PKEY_free(rsa);
    struct vg_issuer_opts opts = {.issuers = "https://one,https://two",
                                  .jwks_uri = "https://x/openid/v1/jwks",
                                  .take_keys = &keys};
    assert_int_equal(vg_issuer_new(&opts, &issuer, NULL), 0);
    assert_int_equal(keys.n, 0);
    vg_assert_slice_equal(
        vg_buf_slice(&issuer->config),
        VG_SLICE_LIT("{\"issuer\":\"https://one\",\"jwks_uri\":\"https://x/openid/v1/jwks\","
                     "\"response_types_supported\":[\"id_token\"],"
                     "\"subject_types_supported\":[\"public\"],"
                     "\"id_token_signing_alg_values_supported\":[\"ES256\",\"RS256\"]}"));
    assert_int_equal(vg_json_parse(&a, vg_buf_slice(&issuer->key_set), NULL, &set, NULL), 0);
    const struct vg_json *list = vg_json_get_str(set, "keys");
    assert_int_equal(list->n, 2);
    assert_int_equal(vg_json_text(vg_json_get_str(&list->items[0], "x")).n, 43);
    assert_int_equal(vg_json_text(vg_json_get_str(&list->items[1], "n")).n, 342);
    vg_assert_slice_equal(vg_json_text(vg_json_get_str(&list->items[1], "e")),
                          VG_SLICE_LIT("AQAB"));
    assert_true(vg_issuer_is_ours(issuer, VG_SLICE_LIT("https://two")));
    assert_false(vg_issuer_is_ours(issuer, VG_SLICE_LIT("https://three")));
    assert_int_equal(issuer->n_audiences, 2);
    vg_issuer_free(issuer);
}

static void running_out_of_memory_is_told(void **state)
{
    (void)state;
    VG_AUTO(jwt_keys) keys = {.n = 0};
    EVP_PKEY *key = make("P-256");
    add_pem(&keys, key, false);
    EVP_PKEY_free(key);
    VG_ALLOC_FAIL_LOOP (n) {
        VG_AUTO(arena) a = {0};
        struct vg_slice token;
        struct vg_jwt t;
        int r = vg_jwt_sign(keys.v[0], &a, &claims, &token);
        if (r == 0)
            r = vg_jwt_read(&a, token, &t);
        assert_int_equal(r, vg_test_alloc_failed() ? -ENOMEM : 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_claimed_is_read),
        cmocka_unit_test(claims_are_sorted),
        cmocka_unit_test(what_was_changed_is_not_good),
        cmocka_unit_test(another_algorithm_is_refused),
        cmocka_unit_test(keys_are_found_by_their_names),
        cmocka_unit_test(what_is_no_token_is_refused),
        cmocka_unit_test(bad_key_files_are_told),
        cmocka_unit_test(an_issuer_has_documents),
        cmocka_unit_test(running_out_of_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
