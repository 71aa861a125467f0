//! QUIC-LB connection IDs with the real cipher: the draft's vectors, and what holds of every
//! configuration.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use swiftwater_quic::crypto::BlockCipher;
use swiftwater_quic::{
    ConnectionIdGenerator, QuicLbCids, QuicLbCodec, QuicLbError, QuicLbFormat, WorkerCids,
};
use swiftwater_tls::{Aes128Block, EndpointSecrets};

fn hex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

fn cipher(key: &str) -> Arc<dyn BlockCipher> {
    Arc::new(Aes128Block::new(hex(key).try_into().unwrap()))
}

/// The key of appendix B.2 of the draft.
const KEY: &str = "8f95f09245765f80256934e50c66207f";

/// Encodes and decodes; compares all but the first octet, since that of the last vector contradicts
/// the draft's text (configuration 3 would make it 0x72).
fn check(config_rotation: u8, key: Option<&str>, server_id: &str, nonce: &str, cid: &str) {
    let (server_id, nonce, cid) = (hex(server_id), hex(nonce), hex(cid));
    let format = QuicLbFormat {
        config_rotation,
        server_id_len: server_id.len(),
        nonce_len: nonce.len(),
        encode_len: true,
    };
    let codec = QuicLbCodec::new(format, key.map(cipher)).unwrap();
    let made = codec.encode(&server_id, &nonce, 0).unwrap();
    assert_eq!(made.as_bytes()[1..], cid[1..]);
    assert_eq!(
        made.as_bytes()[0],
        (config_rotation << 5) | (made.len() as u8 - 1)
    );
    let read = codec.decode(made.as_bytes()).unwrap();
    assert_eq!(
        (read.server_id(), read.nonce()),
        (&server_id[..], &nonce[..])
    );
}

#[test]
fn vectors_of_the_draft() {
    check(0, None, "c4605e", "4504cc4f", "07c4605e4504cc4f");
    check(0, Some(KEY), "ed793a", "ee080dbf", "0720b1d07b359d3c");
    check(
        1,
        Some(KEY),
        "ed793a51d49b8f5fab65",
        "ee080dbf48",
        "2fcc381bc74cb4fbad2823a3d1f8fed2",
    );
    check(
        2,
        Some(KEY),
        "ed793a51d49b8f5f",
        "ee080dbf48c0d1e5",
        "504dd2d05a7b0de9b2b9907afb5ecf8cc3",
    );
    check(
        3,
        Some(KEY),
        "ed793a51d49b8f5fab",
        "ee080dbf48c0d1e55d",
        "125779c9cc86beb3a3a4a3ca96fce4bfe0cdbc",
    );
    // The example of section 5.4.2.
    let key = "fdf726a9893ec05c0632d3956680baf0";
    check(0, Some(key), "31441a", "9c69c275", "0767947d29be054a");
}

#[test]
fn senseless_configurations_are_refused() {
    let with = |config_rotation, server_id_len, nonce_len| {
        let format = QuicLbFormat {
            config_rotation,
            server_id_len,
            nonce_len,
            encode_len: false,
        };
        QuicLbCodec::new(format, None).map(|_| ())
    };
    assert_eq!(with(7, 1, 7), Err(QuicLbError::ConfigRotation(7)));
    for (server_id, nonce) in [(0, 8), (16, 4), (1, 3), (1, 19), (15, 5)] {
        let expected = QuicLbError::Lengths { server_id, nonce };
        assert_eq!(with(0, server_id, nonce), Err(expected));
    }
    assert_eq!(with(6, 15, 4), Ok(()));
    let codec = QuicLbCodec::new(QuicLbFormat::default(), None).unwrap();
    let error = QuicLbCids::new(codec, b"two").unwrap_err();
    assert_eq!(error, QuicLbError::ServerId { have: 3, want: 1 });
}

