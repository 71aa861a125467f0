//! Connection IDs of any bytes, of any form that a load balancer and its servers may agree on: what
//! is read was written, and what is written is read.
#![no_main]

use std::sync::Arc;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use swiftwater_quic::crypto::BlockCipher;
use swiftwater_quic::{QuicLbCids, QuicLbCodec, QuicLbFormat};
use swiftwater_tls::Aes128Block;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    config_rotation: u8,
    server_id_len: u8,
    nonce_len: u8,
    encode_len: bool,
    key: Option<[u8; 16]>,
    random: u8,
    bytes: &'a [u8],
}

fuzz_target!(|input: Input<'_>| {
    let format = QuicLbFormat {
        config_rotation: input.config_rotation % 9,
        server_id_len: usize::from(input.server_id_len % 22),
        nonce_len: usize::from(input.nonce_len % 22),
        encode_len: input.encode_len,
    };
    let cipher = input
        .key
        .map(|key| Arc::new(Aes128Block::new(key)) as Arc<dyn BlockCipher>);
    let Ok(codec) = QuicLbCodec::new(format, cipher) else {
        return;
    };
    assert!(codec.cid_len() <= 20);
    if let Some(id) = codec.decode(input.bytes) {
        assert_eq!(id.server_id().len(), format.server_id_len);
        assert_eq!(id.nonce().len(), format.nonce_len);
        // Everything but random bits comes back.
        let again = codec.encode(id.server_id(), id.nonce(), input.bytes[0]);
        let again = again.expect("lengths as agreed");
        assert_eq!(again.as_bytes(), &input.bytes[..codec.cid_len()]);
    }
    let fields = input.bytes.split_at_checked(format.server_id_len);
    if let Some((server_id, rest)) = fields
        && let Some(nonce) = rest.get(..format.nonce_len)
    {
        let cid = codec.encode(server_id, nonce, input.random);
        let cid = cid.expect("lengths as agreed");
        let read = codec
            .decode(cid.as_bytes())
            .expect("what we write, we can read");
        assert_eq!((read.server_id(), read.nonce()), (server_id, nonce));
    }
    assert_eq!(
        QuicLbCids::new(codec, input.bytes).is_ok(),
        input.bytes.len() == format.server_id_len
    );
});
