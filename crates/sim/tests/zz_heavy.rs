#![allow(clippy::unwrap_used, reason = "x")]
mod support;
use support::*;
use swiftwater_link::*;
use swiftwater_sim::*;
#[test]
fn heavy() {
  for (keep, rtt) in [(None, 20), (Some(secs(1)), 20), (Some(secs(1)), 150)] {
    let mut all = Vec::new();
    for seed in 0..2500 {
        let mut pair = Pair::builder().seed(seed).link(link(20, rtt).loss(LossModel::Bernoulli(0.3)))
            .both_configs(|c| { c.handshake_timeout = secs(120); c.max_idle_timeout = Some(secs(200)); c.keep_alive_interval = keep; })
            .build().unwrap();
        if !pair.connect() { all.push(999.0); continue; }
        for d in BOTH { pair.start_transfer(30_000, d); }
        if !pair.finish_transfers() { all.push(998.0); continue; }
        all.push(pair.now().as_secs_f64());
    }
    all.sort_by(f64::total_cmp);
    println!("Z {keep:?} {rtt} mean {:.3} p50 {:.2} p90 {:.2} p99 {:.2} max {:.1}", all.iter().sum::<f64>() / all.len() as f64, all[1250], all[2250], all[2475], all[2499]);
  }
}
