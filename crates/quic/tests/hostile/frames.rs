//! Frames that are malformed, or in the wrong place.

use swiftwater_quic::wire::Frame;
use swiftwater_units::Side;

use crate::attack::{Setup, on, on_client, on_server};

#[test]
fn well_behaved_peers_are_served() {
    for real_tls in [false, true] {
        let setup = || Setup {
            real_tls,
            ..Setup::default()
        };
        on_server(setup()).assert_alive();
        on_client(setup()).assert_alive();
    }
}

#[test]
fn ping() {
    let mut attack = on(Side::Server);
    attack.send_frames(&[Frame::Ping]);
    attack.assert_alive();
}
