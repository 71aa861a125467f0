//! Messages of SOCKS, without a network.

use std::net::IpAddr;

use proptest::prelude::*;
use swiftwater_tunnel::client::socks::message::{
    Address, Command, Greeting, MessageError, Reply, SocksRequest, UdpMessage,
};

#[test]
fn messages_of_socks() {
    let mut bytes = &[5, 2, 2, 0, 5, 1, 0, 3, 1, b'a', 1, 187, b'x'][..];
    let greeting = Greeting::decode(&mut bytes).unwrap();
    assert_eq!(greeting.answer(), [5, 0]);
    let request = SocksRequest::decode(&mut bytes).unwrap();
    assert_eq!(request.command, Command::Connect);
    assert_eq!(request.address.target(), Ok("a:443".parse().unwrap()));
    assert_eq!(bytes, b"x");
    assert_eq!(
        Reply::HostUnreachable.encode("[::1]:258".parse().unwrap()),
        [&[5, 4, 0, 4][..], &[0; 15], &[1, 1, 2]].concat()
    );
    let name = Address::Name("ä".into(), 443);
    assert_eq!(name.target(), Err(MessageError::Name));
}

/// A host and a port as SOCKS has them.
fn address() -> impl Strategy<Value = Address> {
    let ip = any::<(IpAddr, u16)>().prop_map(|address| Address::Ip(address.into()));
    let name = (prop::collection::vec(any::<u8>(), 0..=255), any::<u16>());
    prop_oneof![ip, name.prop_map(|(name, port)| Address::Name(name, port))]
}

proptest! {
    #[test]
    fn datagrams_of_socks_decode_to_what_was_encoded(
        address in address(),
        fragment: u8,
        payload in prop::collection::vec(any::<u8>(), 0..2000),
    ) {
        let message = UdpMessage { fragment, address, payload: &payload };
        let encoded = message.encode();
        prop_assert_eq!(UdpMessage::decode(&encoded), Ok(message));
    }

    #[test]
    fn requests_of_socks_come_in_any_pieces(address in address(), command: u8, rest: [u8; 3]) {
        let datagram = UdpMessage { fragment: 0, address: address.clone(), payload: &rest }.encode();
        let bytes = [&[5, command, 0], &datagram[3..]].concat();
        let len = bytes.len() - rest.len();
        for cut in 0..len {
            let decoded = SocksRequest::decode(&mut &bytes[..cut]);
            prop_assert_eq!(decoded, Err(MessageError::Incomplete));
        }
        let mut left = &bytes[..];
        prop_assert_eq!(SocksRequest::decode(&mut left).unwrap().address, address);
        prop_assert_eq!(left, rest);
    }

    #[test]
    fn any_bytes_are_no_panic_in_socks(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut left = &bytes[..];
        if Greeting::decode(&mut left).is_ok() {
            prop_assert!(left.len() < bytes.len());
        }
        let _ = SocksRequest::decode(&mut left).map(|request| request.address.target());
        let _ = UdpMessage::decode(&bytes);
    }
}
