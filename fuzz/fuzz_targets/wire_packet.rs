//! Headers of any bytes: what parses lies within the packet, and the invariant header agrees.
#![no_main]

use libfuzzer_sys::fuzz_target;
use swiftwater_wire::{InvariantHeader, PacketType, PartialHeader, RETRY_TAG_LEN};

fuzz_target!(|input: (u8, &[u8])| {
    let (cid_len, bytes) = input;
    let cid_len = usize::from(cid_len % 24);
    let invariant = InvariantHeader::parse(bytes, cid_len);
    let mut rest = bytes;
    while let Ok(header) = PartialHeader::parse(rest, cid_len) {
        assert!(header.packet_len <= rest.len());
        assert!(header.pn_offset <= header.packet_len);
        assert!(header.token.end <= header.packet_len);
        let packet = &rest[..header.packet_len];
        if header.packet_type == PacketType::Retry {
            assert!(header.retry_tag(packet).is_some());
            assert!(header.token.len() + RETRY_TAG_LEN <= packet.len());
        }
        let offered = header.supported_versions(packet).count();
        assert_eq!(
            offered > 0,
            header.packet_type == PacketType::VersionNegotiation
        );
        if rest.len() == bytes.len() {
            let invariant = invariant.expect("every header has the invariant part");
            assert_eq!(invariant.dst_cid, header.dst_cid.as_bytes());
            assert_eq!(
                invariant.src_cid.unwrap_or_default(),
                header.src_cid.as_bytes()
            );
        }
        rest = &rest[header.packet_len..];
        if header.packet_len == 0 || rest.is_empty() {
            break;
        }
    }
});
