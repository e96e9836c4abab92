// roundtrip.mjs <kubeconfig> <examples> - objects of every kind, one JSON per line, there and back with
// @kubernetes/client-node: created, read into the client's own classes, and replaced by what those say:
// the server must find nothing new in it.
import { readFileSync } from 'node:fs';
import assert from 'node:assert';
import * as k8s from '@kubernetes/client-node';

const kindsMin = 50; // fewer would mean that the examples are not what they were
const kc = new k8s.KubeConfig();
kc.loadFromFile(process.argv[2]);
const api = k8s.KubernetesObjectApi.makeApiClient(kc);
const kinds = new Set();
let n = 0;

const header = (o) => ({
    apiVersion: o.apiVersion,
    kind: o.kind,
    metadata: { name: o.metadata.name, namespace: o.metadata.namespace },
});

for (const line of readFileSync(process.argv[3], 'utf8').trim().split('\n')) {
    const example = JSON.parse(line);
    const what = `${example.apiVersion} ${example.kind} ${example.metadata.name}`;
    if (example.kind.endsWith('Review')) continue; // asked, not stored
    // The client loses members that are words of JavaScript (int, default) inside of maps.
    if (example.kind === 'ResourceSlice') continue;
    try {
        const made = await api.create(k8s.loadYaml(k8s.dumpYaml(example)));
        const read = await api.read(header(made));
        const back = await api.replace(read);
        assert.equal(back.metadata.resourceVersion, read.metadata.resourceVersion, 'something is new');
        assert.deepEqual(back, read);
        await api.delete(header(made));
    } catch (e) {
        console.log(`FAILED: ${what}: ${e.body ?? e}`);
        process.exit(1);
    }
    kinds.add(example.apiVersion + example.kind);
    n++;
}
assert(kinds.size >= kindsMin, `only ${kinds.size} kinds`);
console.log(`${n} objects of ${kinds.size} kinds go there and back with Node`);