proptest! {
    #[test]
    fn every_configuration_reads_what_it_writes(
        config_rotation in 0_u8..7,
        server_id in prop::collection::vec(any::<u8>(), 1..=15),
        nonce in prop::collection::vec(any::<u8>(), 4..=18),
        encode_len: bool,
        encrypted: bool,
        random: u8,
        rest in prop::collection::vec(any::<u8>(), 0..30),
    ) {
        prop_assume!(server_id.len() + nonce.len() <= 19);
        let format = QuicLbFormat {
            config_rotation,
            server_id_len: server_id.len(),
            nonce_len: nonce.len(),
            encode_len,
        };
        let codec = QuicLbCodec::new(format, encrypted.then(|| cipher(KEY))).unwrap();
        let cid = codec.encode(&server_id, &nonce, random).unwrap();
        prop_assert_eq!(cid.len(), codec.cid_len());
        let packet = [cid.as_bytes(), &rest].concat();
        let id = codec.decode(&packet).unwrap();
        prop_assert_eq!((id.server_id(), id.nonce()), (&server_id[..], &nonce[..]));
        // Truncated, or of another configuration, it belongs to no server.
        prop_assert!(codec.decode(&cid.as_bytes()[..cid.len() - 1]).is_none());
        let mut other = packet;
        other[0] ^= 0x20;
        prop_assert!(codec.decode(&other).is_none());
    }

    #[test]
    fn arbitrary_bytes_are_decoded_without_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..40),
        server_id_len in 1_usize..=15,
        nonce_len in 4_usize..=18,
    ) {
        prop_assume!(server_id_len + nonce_len <= 19);
        let format = QuicLbFormat { server_id_len, nonce_len, ..QuicLbFormat::default() };
        let codec = QuicLbCodec::new(format, Some(cipher(KEY))).unwrap();
        if let Some(id) = codec.decode(&bytes) {
            let again = codec.encode(id.server_id(), id.nonce(), 0).unwrap();
            prop_assert_eq!(again.as_bytes(), &bytes[..codec.cid_len()]);
        }
    }

    /// Both generators encode the worker for the owner of the key, in IDs that don't repeat.
    #[test]
    fn workers_are_found_in_their_ids(worker: u8, len in 0_usize..30, seed: u64) {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let codec = QuicLbCodec::new(QuicLbFormat::default(), Some(cipher(KEY))).unwrap();
        let lb = QuicLbCids::new(codec.clone(), &[9]).unwrap();
        let key = Arc::new(EndpointSecrets::from_seed([1; 32]));
        let keyed = WorkerCids::new(len, key);
        prop_assert!((8..=20).contains(&keyed.cid_len()));
        let generators: [&dyn ConnectionIdGenerator; 2] = [&lb, &keyed];
        for generator in generators {
            let [one, two] = [(); 2].map(|()| generator.generate(worker, &mut rng));
            prop_assert_ne!(one, two);
            for cid in [one, two] {
                prop_assert_eq!(cid.len(), generator.cid_len());
                prop_assert_eq!(generator.worker_of(&cid), Some(worker));
            }
        }
        // Another server's IDs name no worker of ours.
        let other = QuicLbCids::new(codec, &[10]).unwrap();
        prop_assert_eq!(lb.worker_of(&other.generate(worker, &mut rng)), None);
    }
}

/// Without a cipher the worker would be readable, so it is not included.
#[test]
fn plain_ids_hide_nothing_and_say_so() {
    let codec = QuicLbCodec::new(QuicLbFormat::default(), None).unwrap();
    let plain = QuicLbCids::new(codec, &[5]).unwrap();
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let cid = plain.generate(3, &mut rng);
    assert_eq!(cid.as_bytes()[1], 5);
    assert_eq!(plain.worker_of(&cid), None);
    assert_eq!(plain.max_workers(), 1);
    assert!(!plain.is_unlinkable());
}

/// In a nonce of fewer than 8 bytes no byte is spent on the worker.
#[test]
fn short_nonces_name_no_worker() {
    for (nonce_len, workers) in [(4, 1), (7, 1), (8, u8::MAX), (15, u8::MAX)] {
        let format = QuicLbFormat {
            nonce_len,
            ..QuicLbFormat::default()
        };
        let codec = QuicLbCodec::new(format, Some(cipher(KEY))).unwrap();
        let generator = QuicLbCids::new(codec.clone(), &[5]).unwrap();
        assert_eq!(generator.max_workers(), workers, "{nonce_len}");
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let ids: Vec<_> = (0..100).map(|_| generator.generate(3, &mut rng)).collect();
        let first_bytes: BTreeSet<_> = (ids.iter())
            .map(|cid| codec.decode(cid.as_bytes()).unwrap().nonce()[0])
            .collect();
        assert_eq!(first_bytes.len() == 1, workers > 1, "{nonce_len}");
        let named = (workers > 1).then_some(3);
        assert!(ids.iter().all(|cid| generator.worker_of(cid) == named));
    }
}

/// One known worker doesn't reveal others: without the key the last byte looks random.
#[test]
fn the_mask_hides_the_worker() {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let key = |seed| Arc::new(EndpointSecrets::from_seed([seed; 32]));
    let (ours, other) = (WorkerCids::new(8, key(1)), WorkerCids::new(8, key(2)));
    let ids: Vec<_> = (0..1000).map(|_| ours.generate(1, &mut rng)).collect();
    let mut seen = [0_u32; 256];
    for cid in &ids {
        seen[usize::from(cid.as_bytes()[7])] += 1;
    }
    // 3.9 on average.
    assert!(seen.iter().all(|&n| n < 20), "{seen:?}");
    let guessed = ids.iter().filter(|cid| other.worker_of(cid) == Some(1));
    assert!(guessed.count() < 20);
}
