//! The reconciler of lua/recon.lua with kube-rs: one write per object.
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, Config, ResourceExt,
    api::{Patch, PatchParams},
    config::{KubeConfigOptions, Kubeconfig},
    runtime::{
        Controller,
        controller::{self, Action},
        watcher,
    },
};
use std::{sync::Arc, time::Duration};

fn arg(name: &str, otherwise: &str) -> String {
    std::env::args().skip_while(|a| a != name).nth(1).unwrap_or(otherwise.into())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let in_flight = arg("--in-flight", "1").parse::<u16>()?;
    let kubeconfig = Kubeconfig::read_from(arg("--kubeconfig", ""))?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let maps: Api<ConfigMap> = Api::namespaced(Client::try_from(config)?, "bench");
    Controller::new(maps.clone(), watcher::Config::default())
        .with_config(controller::Config::default().concurrency(in_flight))
        .run(
            |o: Arc<ConfigMap>, maps: Arc<Api<ConfigMap>>| async move {
                let ours = o.labels().get("bench").is_some_and(|v| v == "reconcile");
                if ours && o.data.as_ref().is_none_or(|d| !d.contains_key("done")) {
                    let body = serde_json::json!({"data": {"done": "1"}});
                    maps.patch(&o.name_any(), &PatchParams::default(), &Patch::Merge(&body)).await?;
                }
                Ok::<_, kube::Error>(Action::await_change())
            },
            |_, _, _| Action::requeue(Duration::from_millis(5)),
            Arc::new(maps),
        )
        .for_each(|_| futures::future::ready(()))
        .await;
    Ok(())
}
