//! Fingerprints of many short runs: every datagram on every link with its time, its fate and its
//! bytes, and the report. Two builds that print the same simulate the same, bit for bit.
//!
//! `cargo run --release -p swiftwater-sim --example fingerprints`

use std::error::Error;
use std::time::Duration;

use swiftwater_link::{Buffer, Jitter, Rate};
use swiftwater_sim::{Cipher, Dumbbell, FlowSpec, LogDetail};
use swiftwater_units::Bandwidth;

fn main() -> Result<(), Box<dyn Error>> {
    for controller in swiftwater_congestion::names() {
        for (flows, seconds) in [(1, 4), (5, 2)] {
            print(&controller, &plain(&controller, flows, seconds)?)?;
        }
    }
    for flows in [40, 200] {
        print("crowd", &plain("cubic", flows, 2)?)?;
    }
    for queue in ["red", "codel", "fq_codel", "dualpi2"] {
        let run = Dumbbell {
            queue: queue.parse()?,
            ..plain("cubic", 3, 3)?
        };
        print(queue, &run)?;
    }
    for loss in ["0.01", "0.05", "ge:0.01,0.3,0,1", "ge:0.02,0.5,0.1,1@30ms"] {
        let run = Dumbbell {
            loss: loss.parse()?,
            ..plain("bbr3", 2, 3)?
        };
        print(loss, &run)?;
    }
    let jitter = Dumbbell {
        jitter: Jitter::Uniform(Duration::from_millis(3)),
        ..plain("newreno", 2, 3)?
    };
    print("jitter", &jitter)?;
    let fast = Dumbbell {
        rate: Rate::Constant(Bandwidth::from_mbps(900)),
        rtt: Duration::from_millis(3),
        ..plain("cubic", 4, 1)?
    };
    print("fast", &fast)?;
    let unlimited = Dumbbell {
        rate: Rate::Unlimited,
        buffer: Buffer::Unlimited,
        ..plain("cubic", 2, 1)?
    };
    print("unlimited", &unlimited)?;
    let mut finite = plain("cubic", 0, 20)?;
    finite.flows = (0..30)
        .map(|flow| {
            let spec = FlowSpec::new("cubic")?.bytes(10_000 << (flow % 9));
            Ok(spec.start(Duration::from_millis(flow * 100)))
        })
        .collect::<Result<_, Box<dyn Error>>>()?;
    print("finite", &finite)?;
    let real = Dumbbell {
        cipher: Cipher::Tls,
        ..plain("cubic", 3, 2)?
    };
    print("tls", &real)
}

fn plain(controller: &str, flows: usize, seconds: u64) -> Result<Dumbbell, Box<dyn Error>> {
    Ok(Dumbbell {
        flows: vec![FlowSpec::new(controller)?; flows],
        duration: Duration::from_secs(seconds),
        seed: 7 + flows as u64,
        ..Dumbbell::default()
    })
}

fn print(name: &str, dumbbell: &Dumbbell) -> Result<(), Box<dyn Error>> {
    let mut run = dumbbell.build()?;
    run.network().start_log(LogDetail {
        entries: false,
        // TLS makes fresh random keys.
        content: dumbbell.cipher == Cipher::Null,
    });
    run.advance_to(run.end());
    let report = serde_json::to_string(&run.report())?;
    // FNV-1a: simple, and collision resistance is not needed.
    let sum = report.bytes().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let tasks = run.network().stats().tasks;
    let flows = dumbbell.flows.len();
    if let Some(log) = run.network().log() {
        let (lines, digest) = (log.len(), log.digest());
        println!("{name:<24} {flows:>4} {lines:>9} {digest:016x} {sum:016x} {tasks:>9}");
    }
    Ok(())
}
