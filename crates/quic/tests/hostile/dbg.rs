use std::time::Duration;
use crate::attack::*;
use crate::peer::*;
#[test]
fn dbg() {
    let mut lone = client_victim(Setup::default());
    let r = RawPeer::retry(&*lone.crypto.primitives(), &lone.first, cid(b"retrycid"), b"token");
    let second = lone.hear(&r);
    let mut attack = lone.meet(&second[0], true);
    attack.converse();
    for p in &attack.peer.packets { println!("{:?} {} dst {:?} {:?}", p.epoch, p.number, p.dst, p.frames().map(|f| f.1).map(|f| format!("{f:.60?}").chars().take(60).collect::<String>()).collect::<Vec<_>>()); }
    println!("{} unopened; {:?}", attack.peer.unopened, attack.victim.events);
    attack.send_frames(&[swiftwater_quic::wire::Frame::HandshakeDone]);
    println!("{:?}", attack.victim.connection().stats());
    attack.pass(Duration::from_millis(50));
    println!("{:?}", attack.victim.events);
}
