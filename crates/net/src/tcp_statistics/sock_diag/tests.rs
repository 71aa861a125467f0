use std::num::NonZeroI32;

use netlink_packet_core::{DefaultNla, ErrorMessage};
use netlink_packet_sock_diag::inet::InetResponseHeader;
use proptest::prelude::*;

use super::*;

const LOCAL: &str = "192.0.2.1:50000";
const REMOTE: &str = "198.51.100.7:443";
const SEQUENCE_NUMBER: u32 = 7;

fn connection() -> Connection {
    Connection::between(LOCAL.parse().unwrap(), REMOTE.parse().unwrap()).unwrap()
}

fn bytes(sequence_number: u32, payload: NetlinkPayload<SockDiagMessage>) -> Vec<u8> {
    let mut header = NetlinkHeader::default();
    header.sequence_number = sequence_number;
    let mut message = NetlinkMessage::new(header, payload);
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    bytes
}

/// The kernel's description of the connection from `LOCAL` to `remote`; `length` bytes of `tcp_info`,
/// which has 0x01 in each.
fn description(sequence_number: u32, remote: &str, length: usize) -> Vec<u8> {
    let (local, remote): (SocketAddr, SocketAddr) =
        (LOCAL.parse().unwrap(), remote.parse().unwrap());
    let header = InetResponseHeader {
        family: AF_INET,
        state: 1,
        timer: None,
        socket_id: SocketId {
            source_port: local.port(),
            destination_port: remote.port(),
            source_address: local.ip(),
            destination_address: remote.ip(),
            interface_id: 0,
            cookie: [1; 8],
        },
        recv_queue: 0,
        send_queue: 0,
        uid: 0,
        inode: 0,
    };
    let info = DefaultNla::new(2, vec![1; length]);
    let nlas = [Nla::Other(info)].into_iter().collect();
    let response = InetResponse { header, nlas };
    let response = SockDiagMessage::InetResponse(Box::new(response));
    bytes(sequence_number, response.into())
}

fn error(code: i32) -> Vec<u8> {
    let mut error = ErrorMessage::default();
    error.code = NonZeroI32::new(code);
    error.header = vec![0; 16];
    bytes(SEQUENCE_NUMBER, NetlinkPayload::Error(error))
}

fn read(message: &[u8]) -> Reply {
    connection().read(message, SEQUENCE_NUMBER)
}

#[test]
fn a_description_is_read_whatever_newer_kernels_add() {
    for length in [232, 280, 1000] {
        let reply = read(&description(SEQUENCE_NUMBER, REMOTE, length));
        let Reply::Statistics(Some(statistics)) = reply else {
            panic!("{length}: {reply:?}");
        };
        assert_eq!(statistics.data_segments_received, 0x0101_0101);
        assert_eq!(statistics.out_of_order_segments_received, 0x0101_0101);
        assert_eq!(statistics.bytes_received, 0x0101_0101_0101_0101);
        let rtt = Duration::from_micros(0x0101_0101);
        assert_eq!(statistics.smoothed_rtt, Some(rtt));
    }
}

#[test]
fn fewer_fields_and_other_connections_are_no_statistics() {
    let older = description(SEQUENCE_NUMBER, REMOTE, 192);
    let listener = description(SEQUENCE_NUMBER, "0.0.0.0:0", 280);
    for message in [older, listener] {
        let reply = read(&message);
        assert!(matches!(reply, Reply::Statistics(None)), "{reply:?}");
    }
}

#[test]
fn replies_to_other_requests_are_skipped() {
    let reply = read(&description(SEQUENCE_NUMBER - 1, REMOTE, 280));
    assert!(matches!(reply, Reply::Other), "{reply:?}");
}

#[test]
fn an_unknown_connection_is_no_error_and_a_refusal_is() {
    let reply = read(&error(-2));
    assert!(matches!(reply, Reply::Statistics(None)), "{reply:?}");
    let Reply::Error(refused) = read(&error(-13)) else {
        panic!("it is no error");
    };
    assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
}

proptest! {
    #[test]
    fn no_message_panics(
        payload in proptest::collection::vec(any::<u8>(), 0..400),
        message_type in prop_oneof![Just(2_u16), Just(3), Just(20), any::<u16>()],
        family in prop_oneof![Just(AF_INET), Just(AF_INET6), any::<u8>()],
    ) {
        let length = u32::try_from(16 + payload.len()).unwrap();
        let mut message = length.to_ne_bytes().to_vec();
        message.extend(message_type.to_ne_bytes());
        message.extend([0; 2]);
        message.extend(SEQUENCE_NUMBER.to_ne_bytes());
        message.extend([0; 4]);
        message.extend(payload);
        if let Some(first) = message.get_mut(16) {
            *first = family;
        }
        read(&message);
    }

    #[test]
    fn a_truncated_description_has_no_statistics(kept in 0..1_usize << 9) {
        let whole = description(SEQUENCE_NUMBER, REMOTE, 280);
        let message = &whole[..kept.min(whole.len() - 1)];
        let reply = read(message);
        prop_assert!(!matches!(reply, Reply::Statistics(Some(_))), "{:?}", reply);
    }

    #[test]
    fn a_changed_description_does_not_panic(at in 16..300_usize, value: u8) {
        let mut message = description(SEQUENCE_NUMBER, REMOTE, 280);
        message[at] = value;
        read(&message);
    }
}
