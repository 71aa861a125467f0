mod support;
use support::*;
use swiftwater_sim::*;
use swiftwater_units::*;
#[test]
fn outage() {
    let watch = Watch::new(Side::Client);
    let factory = watch.factory();
    let mut pair = Pair::builder()
        .link(link(10, 20))
        .client_config(|config| config.observer = factory)
        .build()
        .unwrap();
    assert!(pair.connect());
    pair.start_transfer(2_000_000, Direction::ToServer);
    let outage = pair.now() + millis(500);
    black_out(&mut pair, outage, secs(3));
    pair.advance(millis(499));
    println!("{:?}", path(&pair, Side::Client));
    assert!(pair.finish_transfers());
    println!("{:?}", path(&pair, Side::Client));
    let n = watch.notes();
    println!("{outage:?} PTO {:?}\nLOST {:?}", n.probe_timeouts, n.lost);
    println!("sent {:?}", n.sent.iter().enumerate().filter(|(_,(a,_))| *a>outage - millis(1) && *a < outage + secs(4)).take(50).collect::<Vec<_>>());
    println!("cwnd {:?}", n.cwnd.iter().filter(|(a,_)| *a>outage).step_by(20).take(40).collect::<Vec<_>>());
}
