//! kube-rs's queue alone (kube::runtime::scheduler): 1M distinct keys, half of them asked for twice.
//! One worker by design.
use bench_rs::cpu;
use futures::{StreamExt, channel::mpsc};
use kube::runtime::scheduler::{ScheduleRequest, scheduler};
use std::time::Instant;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let n: usize = std::env::args()
        .skip_while(|a| a != "-n")
        .nth(1)
        .map_or(1_000_000, |v| v.parse().expect("-n takes a number"));
    let keys: Vec<String> = (0..n)
        .map(|i| format!("namespace-{:02}/deployment-name-{:06x}-{:05}", i % 50, i * 7919 % (1 << 24), i))
        .collect();
    let (tx, rx) = mpsc::unbounded();
    let mut queue = Box::pin(scheduler(rx));
    let (t0, c0) = (Instant::now(), cpu());
    let mut adds = 0;
    let mut add = |k: &String| {
        tx.unbounded_send(ScheduleRequest { message: k.clone(), run_at: tokio::time::Instant::now() })
            .expect("the queue is there");
        adds += 1;
    };
    for (i, k) in keys.iter().enumerate() {
        add(k);
        if i % 2 == 1 {
            add(&keys[i / 2]);
        }
    }
    let t1 = t0.elapsed().as_secs_f64();
    let mut gets = 0;
    while gets < n && queue.next().await.is_some() {
        gets += 1;
    }
    let (wall, used) = (t0.elapsed().as_secs_f64(), cpu() - c0);
    let figures = serde_json::json!({
        "peer": "kube-rs-scheduler",
        "workers": 1,
        "concurrent": false,
        "adds": adds,
        "gets": gets,
        "adds_per_s": (adds as f64 / t1).round(),
        "getdones_per_s": (gets as f64 / (wall - t1)).round(),
        "total_wall_s": wall,
        "cpu_s": used,
        "ns_cpu_per_key": (used / n as f64 * 1e9).round(),
    });
    println!("{figures}");
}
