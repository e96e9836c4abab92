"""roundtrip.py <kubeconfig> <examples> - objects of every kind, one JSON per line, there and back with
the Python client. Each is created from YAML, read as JSON and as YAML, which must say the same, made into
the client's own model, and replaced by what the model says: the server must find nothing new in it."""

import json
import re
import sys

import yaml
from kubernetes import client, config, dynamic
from kubernetes.client.rest import ApiException

KINDS_MIN = 50  # fewer would mean that the examples are not what they were
config.load_kube_config(sys.argv[1])
own = client.Configuration.get_default_copy()
own.client_side_validation = False  # answers have null where models want something
api = client.ApiClient(own)
resources = dynamic.DynamicClient(api).resources


class Answer:
    def __init__(self, data):
        self.data = data


def call(method, path, accept="application/json", body=None, content_type="application/json"):
    try:
        r = api.call_api(path, method, body=body, auth_settings=["BearerToken"], _preload_content=False,
                         header_params={"Accept": accept, "Content-Type": content_type})
    except ApiException as e:
        sys.exit(f"{method} {path}: {e.status} {e.body}")
    return r.data.decode()


def model_of(obj):
    """The name of the client's class, or None."""
    group, _, version = obj["apiVersion"].rpartition("/")
    prefix = version.upper()
    names = [prefix + obj["kind"], (group.split(".")[0].capitalize() or "Core") + prefix + obj["kind"]]
    return next((n for n in names if hasattr(client.models, n)), None)


def with_fractions(sent, before):
    """The client writes times of whole seconds without a fraction, also where one must be."""
    if isinstance(sent, dict) and isinstance(before, dict):
        return {k: with_fractions(v, before.get(k)) for k, v in sent.items()}
    if isinstance(sent, list) and isinstance(before, list):
        return [with_fractions(v, b) for v, b in zip(sent, before)]
    is_micro = isinstance(before, str) and re.fullmatch(r"\S+T\S+\.\d{6}Z", before)
    return before if is_micro else sent


def round_trip(obj):
    resource = resources.get(api_version=obj["apiVersion"], kind=obj["kind"])
    path = resource.path(namespace="default") if resource.namespaced else resource.path()
    text = yaml.dump(obj, Dumper=Quoted)
    made = json.loads(call("POST", path, body=text, content_type="application/yaml"))
    if "get" not in resource.verbs:
        return False
    path += "/" + made["metadata"]["name"]
    raw = call("GET", path)
    assert yaml.load(call("GET", path, "application/yaml"), Plain) == json.loads(raw), path
    model = model_of(obj)
    assert model, obj["kind"]
    before = json.loads(raw)
    sent = with_fractions(api.sanitize_for_serialization(api.deserialize(Answer(raw), model)), before)
    back = json.loads(call("PUT", path, body=sent))
    assert back == before, f"{path}\n was {before}\n is  {back}"
    call("DELETE", path)
    return True


class Quoted(yaml.SafeDumper):
    """Texts in quotes: Go takes a bare n for false, PyYAML does not."""


Quoted.add_representer(str, lambda d, s: d.represent_scalar("tag:yaml.org,2002:str", s, style='"'))


class Plain(yaml.SafeLoader):
    """Times stay texts, as in JSON."""


Plain.yaml_implicit_resolvers = {
    k: [(tag, r) for tag, r in v if tag != "tag:yaml.org,2002:timestamp"]
    for k, v in yaml.SafeLoader.yaml_implicit_resolvers.items()}


def main():
    kinds, n = set(), 0
    with open(sys.argv[2], encoding="utf-8") as f:
        for line in f:
            obj = json.loads(line)
            if round_trip(obj):
                kinds.add((obj["apiVersion"], obj["kind"]))
                n += 1
    assert len(kinds) >= KINDS_MIN, len(kinds)
    print(f"{n} objects of {len(kinds)} kinds go there and back with Python")


main()
