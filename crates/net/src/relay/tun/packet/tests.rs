//! Headers of IPv4 packets, against a checksum computed from scratch.

use proptest::prelude::*;

use super::*;

/// The checksum of RFC 791 over a header whose checksum field is taken as zero.
fn checksum(header: &[u8]) -> u16 {
    let words = header.chunks(2).enumerate().filter(|(nth, _)| *nth != 5);
    let sum = words.fold(0_u32, |sum, (_, word)| {
        sum + u32::from(u16::from_be_bytes([word[0], word[1]]))
    });
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

/// A packet of `protocol` with a correct checksum.
fn packet(noise: [u8; 20], protocol: u8) -> Vec<u8> {
    let mut packet = noise.to_vec();
    packet[0] = 0x45;
    packet[6..8].copy_from_slice(&[0x40, 0]);
    packet[9] = protocol;
    let sum = checksum(&packet).to_be_bytes();
    packet[10..12].copy_from_slice(&sum);
    packet.extend_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
    packet
}

proptest! {
    #[test]
    fn a_mark_leaves_a_valid_header(noise: [u8; 20], bits in 0_u8..4) {
        let before = packet(noise, UDP);
        let mut after = before.clone();
        let mark = Ecn::from_bits(bits);
        set_ecn(&mut after, mark);
        prop_assert_eq!(ecn(&after), Some(mark));
        let sum = u16::from_be_bytes([after[10], after[11]]);
        // Zero has two forms in ones' complement.
        let right = checksum(&after[..20]);
        prop_assert!(sum == right || (sum, right) == (0xffff, 0) || (sum, right) == (0, 0xffff));
        prop_assert_eq!(before[1] & !3, after[1] & !3);
        prop_assert!(before[..1] == after[..1] && before[2..10] == after[2..10]);
        prop_assert_eq!(&before[12..], &after[12..]);
    }

    #[test]
    fn anything_else_is_left_alone(mut data in proptest::collection::vec(any::<u8>(), 0..60)) {
        if ecn(&data).is_none() {
            let before = data.clone();
            set_ecn(&mut data, Ecn::Ce);
            prop_assert_eq!(&before, &data);
            prop_assert_eq!(flow(&data), 0);
        } else {
            prop_assert!(data.len() >= 20);
            flow(&data);
        }
    }
}

#[test]
fn flows_are_distinguished_by_ports_and_addresses() {
    let base = packet([7; 20], TCP);
    assert_eq!(flow(&base), flow(&base.clone()));
    for at in [12, 16, 20, 22] {
        let mut other = base.clone();
        other[at] ^= 1;
        assert_ne!(flow(&base), flow(&other), "byte {at}");
    }
    // Beyond the ports there is only content.
    let mut same = base.clone();
    same[24] ^= 1;
    assert_eq!(flow(&base), flow(&same));
    // What has no ports, and a fragment.
    let mut icmp = packet([7; 20], 1);
    let before = flow(&icmp);
    icmp[20] ^= 1;
    assert_eq!(before, flow(&icmp));
    let mut fragment = base;
    fragment[7] = 9;
    let before = flow(&fragment);
    fragment[20] ^= 1;
    assert_eq!(before, flow(&fragment));
}
