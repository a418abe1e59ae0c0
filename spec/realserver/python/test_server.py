"""A test in Python: the official client against a server of its own. Run by
spec/e2e/python_client_spec.lua."""

import os
import subprocess
import tempfile
import unittest

from kubernetes import client, config, dynamic, watch

KUBELUA = os.environ.get("KUBELUA", "kubelua")


class WithServer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if "KUBECONFIG" in os.environ:  # one that is there
            cls.server = None
            config.load_kube_config()
            return
        kubeconfig = os.path.join(tempfile.mkdtemp(), "kubeconfig")
        cls.server = subprocess.Popen(
            [KUBELUA, "apiserver", "--listen", "127.0.0.1:0", "--write-kubeconfig", kubeconfig],
            stdout=subprocess.PIPE, text=True)
        assert cls.server.stdout.readline().startswith("serving ")  # from here on it answers
        config.load_kube_config(kubeconfig)

    @classmethod
    def tearDownClass(cls):
        if cls.server:
            cls.server.terminate()
            cls.server.wait()
            cls.server.stdout.close()

    def setUp(self):
        self.v1 = client.CoreV1Api()
        self.ns = self.v1.create_namespace({"metadata": {"generateName": "python-"}}).metadata.name

    def tearDown(self):
        self.v1.delete_namespace(self.ns)

    def test_objects(self):
        card = self.v1.create_namespaced_config_map(self.ns, {"metadata": {"name": "a"}, "data": {"k": "1"}})
        with self.assertRaises(client.ApiException) as again:
            self.v1.create_namespaced_config_map(self.ns, {"metadata": {"name": "a"}})
        self.assertEqual((again.exception.status, again.exception.reason), (409, "Conflict"))
        card.data["k"] = "2"
        self.v1.replace_namespaced_config_map("a", self.ns, card)
        with self.assertRaises(client.ApiException) as old:
            card.data["k"] = "3"
            self.v1.replace_namespaced_config_map("a", self.ns, card)
        self.assertEqual(old.exception.status, 409)
        patched = self.v1.patch_namespaced_config_map("a", self.ns, {"data": {"more": "yes"}})
        self.assertEqual(patched.data, {"k": "2", "more": "yes"})
        names = [m.metadata.name for m in self.v1.list_namespaced_config_map(self.ns).items]
        self.assertEqual([n for n in names if n == "a"], ["a"])
        self.v1.delete_namespaced_config_map("a", self.ns)

    def test_status_and_scale(self):
        apps = client.AppsV1Api()
        labels = {"app": "a"}
        made = apps.create_namespaced_deployment(self.ns, client.V1Deployment(
            metadata=client.V1ObjectMeta(name="a"),
            spec=client.V1DeploymentSpec(
                selector=client.V1LabelSelector(match_labels=labels),
                template=client.V1PodTemplateSpec(
                    metadata=client.V1ObjectMeta(labels=labels),
                    spec=client.V1PodSpec(containers=[client.V1Container(name="a", image="a")])))))
        self.assertEqual(made.spec.strategy.type, "RollingUpdate")
        apps.patch_namespaced_deployment_scale("a", self.ns, {"spec": {"replicas": 4}})
        apps.patch_namespaced_deployment_status("a", self.ns, {"status": {"replicas": 2}})
        now = apps.read_namespaced_deployment("a", self.ns)
        self.assertEqual((now.spec.replicas, now.status.replicas, now.metadata.generation), (4, 2, 2))

    def test_watch(self):
        start = self.v1.list_namespaced_config_map(self.ns).metadata.resource_version
        self.v1.create_namespaced_config_map(self.ns, {"metadata": {"name": "b"}})
        self.v1.patch_namespaced_config_map("b", self.ns, {"data": {"k": "1"}})
        self.v1.delete_namespaced_config_map("b", self.ns)
        seen = []
        w = watch.Watch()
        for event in w.stream(self.v1.list_namespaced_config_map, self.ns, resource_version=start,
                              field_selector="metadata.name=b", timeout_seconds=60):
            seen.append(event["type"])
            if event["type"] == "DELETED":
                w.stop()
        self.assertEqual(seen, ["ADDED", "MODIFIED", "DELETED"])

    def test_dynamic_apply(self):
        found = dynamic.DynamicClient(client.ApiClient()).resources.get(api_version="v1", kind="Secret")
        made = found.server_side_apply(
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "c"}, "data": {"k": "dg=="}},
            name="c", namespace=self.ns, field_manager="python")
        self.assertEqual(made.metadata.managedFields[0].manager, "python")
        self.assertEqual(made.type, "Opaque")


if __name__ == "__main__":
    unittest.main()
