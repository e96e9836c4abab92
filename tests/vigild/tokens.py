"""tokens.py <vigild> - tokens of service accounts: given out, checked by what they stand for, told about, and signed
with keys that others can check. The expected answers are a kube-apiserver's."""
import base64
import json
import os
import stat
import sys

from vigild import check, equal, has, main, openssl, wait_for

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
PODS = "/api/v1/namespaces/default/pods"
SECRETS = "/api/v1/namespaces/default/secrets"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
ISSUER = "https://kubernetes.default.svc"
EXTRA = "authentication.kubernetes.io/"


def expect(a, status):
    equal(a.status, status, a.body)
    return a.json


def make(v, path, name, **more):
    return expect(v.ask(path, "POST", body={"metadata": {"name": name}, **more}), 201)


def ask_token(v, account, status=201, meta=None, **spec):
    return expect(v.ask(f"{ACCOUNTS}/{account}/token", "POST", body={"metadata": meta or {}, "spec": spec}), status)


def token(v, account="a", **spec):
    return ask_token(v, account, **spec)["status"]["token"]


def part(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def claims(text):
    return json.loads(part(text.split(".")[1]))


def header(text):
    return json.loads(part(text.split(".")[0]))


def use(v, text, path=WHO, method="POST"):
    body = {} if method == "POST" else None
    return v.ask(path, method, context=v.context(), body=body, headers={"Authorization": "Bearer " + text})


def review(v, text, *audiences):
    body = {"spec": {"token": text, **({"audiences": list(audiences)} if audiences else {})}}
    return expect(v.ask(REVIEWS, "POST", body=body), 201)["status"]


def refusal(v, text, why, *audiences):
    equal(review(v, text, *audiences), {"user": {}, "error": why})
    if not audiences:
        equal(use(v, text).status, 401)


def bound(kind, name, **more):
    return {"boundObjectRef": {"apiVersion": "v1", "kind": kind, "name": name, **more}}


def test_a_token_says_who_comes(case):
    v = case.start()
    account = make(v, ACCOUNTS, "a")
    answer = ask_token(v, "a")
    equal([answer["kind"], answer["metadata"]["name"], answer["metadata"]["uid"]], ["TokenRequest", "a", account["metadata"]["uid"]])
    equal(answer["spec"], {"audiences": [ISSUER], "expirationSeconds": 3600, "boundObjectRef": None})
    text = answer["status"]["token"]
    c = claims(text)
    equal(list(c), ["aud", "exp", "iat", "iss", "jti", "kubernetes.io", "nbf", "sub"])
    equal([c["aud"], c["iss"], c["sub"], c["exp"] - c["iat"]], [[ISSUER], ISSUER, "system:serviceaccount:default:a", 3600])
    equal(c["kubernetes.io"], {"namespace": "default", "serviceaccount": {"name": "a", "uid": account["metadata"]["uid"]}})
    me = expect(use(v, text), 201)["status"]["userInfo"]
    equal(me, {"username": "system:serviceaccount:default:a", "uid": account["metadata"]["uid"],
               "groups": ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"],
               "extra": {EXTRA + "credential-id": ["JTI=" + c["jti"]]}})
    equal(review(v, text), {"authenticated": True, "user": me, "audiences": [ISSUER]})
    has(expect(use(v, text, PODS, "GET"), 403)["message"], 'User "system:serviceaccount:default:a" cannot list resource "pods"')
    equal(use(v, token(v), "/api", "GET").status, 200)


def test_what_is_asked_for_is_checked(case):
    v = case.start()
    make(v, ACCOUNTS, "a")
    equal(ask_token(v, "none", 404)["message"], 'serviceaccounts "none" not found')
    equal(ask_token(v, "a", 422, expirationSeconds=599)["message"],
          'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 599: '
          'may not specify a duration less than 10 minutes')
    has(ask_token(v, "a", 422, expirationSeconds=2 ** 32 + 1)["message"], "may not specify a duration larger than 2^32 seconds")
    has(ask_token(v, "a", 422, {"name": "b"})["message"], "must match the service account name if specified")
    has(ask_token(v, "a", 409, {"uid": "x"})["message"], "the UID in the token request (x) does not match the UID of the service account")
    equal(ask_token(v, "a", 400, **bound("ConfigMap", "x"))["message"], "cannot bind token to object of type /v1, Kind=ConfigMap")
    equal(ask_token(v, "a", 404, **bound("Secret", "x"))["message"], 'secrets "x" not found')


def test_audiences(case):
    v = case.start()
    make(v, ACCOUNTS, "a")
    ours, other = token(v), token(v, audiences=["x", "y"])
    equal(review(v, other, "z", "y")["audiences"], ["y"])
    refusal(v, other, f'[invalid bearer token, token audiences ["x" "y"] is invalid for the target audiences ["{ISSUER}"]]')
    refusal(v, ours, f'[invalid bearer token, token audiences ["{ISSUER}"] is invalid for the target audiences ["x"]]', "x")


def test_what_was_changed_is_refused(case):
    v = case.start()
    make(v, ACCOUNTS, "a")
    text = token(v)
    first, second, third = text.split(".")
    stolen = dict(claims(text), sub="system:serviceaccount:kube-system:admin")
    stolen["kubernetes.io"]["namespace"] = "kube-system"
    forged = base64.urlsafe_b64encode(json.dumps(stolen).encode()).decode().rstrip("=")
    refusal(v, f"{first}.{forged}.{third}", "[invalid bearer token, invalid signature]")
    none = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")
    refusal(v, f"{none}.{second}.{third}", "[invalid bearer token, invalid signature]")
    for bad in (f"{first}.{second}", f"{first}.{second}.", "a.b.c", "nobody's", text + ".x"):
        refusal(v, bad, "invalid bearer token")
    equal(use(v, text).status, 201)


def test_it_ends_with_its_account(case):
    v = case.start()
    make(v, ACCOUNTS, "a")
    text = token(v)
    equal(use(v, text).status, 201)
    expect(v.ask(ACCOUNTS + "/a", "DELETE"), 200)
    wait_for("the end of the token", lambda: use(v, text).status == 401)
    refusal(v, text, '[invalid bearer token, serviceaccounts "a" not found]')
    make(v, ACCOUNTS, "a")
    wait_for("the new account", lambda: "does not match claim" in review(v, text)["error"])
    equal(use(v, text).status, 401)


def test_it_ends_with_what_it_is_bound_to(case):
    v = case.start()
    make(v, ACCOUNTS, "a")
    make(v, ACCOUNTS, "b")
    make(v, SECRETS, "s")
    node = make(v, "/api/v1/nodes", "n")
    spec = {"serviceAccountName": "a", "nodeName": "n", "containers": [{"name": "c", "image": "x"}]}
    pod = make(v, PODS, "p", spec=spec)
    has(ask_token(v, "b", 400, **bound("Pod", "p"))["message"],
        'cannot bind token for serviceaccount "b" to pod running with different serviceaccount name.')
    has(ask_token(v, "a", 409, **bound("Pod", "p", uid="x"))["message"], "the UID in the bound object reference (x) does not match")
    of_pod, of_secret, of_node = (token(v, **bound(*x)) for x in (("Pod", "p"), ("Secret", "s"), ("Node", "n")))
    known = claims(of_pod)["kubernetes.io"]
    equal([known["pod"], known["node"]], [{"name": "p", "uid": pod["metadata"]["uid"]}, {"name": "n", "uid": node["metadata"]["uid"]}])
    extra = expect(use(v, of_pod), 201)["status"]["userInfo"]["extra"]
    equal({k: x for k, x in extra.items() if k != EXTRA + "credential-id"},
          {EXTRA + "node-name": ["n"], EXTRA + "node-uid": [node["metadata"]["uid"]], EXTRA + "pod-name": ["p"],
           EXTRA + "pod-uid": [pod["metadata"]["uid"]]})
    for text in (of_secret, of_node):
        equal(use(v, text).status, 201)
    for path, text in ((SECRETS + "/s", of_secret), ("/api/v1/nodes/n", of_node), (PODS + "/p?gracePeriodSeconds=0", of_pod)):
        equal(use(v, text).status, 201)
        expect(v.ask(path, "DELETE"), 200)
        wait_for("the end of " + path, lambda t=text: use(v, t).status == 401)
        refusal(v, text, "[invalid bearer token, service account token has been invalidated]")


def test_a_new_account_is_known_at_once(case):
    """Whoever is given a token can use it, on any loop."""
    v = case.start("--loops", "4")
    for i in range(20):
        make(v, ACCOUNTS, f"a{i}")
        text = token(v, f"a{i}")
        for _ in range(4):
            equal(use(v, text).status, 201)


def test_the_life_of_tokens(case):
    v = case.start("--service-account-max-token-expiration", "2h")
    make(v, ACCOUNTS, "a")
    a = v.ask(ACCOUNTS + "/a/token", "POST", body={"spec": {"expirationSeconds": 10000}})
    equal(a.headers["warning"], '299 - "requested expiration of 10000 seconds shortened to 7200 seconds"')
    equal([a.json["spec"]["expirationSeconds"], claims(a.json["status"]["token"])["exp"] - claims(a.json["status"]["token"])["iat"]], [7200, 7200])
    make(v, PODS, "p", spec={"serviceAccountName": "a", "containers": [{"name": "c", "image": "x"}]})
    long = claims(token(v, expirationSeconds=3607, **bound("Pod", "p")))
    equal([long["exp"] - long["iat"], long["kubernetes.io"]["warnafter"] - long["iat"]], [365 * 24 * 3600, 3607])
    v.end()
    v = case.start("--service-account-extend-token-expiration=false")
    short = claims(token(v, expirationSeconds=3607, **bound("Pod", "p")))
    equal([short["exp"] - short["iat"], short["kubernetes.io"].get("warnafter")], [3607, None])


def test_the_key_stays(case):
    v = case.start()
    mode = stat.S_IMODE(os.stat(v.path("pki/sa.key")).st_mode)
    equal(mode, 0o600)
    make(v, ACCOUNTS, "a")
    text = token(v)
    v.end()
    v = case.start()
    equal(use(v, text).status, 201)


def test_keys_of_others(case):
    """An RSA key that signs, another that did before, and issuers and audiences by other names."""
    one, two, public = case.path("one.key"), case.path("two.key"), case.path("one.pub")
    openssl("genrsa", "-out", one, "2048")
    openssl("ecparam", "-name", "secp384r1", "-genkey", "-noout", "-out", two)
    openssl("rsa", "-in", one, "-pubout", "-out", public)
    v = case.start("--service-account-signing-key-file", one, "--service-account-issuer", "https://old", "--api-audiences", "us,them")
    make(v, ACCOUNTS, "a")
    old = token(v)
    equal([header(old)["alg"], claims(old)["iss"], claims(old)["aud"]], ["RS256", "https://old", ["us", "them"]])
    signed, signature = case.path("signed"), case.path("signature")
    with open(signed, "wb") as f:
        f.write(old.rsplit(".", 1)[0].encode())
    with open(signature, "wb") as f:
        f.write(part(old.rsplit(".", 1)[1]))
    openssl("dgst", "-sha256", "-verify", public, "-signature", signature, signed)
    equal(use(v, old).status, 201)
    v.end()
    v = case.start("--service-account-signing-key-file", two, "--service-account-key-file", public,
                   "--service-account-issuer", "https://new", "--service-account-issuer=https://old", "--api-audiences=us")
    new = token(v)
    equal([header(new)["alg"], claims(new)["iss"]], ["ES384", "https://new"])
    equal([use(v, t).status for t in (old, new)], [201, 201])
    keys = v.ask("/openid/v1/jwks").json["keys"]
    equal([(k["kty"], k["alg"], k["kid"]) for k in keys],
          [("EC", "ES384", header(new)["kid"]), ("RSA", "RS256", header(old)["kid"])])
    v.end()
    v = case.start("--service-account-signing-key-file", two, "--service-account-issuer", "https://new,https://old", "--api-audiences=us")
    refusal(v, old, "[invalid bearer token, invalid signature, no keys found]")
    v.end()
    with open(two, "w", encoding="utf-8") as f:
        f.write("no key")
    r = case.run("--data-dir", case.path("other"), "--secure-port", "0", "--service-account-signing-key-file", two)
    check(r.returncode != 0, r)
    has(r.stderr, "there is no key in it")


def test_documents_for_others(case):
    v = case.start()
    make(v, ACCOUNTS, "a")
    text = token(v)
    a = use(v, text, "/.well-known/openid-configuration", "GET")
    equal([a.status, a.headers["content-type"], a.headers["cache-control"]], [200, "application/json", "public, max-age=3600"])
    equal(a.json, {"issuer": ISSUER, "jwks_uri": v.url + "/openid/v1/jwks", "response_types_supported": ["id_token"],
                   "subject_types_supported": ["public"], "id_token_signing_alg_values_supported": ["ES256"]})
    a = use(v, text, "/openid/v1/jwks", "GET")
    equal([a.status, a.headers["content-type"]], [200, "application/jwk-set+json"])
    equal([(k["kty"], k["crv"], k["use"], k["kid"]) for k in a.json["keys"]], [("EC", "P-256", "sig", header(text)["kid"])])
    equal(v.ask("/openid/v1/jwks", context=v.context()).status, 403)
    equal(v.ask("/openid/v1/jwks", "POST", body={}).status, 405)
    check("/openid/v1/jwks" in v.ask("/").json["paths"], "listed")


def test_a_request_for_a_certificate_says_who_asks(case):
    v = case.start("--authorization-mode", "AlwaysAllow")
    make(v, ACCOUNTS, "a")
    text = token(v)
    key, csr = case.path("x.key"), case.path("x.csr")
    openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key)
    openssl("req", "-new", "-key", key, "-subj", "/CN=joe", "-out", csr)
    with open(csr, "rb") as f:
        request = base64.b64encode(f.read()).decode()
    body = {"metadata": {"name": "r"}, "spec": {"request": request, "signerName": "example.com/x", "usages": ["client auth"]}}
    a = v.ask("/apis/certificates.k8s.io/v1/certificatesigningrequests", "POST", context=v.context(), body=body,
              headers={"Authorization": "Bearer " + text})
    spec = expect(a, 201)["spec"]
    equal([spec["username"], spec["extra"]], ["system:serviceaccount:default:a", {EXTRA + "credential-id": ["JTI=" + claims(text)["jti"]]}])


if __name__ == "__main__":
    main(sys.modules[__name__])
