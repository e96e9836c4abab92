// informer.mjs <kubeconfig> - an informer on config maps that prints what it is told, and a writer
// that takes one command per line: create NAME VALUE, patch NAME VALUE, delete NAME, lists.
import * as k8s from "@kubernetes/client-node";
import readline from "node:readline";

const kc = new k8s.KubeConfig();
kc.loadFromFile(process.argv[2]);
const api = kc.makeApiClient(k8s.CoreV1Api);
const namespace = "default";

let lists = 0;
const list = () => {
    lists++;
    return api.listNamespacedConfigMap({ namespace });
};
const informer = k8s.makeInformer(kc, `/api/v1/namespaces/${namespace}/configmaps`, list);
const say = (what) => (o) => console.log(what, o.metadata.name, o.data?.v ?? "");
informer.on("add", say("add"));
informer.on("update", say("update"));
informer.on("delete", (o) => console.log("delete", o.metadata.name));
informer.on("error", (e) => {
    console.error("error", e?.message ?? e);
    setTimeout(() => informer.start(), 100);
});
await informer.start();

const commands = {
    create: (name, v) =>
        api.createNamespacedConfigMap({ namespace, body: { metadata: { name }, data: { v } } }),
    patch: (name, v) =>
        api.patchNamespacedConfigMap(
            { namespace, name, body: { data: { v } } },
            k8s.setHeaderOptions("Content-Type", k8s.PatchStrategy.MergePatch),
        ),
    delete: (name) => api.deleteNamespacedConfigMap({ namespace, name }),
    lists: () => console.log("lists", lists),
};
for await (const line of readline.createInterface({ input: process.stdin })) {
    const [verb, ...args] = line.split(" ");
    try {
        await commands[verb](...args);
    } catch (e) {
        console.error(line, e?.body ?? e);
    }
}
process.exit(0);
