//! What a local program sends to the SOCKS server of a tunnel's client, in any pieces: a message that is complete is
//! the same with more bytes after it, and incomplete with fewer; datagrams survive a round trip.
#![no_main]

use libfuzzer_sys::fuzz_target;
use swiftwater_tunnel::client::socks::message::{Greeting, MessageError, SocksRequest, UdpMessage};

fn check<T: PartialEq + std::fmt::Debug>(
    bytes: &[u8],
    decode: impl Fn(&mut &[u8]) -> Result<T, MessageError>,
) {
    let mut left = bytes;
    let Ok(message) = decode(&mut left) else {
        return;
    };
    let used = bytes.len() - left.len();
    assert_eq!(decode(&mut &bytes[..used]), Ok(message));
    for cut in 0..used {
        assert_eq!(decode(&mut &bytes[..cut]), Err(MessageError::Incomplete));
    }
}

fuzz_target!(|bytes: &[u8]| {
    check(bytes, Greeting::decode);
    check(bytes, SocksRequest::decode);
    if let Ok(request) = SocksRequest::decode(&mut &*bytes)
        && let Ok(target) = request.address.target()
    {
        assert_eq!(target.to_string().parse(), Ok(target));
    }
    if let Ok(message) = UdpMessage::decode(bytes) {
        let again = message.encode();
        assert_eq!(UdpMessage::decode(&again), Ok(message));
    }
});
