//! What bench/calls.c measures, with kube-rs's typed Api.
use bench_rs::cpu;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, Config,
    api::{Patch, PatchParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const OBJECTS: u64 = 100;

fn arg(name: &str, otherwise: &str) -> String {
    std::env::args().skip_while(|a| a != name).nth(1).unwrap_or(otherwise.into())
}

/// TCP sockets of this process that are connected now.
fn connections() -> usize {
    let mine: Vec<String> = std::fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .filter_map(|e| std::fs::read_link(e.ok()?.path()).ok())
        .filter_map(|p| Some(p.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_string()))
        .collect();
    let text = std::fs::read_to_string("/proc/self/net/tcp").unwrap_or_default();
    text.lines()
        .map(|l| l.split_whitespace().collect::<Vec<_>>())
        .filter(|f| f.len() > 9 && f[3] == "01" && mine.iter().any(|m| m == f[9]))
        .count()
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mode = arg("--mode", "get");
    let in_flight = arg("--in-flight", "1").parse::<usize>()?;
    let requests = arg("--requests", "1000").parse::<u64>()?;
    let kubeconfig = Kubeconfig::read_from(arg("--kubeconfig", ""))?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let maps: Api<ConfigMap> = Api::namespaced(Client::try_from(config)?, "bench");
    if mode == "rotate" {
        let seconds = arg("--seconds", "60").parse::<f64>()?;
        let (began, mut good, mut gap, mut failures) = (Instant::now(), Instant::now(), Duration::ZERO, 0);
        while began.elapsed().as_secs_f64() < seconds {
            match maps.get("c-0").await {
                Ok(_) => {
                    gap = gap.max(good.elapsed());
                    good = Instant::now();
                }
                Err(_) => failures += 1,
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let figures = serde_json::json!({
            "peer": "kube-rs",
            "mode": mode,
            "failures": failures,
            "longest_gap_ms": gap.max(good.elapsed()).as_secs_f64() * 1e3,
        });
        println!("{figures}");
        return Ok(());
    }
    maps.get("c-0").await?; // the connection is there, as in ours after discovery
    let next = Arc::new(AtomicU64::new(0));
    let (t0, c0) = (Instant::now(), cpu());
    let tasks: Vec<_> = (0..in_flight)
        .map(|_| {
            let (maps, next, patch) = (maps.clone(), next.clone(), mode == "patch");
            tokio::spawn(async move {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= requests {
                        return anyhow::Ok(());
                    }
                    let name = format!("c-{}", i % OBJECTS);
                    if patch {
                        let body = serde_json::json!({"data": {"count": i.to_string()}});
                        maps.patch(&name, &PatchParams::default(), &Patch::Merge(&body)).await?;
                    } else {
                        maps.get(&name).await?;
                    }
                }
            })
        })
        .collect();
    for t in tasks {
        t.await??;
    }
    let (wall, used) = (t0.elapsed().as_secs_f64(), cpu() - c0);
    let figures = serde_json::json!({
        "peer": "kube-rs",
        "mode": mode,
        "in_flight": in_flight,
        "requests_per_s": requests as f64 / wall,
        "cpu_us": used / requests as f64 * 1e6,
        "connections": connections(),
    });
    println!("{figures}");
    Ok(())
}
