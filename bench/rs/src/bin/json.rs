//! json pod|value FILE: serde_json alone, on a whole list; the best of three passes.
use bench_rs::{cpu, vm};
use k8s_openapi::{List, api::core::v1::Pod};

fn pass<T>(decode: impl Fn() -> T) -> (f64, T) {
    let c = cpu();
    let kept = decode();
    (cpu() - c, kept)
}

fn report<T>(peer: &str, mb: f64, decode: impl Fn() -> T) {
    let (mut best, mut first) = (f64::MAX, 0.0);
    let mut rss = 0.0;
    for i in 0..3 {
        let (s, kept) = pass(&decode);
        if i == 0 {
            first = s;
            rss = vm("VmRSS:");
        }
        best = best.min(s);
        drop(kept);
    }
    let figures = serde_json::json!({
        "peer": peer,
        "mb": mb,
        "s": best,
        "first_s": first,
        "mb_s": mb / best,
        "rss_mb_parsed": rss,
        "hwm_mb": vm("VmHWM:"),
    });
    println!("{figures}");
}

fn main() {
    let a: Vec<String> = std::env::args().collect();
    let text = std::fs::read(&a[2]).expect("the list");
    let mb = text.len() as f64 / 1e6;
    match a[1].as_str() {
        "pod" => report("serde_json List<Pod>", mb, || {
            serde_json::from_slice::<List<Pod>>(&text).expect("a list of pods")
        }),
        "value" => report("serde_json Value", mb, || {
            serde_json::from_slice::<serde_json::Value>(&text).expect("JSON")
        }),
        x => panic!("pod or value, not {x}"),
    }
}
