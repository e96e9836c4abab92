"""client.py <kubeconfig> - list, watch, create, patch, replace, delete with the Python client."""

import sys
import threading

from kubernetes import client, config, watch
from kubernetes.client.rest import ApiException

config.load_kube_config(sys.argv[1])
core = client.CoreV1Api()
apps = client.AppsV1Api()
leases = client.CoordinationV1Api()
NS = "default"


def config_map(name, **data):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name), data=data)


def expect(status, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except ApiException as e:
        assert e.status == status, (e.status, e.body)
        return e
    raise AssertionError(f"{call.__name__} was not refused with {status}")


def lists():
    assert NS in [n.metadata.name for n in core.list_namespace().items]
    for i in range(5):
        core.create_namespaced_config_map(NS, config_map(f"page-{i}", i=str(i)))
    page = core.list_namespaced_config_map(NS, limit=2)
    names = [m.metadata.name for m in page.items]
    assert len(names) == 2 and page.metadata._continue
    while page.metadata._continue:
        page = core.list_namespaced_config_map(NS, limit=2, _continue=page.metadata._continue)
        names += [m.metadata.name for m in page.items]
    assert names == [f"page-{i}" for i in range(5)], names
    core.delete_collection_namespaced_config_map(NS)
    assert core.list_namespaced_config_map(NS).items == []


def writes():
    made = core.create_namespaced_config_map(NS, config_map("w", a="1"))
    assert made.metadata.uid and made.metadata.creation_timestamp
    expect(409, core.create_namespaced_config_map, NS, config_map("w"))
    made.data["b"] = "2"
    new = core.replace_namespaced_config_map("w", NS, made)
    assert int(new.metadata.resource_version) > int(made.metadata.resource_version)
    expect(409, core.replace_namespaced_config_map, "w", NS, made)
    patched = core.patch_namespaced_config_map("w", NS, {"data": {"a": None, "c": "3"}})
    assert patched.data == {"b": "2", "c": "3"}, patched.data
    core.delete_namespaced_config_map("w", NS)
    expect(404, core.read_namespaced_config_map, "w", NS)


def watches():
    start = core.list_namespaced_config_map(NS).metadata.resource_version
    seen = []
    stream = watch.Watch()

    def follow():
        for event in stream.stream(core.list_namespaced_config_map, NS, resource_version=start,
                                   timeout_seconds=120):
            seen.append((event["type"], event["object"].metadata.name))
            if event["type"] == "DELETED":
                stream.stop()

    thread = threading.Thread(target=follow)
    thread.start()
    core.create_namespaced_config_map(NS, config_map("v", a="1"))
    core.patch_namespaced_config_map("v", NS, {"data": {"a": "2"}})
    core.delete_namespaced_config_map("v", NS)
    thread.join(120)
    assert seen == [("ADDED", "v"), ("MODIFIED", "v"), ("DELETED", "v")], seen
    assert int(stream.resource_version) > int(start)


def other_kinds():
    labels = {"app": "py"}
    template = client.V1PodTemplateSpec(
        metadata=client.V1ObjectMeta(labels=labels),
        spec=client.V1PodSpec(containers=[client.V1Container(name="c", image="i:1")]))
    spec = client.V1DeploymentSpec(selector=client.V1LabelSelector(match_labels=labels),
                                   template=template, replicas=1)
    apps.create_namespaced_deployment(
        NS, client.V1Deployment(metadata=client.V1ObjectMeta(name="py"), spec=spec))
    container = {"name": "c", "image": "i:2"}
    patched = apps.patch_namespaced_deployment(
        "py", NS, {"spec": {"template": {"spec": {"containers": [container]}}}})
    assert patched.spec.template.spec.containers[0].image == "i:2"
    scale = apps.read_namespaced_deployment_scale("py", NS)
    scale.spec.replicas = 4
    apps.replace_namespaced_deployment_scale("py", NS, scale)
    assert apps.read_namespaced_deployment("py", NS).spec.replicas == 4
    apps.delete_namespaced_deployment("py", NS)
    lease = client.V1Lease(metadata=client.V1ObjectMeta(name="l"),
                           spec=client.V1LeaseSpec(holder_identity="me"))
    leases.create_namespaced_lease(NS, lease)
    assert leases.read_namespaced_lease("l", NS).spec.holder_identity == "me"
    assert client.VersionApi().get_code().major == "1"


for step in (lists, writes, watches, other_kinds):
    step()
    print("--", step.__name__)
print("the Python client does its work")
