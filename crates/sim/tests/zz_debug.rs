#![allow(clippy::unwrap_used, missing_docs, reason = "x")]
mod support;
use support::*;
use swiftwater_link::*;
use swiftwater_sim::*;
use swiftwater_units::*;
use swiftwater_quic::RetryPolicy;
#[test]
fn explore() {
    let t = std::time::Instant::now();
    let mut seed = 100_000u64;
    let mut slow = 0;
    while t.elapsed().as_secs() < 90 {
        seed += 1;
        let k = seed % 7;
        let mut l = link([2, 10, 50][(seed % 3) as usize], [1, 20, 150][(seed / 3 % 3) as usize]);
        l = l.loss(LossModel::Bernoulli([0.0, 0.05, 0.3][(seed / 9 % 3) as usize]));
        if k > 2 { l = l.jitter(Jitter::Uniform(millis(30))).duplicate(0.1).corrupt(0.05); l.jitter_reorders = seed % 2 == 0; }
        let mut pair = Pair::builder().seed(seed).link(l).cipher(if seed % 5 == 0 {Cipher::Tls} else {Cipher::Null})
            .retry(if seed % 4 == 0 {RetryPolicy::Always} else {RetryPolicy::Never})
            .both_configs(|c| { c.handshake_timeout = secs(120); c.max_idle_timeout = Some(secs(120)); c.keep_alive_interval = Some(secs(1)); if seed % 3 == 1 { c.key_update_interval = 20; } })
            .build().unwrap();
        assert!(pair.connect(), "seed {seed} connect {:?}", SIDES.map(|s| reason(&pair, s)));
        let s = pair.now();
        for d in BOTH { for _ in 0..3 { pair.start_transfer(20_000 + seed % 9999, d); } }
        for n in 0..6u16 {
            pair.advance(millis(100));
            match (seed + u64::from(n)) % 6 {
                0 => { let mut a = pair.address(Side::Client); a.set_port(2000 + n); pair.rebind(Side::Client, a).unwrap(); }
                1 => pair.client().rotate_connection_ids(),
                2 => pair.server().rotate_connection_ids(),
                3 => { pair.rebind(Side::Client, ([192,0,2,50 + n as u8], 999).into()).unwrap(); }
                4 => pair.client().update_keys(),
                _ => pair.server().update_keys(),
            }
        }
        assert!(pair.finish_transfers(), "seed {seed} finish {:?}", SIDES.map(|s| reason(&pair, s)));
        let took = pair.now() - s;
        if took > secs(40) { slow += 1; println!("SLOW seed {seed} {took:?}"); }
    }
    println!("EXPLORED {} slow {slow}", seed - 100_000);
}
