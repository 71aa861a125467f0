#![allow(clippy::unwrap_used, reason = "x")]
mod support;
use support::*;
use swiftwater_link::*;
use swiftwater_sim::*;
use swiftwater_units::*;
use swiftwater_quic::RetryPolicy;
#[test]
fn heavy() {
    let seed = 21;
    let w = SIDES.map(Watch::new);
    let [f0, f1] = [w[0].factory(), w[1].factory()];
        let mut pair = Pair::builder()
            .seed(seed)
            .cipher(Cipher::Null)
            .link(link(20, 20).loss(LossModel::Bernoulli(0.3)))
            .retry([RetryPolicy::Never, RetryPolicy::Always][usize::from(seed % 3 == 0)])
            .both_configs(|config| config.handshake_timeout = secs(60))
            .client_config(|c| c.observer = Some(f0)).server_config(|c| c.observer = Some(f1))
            .log(LogDetail { entries: true, content: false })
            .build()
            .unwrap();
    println!("Z {}", pair.connect());
    println!("Z connected {}", pair.now());
    let n = pair.log().unwrap().entries().len();
    for d in BOTH { pair.start_transfer(30_000, d); }
    println!("Z {} {}", pair.finish_transfers(), pair.now());
    for (w, s) in w.iter().zip(SIDES) { println!("Z {s:?} {:?}", w.notes().probe_timeouts); }
    let _ = n;
    let up = pair.link(Direction::ToServer);
    for e in pair.log().unwrap().entries() { if e.fate != LogFate::Arrived { println!("L {} {} {} {:?}", e.at, if e.link == up {"up"} else {"down"}, e.size, e.fate); } else { println!("L {} arrived {} {}", e.at, if e.link == up {"up"} else {"down"}, e.size); } }
}
