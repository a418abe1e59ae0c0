//! What every Rust peer measures: CPU seconds of the process, and its memory.

/// User + system seconds of the whole process.
pub fn cpu() -> f64 {
    unsafe {
        let mut r: libc::rusage = std::mem::zeroed();
        libc::getrusage(0, &mut r);
        (r.ru_utime.tv_sec + r.ru_stime.tv_sec) as f64
            + (r.ru_utime.tv_usec + r.ru_stime.tv_usec) as f64 / 1e6
    }
}

/// A field of /proc/self/status in MB: `VmRSS:`, `VmHWM:`.
pub fn vm(k: &str) -> f64 {
    let s = std::fs::read_to_string("/proc/self/status").unwrap();
    let l = s.lines().find(|l| l.starts_with(k)).unwrap();
    (l.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0 * 10.0).round() / 10.0
}
