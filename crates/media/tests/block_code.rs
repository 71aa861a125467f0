//! The erasure code of a frame: any packets as many as the source restore it.

use proptest::prelude::*;
use swiftwater_media::protection::block_code::{
    BlockCodeError, MAX_SOURCE_PACKETS, decode, encode, repair_capacity, repair_len,
};

fn packets(count: usize, len: usize, seed: u8) -> Vec<Vec<u8>> {
    let byte = |packet: usize, at: usize| (packet * 31 + at * 7 + usize::from(seed)) as u8;
    let packet = |number| (0..len).map(|at| byte(number, at)).collect();
    let mut all: Vec<Vec<u8>> = (0..count).map(packet).collect();
    // The last packet of a frame is shorter.
    if let Some(last) = all.last_mut() {
        last.truncate(len.div_ceil(2));
    }
    all
}

fn refs(packets: &[Vec<u8>]) -> Vec<&[u8]> {
    packets.iter().map(Vec::as_slice).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_packets_as_many_as_the_source_restore_it(
        count in 1_usize..30,
        len in 1_usize..200,
        seed in any::<u8>(),
        order in proptest::collection::vec(any::<u32>(), 94),
    ) {
        let source = packets(count, len, seed);
        let repair = encode(&refs(&source)).unwrap();
        prop_assert_eq!(repair.len(), repair_capacity(count));
        // A random choice of `count` out of source and repair packets.
        let mut all: Vec<usize> = (0..count + repair.len().min(64)).collect();
        all.sort_by_key(|&number| (order[number], number));
        let kept = &all[..count];
        let kept_source: Vec<_> = kept
            .iter()
            .filter(|&&number| number < count)
            .map(|&number| (number, source[number].as_slice()))
            .collect();
        let kept_repair: Vec<_> = kept
            .iter()
            .filter(|&&number| number >= count)
            .map(|&number| (number - count, repair[number - count].as_slice()))
            .collect();
        let restored = decode(count, &kept_source, &kept_repair).unwrap();
        for (sent, got) in source.iter().zip(&restored) {
            prop_assert_eq!(&got[..sent.len()], &sent[..]);
            prop_assert!(got[sent.len()..].iter().all(|&byte| byte == 0));
        }
        // One packet less is one too few.
        if let Some((_, fewer)) = kept_repair.split_last() {
            prop_assert!(decode(count, &kept_source, fewer).is_err());
        }
    }
}

#[test]
fn impossible_blocks_are_refused() {
    assert!(matches!(
        encode(&[]),
        Err(BlockCodeError::TooManyPackets(0))
    ));
    let huge = vec![&b"x"[..]; MAX_SOURCE_PACKETS + 1];
    assert!(encode(&huge).is_err());
    assert!(decode(0, &[], &[]).is_err());
    assert!(decode(3, &[(7, b"ab")], &[(0, b"abcd"), (0, b"abcd")]).is_err());
    assert!(decode(2, &[], &[(0, b"a"), (1, b"abcd")]).is_err());
}

#[test]
fn repair_packets_have_even_lengths() {
    assert_eq!((repair_len(1389), repair_len(1400)), (1390, 1400));
}
